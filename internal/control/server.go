package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"weir/internal/bridge/wire"
	"weir/internal/linux"
)

// Where a sensor is reached.
const (
	DefaultDir = wire.Run
	socketName = "control.sock"
	lockName   = "control.lock"
)

// How many requests there may be at once. Members of groups have theirs apart: they keep root from nothing, and one of them keeps no other from
// anything. Who follows events stays, so these are counted apart as well.
const (
	maxConns   = 128
	maxMembers = 64
	maxOwn     = 16 // of one member
)

// room bounds how many requests there are at once: of all, and of one user.
type room struct {
	most, own int

	mu    sync.Mutex
	taken map[uint32]int
	all   int
	empty chan struct{} // closed when nobody is in it any more, once it is not nil: then nobody enters
}

func (r *room) enter(uid uint32) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.empty != nil || r.all >= r.most || r.taken[uid] >= r.own {
		return false
	}
	if r.taken == nil {
		r.taken = map[uint32]int{}
	}
	r.all++
	r.taken[uid]++
	return true
}

func (r *room) leave(uid uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all--
	if r.taken[uid]--; r.taken[uid] == 0 {
		delete(r.taken, uid)
	}
	if r.all == 0 && r.empty != nil {
		close(r.empty)
	}
}

// close lets nobody in any more, and waits until all have left.
func (r *room) close() {
	r.mu.Lock()
	r.empty = make(chan struct{})
	if r.all == 0 {
		close(r.empty)
	}
	r.mu.Unlock()
	<-r.empty
}

// Server listens for operators. It is the mark that this sensor is the only one.
type Server struct {
	listener *net.UnixListener
	lock     *os.File
	path     string
	uid      uint32                // whose requests are taken
	roles    atomic.Pointer[Roles] // and of whom else
	close    func() error
}

// Listen makes dir, takes its lock and listens on its socket; it serves nothing
// yet. It returns an error that is ErrRunning, with the other's pid, when the
// lock is taken. A socket that a dead sensor left is replaced. The caller closes
// the Server.
func Listen(dir string) (*Server, error) {
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	lock, err := takeLock(filepath.Join(dir, lockName))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, socketName)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		lock.Close()
		return nil, fmt.Errorf("replace control socket: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("listen on control socket: %w", err)
	}
	s := &Server{listener: listener, lock: lock, path: path}
	s.roles.Store(&Roles{})
	s.close = sync.OnceValue(func() error {
		err := listener.Close()
		if errors.Is(err, net.ErrClosed) { // by the HTTP server
			err = nil
		}
		return errors.Join(err, lock.Close())
	})
	if err := permit(path, nil); err != nil {
		s.Close()
		return nil, fmt.Errorf("protect control socket: %w", err)
	}
	return s, nil
}

func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return fmt.Errorf("make control directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("make control directory: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("make control directory: %s is no directory: remove it", dir)
	}
	if err := os.Chmod(dir, 0o711); err != nil { // the bridge below it is for everybody
		return fmt.Errorf("protect control directory: %w", err)
	}
	return nil
}

func takeLock(path string) (*os.File, error) {
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open control lock: %w", err)
	}
	switch err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		pid, _ := io.ReadAll(io.LimitReader(lock, 16))
		lock.Close()
		return nil, fmt.Errorf("%w (pid %s): use it, or stop it first", ErrRunning, cmp.Or(strings.TrimSpace(string(pid)), "unknown"))
	case err != nil:
		lock.Close()
		return nil, fmt.Errorf("take control lock %s: %w", path, err)
	}
	err = lock.Truncate(0)
	if err == nil {
		_, err = fmt.Fprintln(lock, os.Getpid())
	}
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("write control lock: %w", err)
	}
	return lock, nil
}

// Cookie returns the listening socket's cookie, by which the kernel knows it.
func (s *Server) Cookie() (uint64, error) {
	var cookie uint64
	err := linux.OnFD(s.listener, func(fd int) (err error) {
		cookie, err = unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read control socket's cookie: %w", err)
	}
	return cookie, nil
}

// Close stops listening, removes the socket and lets another sensor start. It
// may be called more than once.
func (s *Server) Close() error { return s.close() }

// Serve answers requests until ctx ends, then closes the Server and waits for
// those under way. Peers that are not root and have no role are refused, and those that refuse, if
// it is not nil, returns an error for: its text is what they are told.
func (s *Server) Serve(ctx context.Context, b Backend, refuse func(pid int) error) error {
	defer s.Close()
	all := operationsOf(b)
	roots, rootsFollow := &room{most: maxConns, own: maxConns}, &room{most: maxConns, own: maxConns}
	members, membersFollow := &room{most: maxMembers, own: maxOwn}, &room{most: maxMembers, own: maxOwn}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := newHTTPServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.admit(r, refuse); err != nil {
			reply(w, nil, err)
			return
		}
		uid, in, follow := peerOf(r).uid, roots, rootsFollow
		if uid != s.uid {
			in, follow = members, membersFollow
		}
		if r.URL.Path == "/events" || r.URL.Path == "/moved" { // they wait
			in = follow
		}
		if !in.enter(uid) {
			reply(w, nil, errors.New("too many requests at once: try again"))
			return
		}
		defer in.leave(uid)
		all.ServeHTTP(w, r)
	}), 0)
	server.WriteTimeout = 0 // following has no end; an answer has a limit of its own
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, peerKey{}, identify(conn.(*net.UnixConn)))
	}
	err := serveHTTP(ctx, server, s.listener)
	cancel()
	for _, in := range []*room{roots, rootsFollow, members, membersFollow} { // none is under way, and none begins
		in.close()
	}
	if err != nil {
		return fmt.Errorf("accept on control socket: %w", err)
	}
	return nil
}
