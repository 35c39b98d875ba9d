package netegress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"weir/internal/linux"
)

// sizeofDiagMessage is that of inet_diag_msg of linux/inet_diag.h; attributes follow.
const sizeofDiagMessage = 72

// SocketCgroup returns the id of the cgroup that the TCP socket from local to remote
// belongs to, in the network namespace of the caller. The error wraps unix.ENOENT if
// there is no such socket.
func SocketCgroup(local, remote netip.AddrPort) (uint64, error) {
	local, remote = unmapped(local), unmapped(remote)
	s := &netlink.Socket{Family: unix.AF_INET6}
	if local.Addr().Is4() {
		s.Family = unix.AF_INET
	}
	s.ID.SourcePort, s.ID.DestinationPort = local.Port(), remote.Port()
	s.ID.Source, s.ID.Destination = local.Addr().AsSlice(), remote.Addr().AsSlice()
	s.ID.Cookie = [2]uint32{nl.TCPDIAG_NOCOOKIE, nl.TCPDIAG_NOCOOKIE}
	req := nl.NewNetlinkRequest(nl.SOCK_DIAG_BY_FAMILY, 0)
	req.AddData(destroyRequest{s.Family, unix.IPPROTO_TCP, s})
	messages, err := req.Execute(unix.NETLINK_INET_DIAG, nl.SOCK_DIAG_BY_FAMILY)
	if err != nil {
		return 0, fmt.Errorf("find the socket from %s to %s: %w", local, remote, err)
	}
	if len(messages) != 1 || len(messages[0]) < sizeofDiagMessage {
		return 0, fmt.Errorf("find the socket from %s to %s: %w", local, remote, unix.ENOENT)
	}
	id, err := cgroupOf(messages[0])
	if err != nil {
		return 0, fmt.Errorf("read the socket from %s to %s: %w", local, remote, err)
	}
	return id, nil
}

// cgroupOf reads a whole inet_diag_msg.
func cgroupOf(message []byte) (uint64, error) {
	attrs, err := attributes(message[sizeofDiagMessage:])
	if err != nil {
		return 0, err
	}
	if id := attrs[netlink.INET_DIAG_CGROUP_ID]; len(id) == 8 {
		return binary.NativeEndian.Uint64(id), nil
	}
	return 0, errors.New("the kernel tells no cgroup")
}

// attributes reads those of a message, by their type. The library's reader looks behind the end of one whose length is no multiple of 4.
func attributes(b []byte) (map[uint16][]byte, error) {
	all := map[uint16][]byte{}
	for len(b) >= unix.SizeofRtAttr {
		n := int(binary.NativeEndian.Uint16(b))
		if n < unix.SizeofRtAttr || n > len(b) {
			return nil, unix.EINVAL
		}
		all[binary.NativeEndian.Uint16(b[2:])] = b[unix.SizeofRtAttr:n]
		b = b[min((n+3)&^3, len(b)):]
	}
	return all, nil
}

// addMade adds the TCP and UDP sockets of the caller's network namespace that were made in some cgroups, whoever has them: none does
// whose descriptor waits in a message to be received.
func addMade(inodes, cgroups map[uint64]bool) error {
	var errs []error
	for proto, name := range names {
		for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
			req := nl.NewNetlinkRequest(nl.SOCK_DIAG_BY_FAMILY, unix.NLM_F_DUMP)
			req.AddData(destroyRequest{family, proto, &netlink.Socket{ID: netlink.SocketID{Source: net.IPv6zero, Destination: net.IPv6zero}}})
			messages, err := req.Execute(unix.NETLINK_INET_DIAG, nl.SOCK_DIAG_BY_FAMILY)
			if err != nil {
				errs = append(errs, fmt.Errorf("list cgroups of %s sockets: %w", name, err))
			}
			for _, m := range messages {
				if len(m) < sizeofDiagMessage {
					continue
				}
				inode := binary.NativeEndian.Uint32(m[sizeofDiagMessage-4:])
				if id, err := cgroupOf(m); err == nil && inode != 0 && cgroups[id] {
					inodes[uint64(inode)] = true
				}
			}
		}
	}
	return errors.Join(errs...)
}

// below are the ids of a cgroup and of all below it.
func below(path string) (map[uint64]bool, error) {
	id, err := linux.CgroupID(path)
	if err != nil {
		return nil, err
	}
	ids := map[uint64]bool{id: true}
	return ids, addBelow(ids, path)
}

func addBelow(ids map[uint64]bool, path string) error {
	children, err := linux.CgroupChildren(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil // removed meanwhile
	}
	if err != nil {
		return err
	}
	for child, id := range children {
		ids[id] = true
		if err := addBelow(ids, child); err != nil {
			return err
		}
	}
	return nil
}

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
