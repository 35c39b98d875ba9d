package netegress

import (
	"errors"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
)

// late are the containers that may have run before they were guarded, and whose Unix sockets have not been looked at since.
type late struct {
	mu    sync.Mutex
	watch bool // the programs see what becomes of a socket from now on
	paths []string
}

func (l *late) attached() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watch = true
}

func (l *late) add(paths ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paths = append(l.paths, paths...)
}

// take gives those that can be looked at.
func (l *late) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.watch {
		return nil
	}
	paths := l.paths
	l.paths = nil
	return paths
}

// KnowOwn looks at the Unix sockets that containers had before they were guarded, and notes those that they alone have: under taint
// they may send on no others (B60). What cannot be looked at stays refused.
func (e *Egress) KnowOwn() {
	paths := e.late.take()
	slices.Sort(paths)
	paths = slices.DeleteFunc(slices.Compact(paths), e.opts.State.Crowded)
	if len(paths) == 0 {
		return
	}
	own, err := ownSockets(paths)
	for _, cookie := range own {
		// what a program has noted meanwhile stays
		failed := e.egress.OutsideUnix.Update(cookie, peersUnixEndUNIX_OWN, ebpf.UpdateNoExist)
		if failed != nil && !errors.Is(failed, ebpf.ErrKeyExist) {
			err = errors.Join(err, failed)
			break
		}
	}
	if err != nil {
		e.opts.Logger.WithError(err).Error("know the Unix sockets that containers had before they were guarded: under taint they cannot send on those")
	}
}
