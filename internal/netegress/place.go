package netegress

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/linux"
)

const (
	placeEvery = time.Second // how often the directories of listed Unix peers are looked up: services make theirs anew
	placeFor   = time.Second // how long a policy waits for that: a file system of its own can make it last for ever
)

// place is a directory of the host, as the kernel numbers it; zero: there is none.
type place struct {
	device uint32
	inode  uint64
}

// find looks up where the paths of listed Unix peers lead, and waits for that, though not for ever: what is not found yet is refused.
func (e *Egress) find(peers []string) {
	found := make(chan struct{})
	go func() { e.refresh(peers); close(found) }()
	select {
	case <-found:
	case <-time.After(placeFor):
	}
}

// refresh looks them up, and tells the kernel of those that lead elsewhere than before.
func (e *Egress) refresh(peers []string) {
	found := map[string]place{}
	for _, peer := range peers {
		if !strings.HasPrefix(peer, "@") {
			found[peer] = e.placeOf(path.Dir(peer))
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for peer, at := range found {
		if e.places[peer] == at {
			continue
		}
		e.places[peer] = at
		for slot, l := range e.slots {
			if !slices.Contains(l.listed, peer) {
				continue
			}
			key, value := peerKey(slot, l.generation, peer), e.listed(peer)
			if err := e.peers.UnixPeers.Put(&key, &value); err != nil {
				e.opts.Logger.WithError(err).Errorf("open Unix peer %s", peer)
				delete(e.places, peer) // tried again
			}
		}
	}
}

// placeOf is where a directory's path leads on the host, or none.
func (e *Egress) placeOf(dir string) place {
	root, err := linux.OpenRoot(1)
	if err != nil {
		return place{}
	}
	defer root.Close()
	fd, err := unix.Openat2(int(root.Fd()), "."+dir, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return place{}
	}
	defer unix.Close(fd)
	device, inode, err := e.opts.Directory(fd)
	if err != nil {
		e.opts.Logger.WithError(err).Errorf("look up the directory of a Unix peer, %s", dir)
		return place{}
	}
	return place{device, inode}
}

// listed is what the kernel is to know of a Unix peer that a policy lists.
func (e *Egress) listed(peer string) peersUnixListed {
	at := e.places[peer]
	return peersUnixListed{How: peersUnixHowLISTED_PEER, Device: at.device, Directory: at.inode}
}

// watchPlaces looks up again where listed Unix peers are, until ctx ends.
func (e *Egress) watchPlaces(ctx context.Context) {
	for tick := time.NewTicker(placeEvery); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		e.refresh(e.listedPeers())
	}
}

// listedPeers are those of all policies, and forgets the others.
func (e *Egress) listedPeers() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []string
	for _, l := range e.slots {
		all = append(all, l.listed...)
	}
	maps.DeleteFunc(e.places, func(peer string, _ place) bool { return !slices.Contains(all, peer) })
	return all
}
