package socket

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// sizeofDiagMessage is that of inet_diag_msg of linux/inet_diag.h; attributes follow.
const sizeofDiagMessage = 72

// Cgroup returns the id of the cgroup that the TCP socket from local to remote
// belongs to, in the network namespace of the caller. The error wraps unix.ENOENT if
// there is no such socket.
func Cgroup(local, remote netip.AddrPort) (uint64, error) {
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
	attrs, err := nl.ParseRouteAttr(messages[0][sizeofDiagMessage:])
	if err != nil {
		return 0, fmt.Errorf("read the socket from %s to %s: %w", local, remote, err)
	}
	for _, a := range attrs {
		if a.Attr.Type == netlink.INET_DIAG_CGROUP_ID && len(a.Value) == 8 {
			return binary.NativeEndian.Uint64(a.Value), nil
		}
	}
	return 0, fmt.Errorf("read the socket from %s to %s: the kernel tells no cgroup", local, remote)
}

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
