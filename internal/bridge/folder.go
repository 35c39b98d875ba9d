package bridge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"weir/internal/bridge/wire"
)

// FindFolder opens the folder of a container; the error is fs.ErrNotExist where it has none. It may hang: the file system can be the container's.
type FindFolder func(container string) (*Folder, error)

// Folders answers in the folders of any number of containers.
type Folders struct {
	find   FindFolder
	answer Answer
	logger logrus.FieldLogger
	ctx    context.Context
	cancel context.CancelFunc
	long   chan struct{}
	notify *os.File // inotify: one for all, since there are few for each user
	fd     int      // its descriptor: asking the file for it would make reads block for ever

	mu       sync.Mutex
	workers  map[string]context.CancelFunc // by container id
	owners   map[key]map[string]bool       // containers that have a folder
	watches  map[int32]chan struct{}
	running  sync.WaitGroup
	inotify  sync.WaitGroup
	finished bool
}

// NewFolders makes a server for no container. The caller closes it.
func NewFolders(find FindFolder, answer Answer, l logrus.FieldLogger) (*Folders, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch folders: %w", err)
	}
	s := &Folders{
		find: find, answer: answer, logger: l, long: make(chan struct{}, maxFolderLong), notify: os.NewFile(uintptr(fd), "inotify"), fd: fd,
		workers: map[string]context.CancelFunc{}, owners: map[key]map[string]bool{}, watches: map[int32]chan struct{}{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.inotify.Go(s.watch)
	return s, nil
}

// Serve says which containers there are now. Their folders are looked for, again and again.
func (s *Folders) Serve(containers []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finished {
		return
	}
	here := map[string]bool{}
	for _, id := range containers {
		here[id] = true
		if s.workers[id] != nil {
			continue
		}
		ctx, cancel := context.WithCancel(s.ctx)
		s.workers[id] = cancel
		// One for each: a folder on a file system that never answers holds up nobody else.
		s.running.Go(func() { s.work(ctx, id) })
	}
	for id, cancel := range s.workers {
		if !here[id] {
			cancel()
			delete(s.workers, id)
		}
	}
}

// Close ends all that is answered. A worker that a container's file system holds is not waited for longer than most.
func (s *Folders) Close(most time.Duration) error {
	s.mu.Lock()
	s.finished = true
	s.mu.Unlock()
	s.cancel()
	if !over(&s.running, most) {
		s.logger.Warn("a container's folder does not answer")
	}
	err := s.notify.Close()
	s.inotify.Wait()
	return err
}

// over says whether all end, for which it waits no longer than most.
func over(running *sync.WaitGroup, most time.Duration) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		running.Wait()
	}()
	select {
	case <-done:
		return true
	case <-time.After(most):
		return false
	}
}

// work looks for one container's folder, and serves it for as long as it is there.
func (s *Folders) work(ctx context.Context, id string) {
	told := ""
	for {
		f, err := s.find(id)
		if err == nil {
			told = ""
			s.attend(ctx, id, f)
		} else if !errors.Is(err, fs.ErrNotExist) && err.Error() != told {
			told = err.Error()
			s.logger.WithError(err).WithField("container", id).Warn("a container's folder for requests is left out")
		}
		if !sleep(ctx, wire.AliveEvery) {
			return
		}
	}
}

// attend serves a folder until the container has another, or none.
func (s *Folders) attend(ctx context.Context, id string, f *Folder) {
	defer f.Close()
	defer s.own(f.key, id)()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed, unwatch, err := s.watchFolder(f)
	if err != nil {
		s.logger.WithError(err).WithField("container", id).Warn("requests in a folder are seen every two seconds only")
	} else {
		defer unwatch()
	}
	logger := s.logger.WithField("container", id)
	var serving sync.WaitGroup
	serving.Go(func() {
		(&box{Folder: f, container: id, answer: s.answer, logger: logger, long: []chan struct{}{make(chan struct{}, maxFolderOwn), s.long}, alone: func() bool { return s.alone(f.key) }}).serve(ctx, changed)
	})
	defer serving.Wait()
	defer cancel()
	shared := false
	for sleep(ctx, wire.AliveEvery) {
		if now := !s.alone(f.key); now != shared {
			if shared = now; shared {
				logger.Warn("a folder for requests is left out: several containers have it, so nobody can tell who asks there")
			}
		}
		again, err := s.find(id)
		if err != nil {
			return
		}
		same := again.key == f.key && again.uid == f.uid
		if again.Close(); !same {
			return
		}
	}
}

// own notes whose a folder is until the function that it returns is called.
func (s *Folders) own(k key, id string) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owners[k] == nil {
		s.owners[k] = map[string]bool{}
	}
	s.owners[k][id] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if delete(s.owners[k], id); len(s.owners[k]) == 0 {
			delete(s.owners, k)
		}
	}
}

func (s *Folders) alone(k key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.owners[k]) == 1
}

// watchFolder has the kernel tell when something came or went in a folder.
func (s *Folders) watchFolder(f *Folder) (<-chan struct{}, func(), error) {
	changed := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	wd, err := unix.InotifyAddWatch(s.fd, "/proc/self/fd/"+strconv.Itoa(int(f.dir.Fd())), unix.IN_MOVED_TO|unix.IN_CLOSE_WRITE|unix.IN_DELETE|unix.IN_MOVED_FROM)
	if err != nil {
		return changed, nil, fmt.Errorf("watch folder: %w", err)
	}
	s.watches[int32(wd)] = changed
	return changed, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.watches[int32(wd)] == changed { // else another container has the same folder, and the same watch
			delete(s.watches, int32(wd))
			_, _ = unix.InotifyRmWatch(s.fd, uint32(wd)) // the folder may be gone
		}
	}, nil
}

// watch passes on where something changed. What is lost here is seen at the next look.
func (s *Folders) watch() {
	buffer := make([]byte, 64<<10)
	for {
		n, err := s.notify.Read(buffer)
		if err != nil {
			if !errors.Is(err, os.ErrClosed) {
				s.logger.WithError(err).Error("watch folders")
			}
			return
		}
		s.mu.Lock()
		for data := buffer[:n]; len(data) >= unix.SizeofInotifyEvent; {
			e := (*unix.InotifyEvent)(unsafe.Pointer(&data[0]))
			if changed := s.watches[e.Wd]; changed != nil {
				select {
				case changed <- struct{}{}:
				default:
				}
			}
			data = data[min(len(data), unix.SizeofInotifyEvent+int(e.Len)):]
		}
		s.mu.Unlock()
	}
}
