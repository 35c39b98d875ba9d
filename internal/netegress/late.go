package netegress

import (
	"errors"
	"io/fs"
	"slices"
	"sync"

	"github.com/cilium/ebpf"

	"weir/internal/netegress/socket"
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
	for _, path := range slices.Compact(paths) {
		if e.opts.State.Crowded(path) {
			continue
		}
		err := e.knowOwn(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			e.opts.Logger.WithError(err).Errorf("look at Unix sockets of %s: under taint it cannot send on those that it has open", path)
		}
	}
}

func (e *Egress) knowOwn(path string) error {
	own, err := socket.Own(path)
	if err != nil {
		return err
	}
	for _, cookie := range own {
		// what a program has noted meanwhile stays
		if err := e.egress.OutsideUnix.Update(cookie, peersUnixEndUNIX_OWN, ebpf.UpdateNoExist); err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
			return err
		}
	}
	return nil
}
