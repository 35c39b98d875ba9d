package netegress

import (
	"fmt"
	"slices"

	"weir/internal/bpfobj"
)

// OpenPeer lets the containers of a policy's slot connect to the Unix socket at path, whatever their taint: it is the sensor's own, so it
// is no way out. It stays open when the policy changes, until ClosePeer or DropPolicy.
func (e *Egress) OpenPeer(slot uint32, path string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if slices.Contains(e.bridges[slot], path) {
		return nil
	}
	l, known := e.slots[slot]
	if !known {
		return fmt.Errorf("open Unix peer %s: policy %d is not in force", path, slot)
	}
	if err := e.putPeer(slot, &l, path, own); err != nil {
		return err
	}
	e.slots[slot] = l
	e.bridges[slot] = append(e.bridges[slot], path)
	return nil
}

// ClosePeer takes an opened socket back.
func (e *Egress) ClosePeer(slot uint32, path string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Contains(e.bridges[slot], path) {
		return nil
	}
	e.bridges[slot] = slices.DeleteFunc(e.bridges[slot], func(p string) bool { return p == path })
	l := e.slots[slot]
	key := peerKey(slot, l.generation, path)
	l.peers = slices.DeleteFunc(l.peers, func(k peersUnixPeer) bool { return k == key })
	e.slots[slot] = l
	return bpfobj.Delete(e.peers.UnixPeers, key)
}

// own is a Unix socket of the sensor itself.
var own = peersUnixListed{How: peersUnixHowLISTED_OWN}

func (e *Egress) putPeer(slot uint32, l *loaded, path string, listed peersUnixListed) error {
	key := peerKey(slot, l.generation, path)
	if len(path) >= len(key.Path) {
		return fmt.Errorf("write allowed Unix peer %s: the path is longer than %d bytes", path, len(key.Path)-1)
	}
	l.peers = append(l.peers, key)
	if err := e.peers.UnixPeers.Put(&key, &listed); err != nil {
		return fmt.Errorf("write allowed Unix peer %s: %w", path, err)
	}
	return nil
}

func peerKey(slot, generation uint32, path string) peersUnixPeer {
	key := peersUnixPeer{Policy: slot, Generation: generation}
	for i := range min(len(path), len(key.Path)) {
		key.Path[i] = int8(path[i])
	}
	return key
}
