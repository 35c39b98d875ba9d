package socket

import (
	"errors"
	"fmt"
	"maps"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/cgroup"
	"weir/internal/procfs"
)

// looks is how often processes are looked for that began while others were looked at.
const looks = 3

// Own returns the cookies of those Unix sockets that processes of a container have open and no other process has, with both ends of
// those that are connected. Only what hooks saw, or prevented, after the call can have changed it. Sockets are
// left out that no process has open, and those of network namespaces that no process of the container is in.
func Own(path string) ([]uint64, error) {
	pids, err := cgroup.Tree(path)
	if err != nil {
		return nil, err
	}
	inside := opened(pids)
	var found []*netlink.UnixDiagInfoResp
	err = procfs.EachNamespace(pids, "net", func(pid int) error {
		return within(pid, func() error {
			all, err := netlink.UnixSocketDiagInfo()
			if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) { // what it lacks is left out
				return fmt.Errorf("list Unix sockets: %w: load the module unix_diag", err)
			}
			for _, s := range all {
				if heard(s, inside) {
					found = append(found, s)
				}
			}
			return nil
		})
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	outside, err := openedElsewhere(pids)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(inside, func(inode uint64, _ bool) bool { return outside[inode] })
	var own []uint64
	for _, s := range found {
		if heard(s, inside) {
			own = append(own, uint64(s.DiagMsg.Cookie[1])<<32|uint64(s.DiagMsg.Cookie[0]))
		}
	}
	return own, nil
}

// heard says whether a socket is one of these, and so is who it is connected to. Streams that are not connected are not known: the
// kernel judges who they connect to by what it knows of them.
func heard(s *netlink.UnixDiagInfoResp, inside map[uint64]bool) bool {
	switch {
	case !inside[uint64(s.DiagMsg.INode)]:
		return false
	case s.DiagMsg.Type == unix.SOCK_DGRAM:
		return true // who sends to it is judged, not what it sends
	}
	return s.Peer != nil && inside[uint64(*s.Peer)]
}

// openedElsewhere are the inodes of all sockets that other processes have open.
func openedElsewhere(pids []int) (map[uint64]bool, error) {
	done := map[int]bool{}
	for _, pid := range pids {
		done[pid] = true
	}
	outside := map[uint64]bool{}
	for range looks {
		all, err := procfs.PIDs()
		if err != nil {
			return nil, err
		}
		for _, pid := range all {
			if done[pid] {
				continue
			}
			done[pid] = true
			some, err := procfs.SocketInodes(pid)
			if err != nil && !errors.Is(err, procfs.ErrGone) {
				return nil, err
			}
			maps.Copy(outside, some)
		}
	}
	return outside, nil
}
