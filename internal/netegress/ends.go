package netegress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"weir/internal/linux"
)

// looks is how often processes are looked for that began while others were looked at.
const looks = 3

// ownSockets returns the cookies of those Unix sockets that processes of one of these containers have open and no other process has, with
// both ends of those that are connected. What the kernel's programs note from before this call on is not contradicted. Sockets are left out that
// no process has open, and those of network namespaces that no process of the container is in; and all of a container that cannot be
// looked at, which is an error.
func ownSockets(paths []string) ([]uint64, error) {
	found := map[string][]end{}
	wanted := map[uint64]bool{}
	var errs []error
	for _, path := range paths {
		ends, err := openEnds(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("look at Unix sockets of %s: %w", path, err))
			continue
		}
		for _, s := range ends {
			wanted[s.inode], wanted[s.peer] = true, true
		}
		found[path] = ends
	}
	delete(wanted, 0)
	if len(wanted) == 0 {
		return nil, errors.Join(errs...)
	}
	held, err := holders(wanted)
	if err != nil {
		return nil, errors.Join(append(errs, err)...)
	}
	var own []uint64
	for path, ends := range found {
		inside := map[uint64]bool{}
		for inode, by := range held {
			inside[inode] = !slices.ContainsFunc(by, func(at string) bool { return !linux.PathWithin(at, path) })
		}
		for _, s := range ends {
			if heard(s, inside) {
				own = append(own, s.cookie)
			}
		}
	}
	return own, errors.Join(errs...)
}

// openEnds are the Unix sockets that processes of a container have open, and the other ends too.
func openEnds(path string) ([]end, error) {
	pids, err := linux.CgroupTree(path)
	if err != nil {
		return nil, err
	}
	inside := openedSockets(pids)
	var found []end
	err = eachNetwork(pids, func() error {
		all, err := listUnix()
		for _, s := range all {
			if heard(s, inside) {
				found = append(found, s)
			}
		}
		return err
	})
	return found, err
}

// holders are the cgroups of the processes that have sockets open, by inode.
func holders(wanted map[uint64]bool) (map[uint64][]string, error) {
	held := map[uint64][]string{}
	done := map[int]bool{}
	for range looks {
		pids, err := linux.PIDs()
		if err != nil {
			return nil, err
		}
		for _, pid := range pids {
			if done[pid] {
				continue
			}
			done[pid] = true
			inodes, err := linux.SocketInodes(pid)
			if errors.Is(err, linux.ErrGone) {
				continue
			}
			if err != nil {
				return nil, err
			}
			maps.DeleteFunc(inodes, func(inode uint64, _ bool) bool { return !wanted[inode] })
			if len(inodes) == 0 {
				continue
			}
			at, err := linux.CgroupOf(pid)
			if err != nil {
				continue // it has ended
			}
			for inode := range inodes {
				held[inode] = append(held[inode], at)
			}
		}
	}
	return held, nil
}

// heard says whether a socket is one of these, and so is who it is connected to. Streams that are not connected yet are left
// out: to whom they will be, it is not known.
func heard(s end, inside map[uint64]bool) bool {
	switch {
	case !inside[s.inode]:
		return false
	case s.kind == unix.SOCK_DGRAM || s.state == tcpListen:
		return true // who sends, or connects, to it is judged, not what it sends
	}
	return inside[s.peer]
}

// end is a Unix socket. Its inode, or its peer's, is 0 if no process can have that open.
type end struct {
	kind, state uint8
	inode, peer uint64
	cookie      uint64
}

const (
	sizeofUnixMessage = 16 // of unix_diag_msg of linux/unix_diag.h; attributes follow
	showPeer          = 4  // UDIAG_SHOW_PEER
)

// unixRequest is unix_diag_req: of all states, with peers.
type unixRequest struct{}

func (unixRequest) Len() int { return 24 }

func (r unixRequest) Serialize() []byte {
	b := make([]byte, r.Len())
	b[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(b[4:], ^uint32(0))
	binary.NativeEndian.PutUint32(b[12:], showPeer)
	return b
}

// listUnix lists the Unix sockets of the caller's network namespace. One that comes or goes meanwhile may be left out.
func listUnix() ([]end, error) {
	req := nl.NewNetlinkRequest(nl.SOCK_DIAG_BY_FAMILY, unix.NLM_F_DUMP)
	req.AddData(unixRequest{})
	messages, err := req.Execute(unix.NETLINK_INET_DIAG, nl.SOCK_DIAG_BY_FAMILY)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, fmt.Errorf("list Unix sockets: %w: load the module unix_diag", err)
	}
	return unixEnds(messages)
}

func unixEnds(messages [][]byte) ([]end, error) {
	var all []end
	for _, m := range messages {
		if len(m) < sizeofUnixMessage || m[0] != unix.AF_UNIX {
			continue
		}
		s := end{kind: m[1], state: m[2], inode: uint64(binary.NativeEndian.Uint32(m[4:])), cookie: binary.NativeEndian.Uint64(m[8:])}
		attrs, err := attributes(m[sizeofUnixMessage:])
		if err != nil {
			return nil, fmt.Errorf("read a Unix socket: %w", err)
		}
		if peer := attrs[netlink.UNIX_DIAG_PEER]; len(peer) == 4 {
			s.peer = uint64(binary.NativeEndian.Uint32(peer))
		}
		all = append(all, s)
	}
	return all, nil
}
