package control

import (
	"context"
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

// answers is who answers, for the log. The name that a console says is behind the kernel's, and cannot pose as more than it is.
func (p peer) answers(q reasoned) (string, error) {
	switch by := p.by(q.By); {
	case q.Login == "":
		return by, nil
	case !LoginName(q.Login):
		return "", Errorf(Usage, "the name of who logged in is none: 1 to %d visible ASCII characters without brackets", maxLogin)
	default:
		return q.Login + " (through the console of " + by + ")", nil
	}
}

const maxLogin = 128 // bytes

// LoginName says whether a name can stand for who logged in to a console.
func LoginName(s string) bool {
	return s != "" && len(s) <= maxLogin && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("()[]{}<>", r) })
}

type loginKey struct{}

// WithLogin is for a client's Answer and Revoke: who logged in to it. An empty name is nobody's.
func WithLogin(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, loginKey{}, name)
}

// LoginOf is the name that WithLogin left.
func LoginOf(ctx context.Context) string {
	name, _ := ctx.Value(loginKey{}).(string)
	return name
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
