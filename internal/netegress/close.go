package netegress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"weir/internal/linux"
	"weir/internal/policy"
)

const (
	sockDestroy = 21 // SOCK_DESTROY of linux/sock_diag.h
	tcpSynRecv  = 3  // TCP_SYN_RECV of the kernel's tcp_states.h
	tcpListen   = 10 // TCP_LISTEN, the same
)

// closeMarked closes the TCP and UDP sockets with the given cookies, in every network namespace that a process of the container is
// in. held: only those that a process still has open.
func closeMarked(path string, cookies map[uint64]bool, held bool) error {
	pids, err := linux.CgroupTree(path)
	if err != nil {
		return err
	}
	return eachNetwork(pids, func() error {
		_, err := closeIn(func(s *netlink.Socket, _ uint8, _ []*netlink.Socket) bool {
			return cookies[cookieOf(s)] && (!held || s.INode != 0)
		})
		return err
	})
}

func cookieOf(s *netlink.Socket) uint64 { return uint64(s.ID.Cookie[1])<<32 | uint64(s.ID.Cookie[0]) }

// closeSockets closes the TCP and UDP sockets of a container whose peers are neither
// inside it nor allowed by p, in every network namespace that one of its
// processes is in (B21), but for those whose cookie is marked: what its processes
// have open, and what they made and nobody may have open (B61). Programs see an
// error instead of a stall; the packets were refused already. It returns how many
// it closed.
func closeSockets(path string, p policy.Policy, marked func(cookie uint64) bool) (int, error) {
	dests, err := p.Destinations()
	if err != nil {
		return 0, err
	}
	pids, err := linux.CgroupTree(path)
	if err != nil {
		return 0, err
	}
	cgroups, err := below(path)
	if err != nil {
		return 0, err
	}
	inodes := openedSockets(pids)
	closed := 0
	err = eachNetwork(pids, func() error {
		unheld := addMade(inodes, cgroups)
		n, err := closeIn(func(s *netlink.Socket, proto uint8, all []*netlink.Socket) bool {
			return (inodes[uint64(s.INode)] || begun(s, all, inodes)) && !marked(cookieOf(s)) && !keep(s, proto, dests, func() bool { return peered(s, all, inodes) })
		})
		closed += n
		return errors.Join(unheld, err)
	})
	return closed, err
}

// openedSockets are the inodes of all sockets that processes have open.
func openedSockets(pids []int) map[uint64]bool {
	inodes := map[uint64]bool{}
	for _, pid := range pids {
		own, err := linux.SocketInodes(pid)
		if err != nil {
			continue // it is gone
		}
		maps.Copy(inodes, own)
	}
	return inodes
}

// names are the protocols whose sockets are closed.
var names = map[uint8]string{unix.IPPROTO_TCP: "tcp", unix.IPPROTO_UDP: "udp"}

// eachNetwork runs f in every network namespace that one of these processes is in.
func eachNetwork(pids []int, f func() error) error {
	return linux.EachNamespace(pids, "net", func(pid int) error {
		ns, err := linux.OpenNetwork(pid)
		if err != nil {
			return err
		}
		defer ns.Close()
		return linux.InNetwork(ns, f)
	})
}

// closeIn closes the sockets of this network namespace that which picks among all of a protocol.
func closeIn(which func(s *netlink.Socket, proto uint8, all []*netlink.Socket) bool) (int, error) {
	closed := 0
	var errs []error
	for proto, list := range map[uint8]func(uint8) ([]*netlink.Socket, error){
		unix.IPPROTO_TCP: netlink.SocketDiagTCP, unix.IPPROTO_UDP: netlink.SocketDiagUDP,
	} {
		var sockets []*netlink.Socket
		for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
			some, err := list(family)
			if err != nil {
				errs = append(errs, fmt.Errorf("list %s sockets: %w: load the module %s_diag", names[proto], err, names[proto]))
			}
			sockets = append(sockets, some...)
		}
		for _, s := range sockets {
			if !which(s, proto, sockets) {
				continue
			}
			if err := destroy(s, proto); err != nil && !errors.Is(err, unix.ENOENT) {
				errs = append(errs, fmt.Errorf("close socket to %s: %w", s.ID.Destination, err))
				continue
			}
			closed++
		}
	}
	return closed, errors.Join(errs...)
}

