package control

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"weir/internal/linux"

	"golang.org/x/sys/unix"
)

// peer is who is at the other end, as the kernel says.
type peer struct {
	pid    int
	uid    uint32
	groups []uint32
	err    error // why it is unknown
}

type peerKey struct{}

// peerOf is who sent a request; one that is unknown has an error.
func peerOf(r *http.Request) peer {
	p, ok := r.Context().Value(peerKey{}).(peer)
	if !ok {
		return peer{err: errors.New("identify peer: not a Unix socket")}
	}
	return p
}

func identify(conn *net.UnixConn) peer {
	var cred *unix.Ucred
	var groups []uint32
	err := linux.OnFD(conn, func(fd int) (err error) {
		if cred, err = unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			groups, err = groupsOf(fd)
		}
		return err
	})
	if err != nil {
		return peer{err: fmt.Errorf("identify peer: %w", err)}
	}
	return peer{pid: int(cred.Pid), uid: cred.Uid, groups: append(groups, cred.Gid)}
}

// by is who asks, for the log. Only root's word counts for another.
func (p peer) by(said string) string {
	if p.uid != 0 {
		said = ""
	}
	return p.name(said)
}

// name is the peer for the log: "root (alice)". The person is who logged in, as
// the kernel's audit remembers, and who the client says it works for.
func (p peer) name(said string) string {
	people := []string{}
	for _, s := range []string{p.login(), said} {
		if s = plain(s); s != "" && !slices.Contains(people, s) {
			people = append(people, s)
		}
	}
	name := userName(p.uid)
	people = slices.DeleteFunc(people, func(s string) bool { return s == name })
	if len(people) == 0 {
		return name
	}
	return name + " (" + strings.Join(people, ", ") + ")"
}

func (p peer) login() string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/loginuid", p.pid))
	if err != nil {
		return ""
	}
	uid, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 32)
	if err != nil || uint32(uid) == ^uint32(0) {
		return ""
	}
	return userName(uint32(uid))
}

func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	if uid == 0 {
		return "root"
	}
	return "uid " + id
}

// plain keeps what a name may hold, so that it cannot pose as another.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.@+: ", r) {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > 64 {
		s = strings.ToValidUTF8(s[:64], "")
	}
	return strings.TrimSpace(s)
}
