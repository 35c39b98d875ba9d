package control

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/bridge/wire"
	"weir/internal/event"
	"weir/internal/linux"
)

// Where a sensor is reached.
const (
	DefaultDir = wire.Run
	socketName = "control.sock"
	lockName   = "control.lock"
)

const (
	maxConns    = 128
	requestTime = 10 * time.Second // for a request to arrive, and an answer to be taken
)

// Server listens for operators. It is the mark that this sensor is the only one.
type Server struct {
	listener *net.UnixListener
	lock     *os.File
	path     string
	uid      uint32 // whose requests are taken
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
	s.close = sync.OnceValue(func() error {
		return errors.Join(listener.Close(), lock.Close())
	})
	if err := os.Chmod(path, 0o600); err != nil {
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
	raw, err := s.listener.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("read control socket's cookie: %w", err)
	}
	var cookie uint64
	var sockErr error
	if err := raw.Control(func(fd uintptr) {
		cookie, sockErr = unix.GetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_COOKIE)
	}); err != nil {
		return 0, fmt.Errorf("read control socket's cookie: %w", err)
	}
	if sockErr != nil {
		return 0, fmt.Errorf("read control socket's cookie: %w", sockErr)
	}
	return cookie, nil
}

// Close stops listening, removes the socket and lets another sensor start. It
// may be called more than once.
func (s *Server) Close() error { return s.close() }

// Serve answers requests until ctx ends, then closes the Server and waits for
// those under way. Peers that are not root are refused, and those that refuse, if
// it is not nil, returns an error for: its text is what they are told.
func (s *Server) Serve(ctx context.Context, b Backend, refuse func(pid int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer s.Close()
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()

	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, maxConns)
	all := handlers()
	for {
		conn, err := s.listener.AcceptUnix()
		if ctx.Err() != nil {
			if err == nil {
				conn.Close()
			}
			return nil
		}
		if err != nil {
			cancel()
			return fmt.Errorf("accept on control socket: %w", err)
		}
		c := &connection{conn: conn}
		select {
		case slots <- struct{}{}:
		default:
			c.write(answer{Error: "too many requests at once: try again", Code: Failed}, requestTime)
			conn.Close()
			continue
		}
		running.Go(func() {
			defer func() { <-slots }()
			defer conn.Close()
			result, err := s.serve(ctx, c, b, refuse, all)
			c.finish(result, err)
		})
	}
}

func (s *Server) serve(ctx context.Context, c *connection, b Backend, refuse func(int) error, all map[string]handler) (any, error) {
	p, err := peerOf(c.conn)
	if err != nil {
		return nil, err
	}
	if p.uid != s.uid {
		return nil, Errorf(Denied, "refused: only root may use the control socket")
	}
	if refuse != nil {
		if err := refuse(p.pid); err != nil {
			return nil, Errorf(Denied, "refused: %w", err)
		}
	}
	if err := c.conn.SetReadDeadline(time.Now().Add(requestTime)); err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	line, err := readLine(bufio.NewReader(c.conn), maxRequest)
	if err != nil {
		if Code(err) == Usage {
			return nil, Errorf(Usage, "read request: %w", err)
		}
		return nil, fmt.Errorf("read request: %w", err)
	}
	op, err := operation(line)
	if err != nil {
		return nil, err
	}
	h, ok := all[op]
	if !ok {
		return nil, unknown(op, all)
	}
	if op == "events" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		stop := c.watch(ctx, cancel)
		defer stop()
	}
	return h(ctx, exchange{backend: b, line: line, who: p.name, from: p.origin, send: c.send})
}

// connection is one peer's.
type connection struct {
	conn *net.UnixConn
}

// watch ends a stream when the client goes, also while nothing is to be written,
// and unblocks a write to one that does not read when ctx ends.
func (c *connection) watch(ctx context.Context, gone context.CancelFunc) (stop func() bool) {
	c.conn.SetReadDeadline(time.Time{})
	go func() {
		defer gone()
		io.Copy(io.Discard, c.conn)
		// The client has said all, and may still listen: socat ends its side so.
		for ctx.Err() == nil && !linux.HungUp(c.conn) {
			time.Sleep(200 * time.Millisecond)
		}
	}()
	return context.AfterFunc(ctx, func() { c.conn.SetDeadline(time.Now()) })
}

func (c *connection) send(result any) error {
	data, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	return c.write(answer{OK: true, More: true, Result: data}, 0)
}

// finish writes the last line. A peer that has gone needs none.
func (c *connection) finish(result any, err error) {
	a := answer{OK: err == nil}
	if err == nil && result != nil {
		a.Result, err = json.Marshal(result)
	}
	if err != nil {
		a = answer{Error: event.Plain(err), Code: Code(err)}
	}
	c.write(a, requestTime)
	// Closing with unread input would reset the connection, and the answer with it.
	c.conn.CloseWrite()
	c.conn.SetReadDeadline(time.Now().Add(time.Second))
	io.Copy(io.Discard, io.LimitReader(c.conn, 4*maxRequest))
}

// write writes one line; a limit of 0 waits as long as the peer does not read.
func (c *connection) write(a answer, limit time.Duration) error {
	line, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	if limit > 0 {
		c.conn.SetWriteDeadline(time.Now().Add(limit))
	}
	if _, err := c.conn.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}