// keep: listeners and sockets without a peer reach nobody by themselves, and a
// loopback peer may be inside.
func keep(s *netlink.Socket, proto uint8, dests []policy.Destination, inside func() bool) bool {
	addr, ok := netip.AddrFromSlice(s.ID.Destination)
	if !ok || s.ID.DestinationPort == 0 || proto == unix.IPPROTO_TCP && s.State == tcpListen {
		return true
	}
	addr = addr.Unmap()
	if addr.IsLoopback() {
		return inside()
	}
	return policy.Opens(dests, netip.AddrPortFrom(addr, s.ID.DestinationPort), proto) // as the kernel would say
}

// begun says whether a connection with a listener of the container has begun and is no socket yet: the kernel answers once more, with what
// the listener has set by then (B59).
func begun(s *netlink.Socket, all []*netlink.Socket, inodes map[uint64]bool) bool {
	return s.State == tcpSynRecv && slices.ContainsFunc(all, func(l *netlink.Socket) bool {
		return l.State == tcpListen && l.ID.SourcePort == s.ID.SourcePort && inodes[uint64(l.INode)] &&
			(l.ID.Source.IsUnspecified() || l.ID.Source.Equal(s.ID.Source))
	})
}

// peered says whether the other end of a loopback socket is the container's too (B26).
func peered(s *netlink.Socket, all []*netlink.Socket, inodes map[uint64]bool) bool {
	for _, other := range all {
		if inodes[uint64(other.INode)] && other.ID.SourcePort == s.ID.DestinationPort &&
			(other.ID.DestinationPort == s.ID.SourcePort || other.ID.DestinationPort == 0 && other.State != tcpListen) {
			return true
		}
	}
	return false
}

// destroyRequest is inet_diag_req_v2 of linux/inet_diag.h.
type destroyRequest struct {
	family, proto uint8
	socket        *netlink.Socket
}

func (r destroyRequest) Len() int { return 56 }

func (r destroyRequest) Serialize() []byte {
	b := make([]byte, 0, r.Len())
	b = append(b, r.family, r.proto, 0, 0)
	b = binary.NativeEndian.AppendUint32(b, ^uint32(0)) // any state
	b = binary.BigEndian.AppendUint16(b, r.socket.ID.SourcePort)
	b = binary.BigEndian.AppendUint16(b, r.socket.ID.DestinationPort)
	for _, ip := range [][]byte{r.socket.ID.Source, r.socket.ID.Destination} {
		var addr [16]byte
		if r.family == unix.AF_INET {
			copy(addr[:4], ip[len(ip)-4:])
		} else {
			copy(addr[:], ip)
		}
		b = append(b, addr[:]...)
	}
	b = binary.NativeEndian.AppendUint32(b, r.socket.ID.Interface)
	b = binary.NativeEndian.AppendUint32(b, r.socket.ID.Cookie[0])
	return binary.NativeEndian.AppendUint32(b, r.socket.ID.Cookie[1])
}

func destroy(s *netlink.Socket, proto uint8) error {
	req := nl.NewNetlinkRequest(sockDestroy, unix.NLM_F_ACK)
	req.AddData(destroyRequest{s.Family, proto, s})
	_, err := req.Execute(unix.NETLINK_INET_DIAG, 0)
	return err
}

// LoadDiag loads the modules that list and close sockets, where they are modules.
func LoadDiag() error {
	var missing []string
	for name, ask := range map[string]func(uint8) ([]*netlink.Socket, error){"tcp_diag": netlink.SocketDiagTCP, "udp_diag": netlink.SocketDiagUDP} {
		loaded := func() bool {
			_, err := os.Stat("/sys/module/" + name)
			return err == nil
		}
		if loaded() {
			continue
		}
		// the kernel loads what it is asked for (sock_load_diag_module), also where this process may not
		if _, err := ask(unix.AF_INET); err == nil && loaded() {
			continue
		}
		if out, err := exec.Command("modprobe", name).CombinedOutput(); err != nil {
			missing = append(missing, fmt.Sprintf("%s (%s)", name, out))
		}
	}
	if missing != nil {
		return fmt.Errorf("load module %s: sockets that are older than a taint would stall instead of being closed", strings.Join(missing, ", "))
	}
	return nil
}
