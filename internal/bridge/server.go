package bridge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
)

// Limits on what containers may take.
const (
	maxConns     = 1024     // connections in all
	maxOwnConns  = 512      // of one container
	maxStrangers = 16       // of processes that are in no container
	maxOwnFlight = 64       // requests of one container that wait for their answers
	maxHookRuns  = 16       // operator's hooks that run at once
	maxFlight    = 16       // requests of one connection that wait for their answers
	maxShort     = 16 << 10 // bytes of a line that needs no room of its own
	maxLong      = 8        // longer lines at once
	maxOwnLong   = 2        // of one container
)

// Server listens on any number of sockets. Its methods may be called at the same time.
type Server struct {
	host   Host
	rules  atomic.Pointer[Rules]
	logger logrus.FieldLogger
	tools  Tools // nil: none are offered
	ctx    context.Context
	cancel context.CancelFunc

	carrier Carrier // nil: no call is carried out

	mu      sync.Mutex
	sockets map[string]*net.UnixListener
	use     map[string]*usage // by container id
	runs    chan struct{}     // taken by each hook that runs
	conns   int
	long    int
	closed  bool
	running sync.WaitGroup
}

// usage is what one container takes.
type usage struct {
	conns, long int
	flight      chan struct{}
}

// New makes a server without a socket. The caller closes it.
func New(h Host, l logrus.FieldLogger) *Server {
	s := &Server{host: h, logger: l, sockets: map[string]*net.UnixListener{}, use: map[string]*usage{}, runs: make(chan struct{}, maxHookRuns)}
	s.rules.Store(standing())
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Listen answers on a socket at path, which everybody may connect to: who asks decides, not the path. What stood there is replaced.
func (s *Server) Listen(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("listen on bridge: it is closed")
	}
	if s.sockets[path] != nil {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("replace bridge socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return fmt.Errorf("listen on bridge: %w", err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		return errors.Join(fmt.Errorf("open bridge socket to containers: %w", err), l.Close())
	}
	s.sockets[path] = l
	s.running.Go(func() { s.accept(l, path) })
	return nil
}

// Remove stops listening on a path and removes the socket. Connections go on.
func (s *Server) Remove(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.sockets[path]
	if l == nil {
		return nil
	}
	delete(s.sockets, path)
	return l.Close()
}

// Close stops everything: who waits is denied. What a container's file system holds is not waited for longer than most (B154).
func (s *Server) Close(most time.Duration) error {
	s.mu.Lock()
	s.closed = true
	var errs []error
	for path, l := range s.sockets {
		errs = append(errs, l.Close())
		delete(s.sockets, path)
	}
	s.mu.Unlock()
	s.cancel()
	if !over(&s.running, most) {
		s.logger.Warn("a container's file system does not answer")
	}
	return errors.Join(errs...)
}

func (s *Server) accept(l *net.UnixListener, path string) {
	for {
		conn, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of descriptors, say: who waits in the queue may be served later.
			s.logger.WithError(err).WithField("socket", path).Error("accept on bridge")
			if !sleep(s.ctx, 100*time.Millisecond) {
				return
			}
			continue
		}
		s.mu.Lock()
		full := s.conns >= maxConns || s.closed
		if !full {
			s.conns++
			s.running.Add(1)
		}
		s.mu.Unlock()
		if full {
			conn.Close() // nobody is served: the client sees the end of the connection, which allows nothing
			continue
		}
		go func() {
			defer s.running.Done()
			defer func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.conns--
			}()
			s.serve(conn)
		}()
	}
}

// enter counts a connection of a container; nil: it has its share.
func (s *Server) enter(container string) *usage {
	most := maxOwnConns
	if container == "" {
		most = maxStrangers
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.use[container]
	if u == nil {
		u = &usage{flight: make(chan struct{}, maxOwnFlight)}
		s.use[container] = u
	}
	if u.conns >= most {
		return nil
	}
	u.conns++
	return u
}

func (s *Server) leave(container string, u *usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.conns--; u.conns == 0 {
		delete(s.use, container)
	}
}

// room takes the room of a long line; false: there is none now.
func (s *Server) room(u *usage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.long >= maxLong || u.long >= maxOwnLong {
		return false
	}
	s.long++
	u.long++
	return true
}

func (s *Server) free(u *usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.long--
	u.long--
}
