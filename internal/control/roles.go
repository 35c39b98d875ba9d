package control

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Roles are the groups whose members may use the control socket besides root. Those who may answer or taint may look, too.
type Roles struct {
	Look   []uint32 // see what is
	Answer []uint32 // answer questions, and end approvals that go on
	Taint  []uint32 // taint containers, and never clear taint
}

// all are the groups of every role, each once, in order.
func (r Roles) all() []uint32 {
	all := slices.Concat(r.Look, r.Answer, r.Taint)
	slices.Sort(all)
	return slices.Compact(all)
}

// may says whether a member of groups may ask for an operation. What is not listed here is root's alone.
func (r Roles) may(groups []uint32, operation string) bool {
	of := map[string][]uint32{"approve": r.Answer, "deny": r.Answer, "revoke": r.Answer, "taint": r.Taint, "taint-path": r.Taint}[operation]
	switch operation {
	case "status", "containers", "pending", "history", "approvals", "why", "events", "log", "metrics", "peer", "signed", "moved": // what is signed counts for who signed it, and a container that moved can only be tainted
		of = r.all()
	}
	return slices.ContainsFunc(groups, func(g uint32) bool { return slices.Contains(of, g) })
}

// SetRoles says who may use the socket besides root, from now on. The kernel lets nobody else connect. When that fails, root alone may.
func (s *Server) SetRoles(r Roles) error {
	s.roles.Store(&Roles{})
	if err := permit(s.path, r.all()); err != nil {
		return fmt.Errorf("let groups use the control socket: %w", err)
	}
	s.roles.Store(&r)
	return nil
}

// The parts of a POSIX access control list, as linux/posix_acl_xattr.h has them.
const (
	aclName    = "system.posix_acl_access"
	aclVersion = 2
	aclOwner   = 0x01
	aclOwning  = 0x04
	aclGroup   = 0x08
	aclMask    = 0x10
	aclOther   = 0x20
	aclNone    = ^uint32(0)
	aclUse     = 6 // read and write
)

// permit lets the owner and the members of groups use a file, and nobody else.
func permit(path string, groups []uint32) error {
	if len(groups) == 0 {
		if err := unix.Removexattr(path, aclName); err != nil && err != unix.ENODATA && err != unix.EOPNOTSUPP {
			return err
		}
		return os.Chmod(path, 0o600)
	}
	list := binary.LittleEndian.AppendUint32(nil, aclVersion)
	add := func(tag, use uint16, id uint32) {
		list = binary.LittleEndian.AppendUint16(list, tag)
		list = binary.LittleEndian.AppendUint16(list, use)
		list = binary.LittleEndian.AppendUint32(list, id)
	}
	add(aclOwner, aclUse, aclNone)
	add(aclOwning, 0, aclNone)
	for _, g := range groups {
		add(aclGroup, aclUse, g)
	}
	add(aclMask, aclUse, aclNone)
	add(aclOther, 0, aclNone)
	return unix.Setxattr(path, aclName, list, 0)
}

// orGroup names the groups that permit lets use a file, for people; empty: none.
func orGroup(path string) string {
	list := make([]byte, 1<<16) // as long as an attribute can be
	n, err := unix.Getxattr(path, aclName, list)
	if err != nil || n < 4 {
		return ""
	}
	var names []string
	for entry := range slices.Chunk(list[4:n], 8) {
		if len(entry) < 8 || binary.LittleEndian.Uint16(entry) != aclGroup {
			continue
		}
		name := strconv.FormatUint(uint64(binary.LittleEndian.Uint32(entry[4:])), 10)
		if g, err := user.LookupGroupId(name); err == nil {
			name = g.Name
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return ""
	}
	return ", or membership of " + strings.Join(names, " or ")
}

// groupsOf are the groups that a peer had as it connected, as the kernel says.
func groupsOf(fd int) ([]uint32, error) {
	groups := make([]uint32, 64)
	for {
		size := uint32(len(groups) * 4)
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS, uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case errno == unix.ERANGE && int(size) > len(groups)*4:
			groups = make([]uint32, size/4)
		case errno != 0:
			return nil, errno
		default:
			return groups[:size/4], nil
		}
	}
}

// admit refuses who may not ask for what a request asks for.
func (s *Server) admit(r *http.Request, refuse func(pid int) error) error {
	p := peerOf(r)
	if p.err != nil {
		return p.err
	}
	if p.uid != s.uid {
		roles, operation := s.roles.Load(), strings.TrimPrefix(r.URL.Path, "/")
		switch {
		case roles.may(p.groups, operation):
		case roles.may(p.groups, "status"):
			return Errorf(Denied, "refused: %.40q is for root, or for another group of the policy's control: run it with sudo", operation)
		default:
			return Errorf(Denied, "refused: only root, and groups of the policy's control, may use the control socket: run it with sudo")
		}
	}
	if refuse != nil {
		if err := refuse(p.pid); err != nil {
			return Errorf(Denied, "refused: %w", err)
		}
	}
	return nil
}
