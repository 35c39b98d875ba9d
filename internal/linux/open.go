package linux

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// OpenInput opens what is read to its end: a file or a pipe. A FIFO that nobody writes to ends at once, instead of waiting for who does. A
// device, which may never end, is refused.
func OpenInput(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = &fs.PathError{Op: "open", Path: path, Err: unix.EISDIR}
	case !info.Mode().IsRegular() && info.Mode()&fs.ModeNamedPipe == 0:
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("it is a device: name a file")}
	default:
		return f, nil
	}
	f.Close()
	return nil, err
}

// ReadInput reads at most most bytes of what OpenInput opens, and one more, by which who calls it sees that there are more.
func ReadInput(path string, most int64) ([]byte, error) {
	f, err := OpenInput(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}

// Slots are for what may hang at once: All in all, and Own of one container.
type Slots struct {
	All, Own int

	mu  sync.Mutex
	all int
	own map[string]int
}

func (s *Slots) take(whose string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= s.All || s.own[whose] >= s.Own {
		return false
	}
	if s.own == nil {
		s.own = map[string]int{}
	}
	s.all++
	s.own[whose]++
	return true
}

func (s *Slots) free(whose string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.own[whose]--; s.own[whose] == 0 {
		delete(s.own, whose)
	}
}

// Soon is what f finds where a container may have mounted a file system that never answers. It waits no longer than most, and ok is false
// then, as it is where all slots are taken, or all that one container may have: what hangs keeps its slot (B154).
func Soon[T any](slots *Slots, whose string, most time.Duration, f func() T) (found T, ok bool) {
	if !slots.take(whose) {
		return found, false
	}
	done := make(chan T, 1)
	go func() {
		defer slots.free(whose)
		done <- f()
	}()
	select {
	case found = <-done:
		return found, true
	case <-time.After(most):
		return found, false
	}
}

// ReadLine reads a line with its end; of one that is longer than most bytes the rest is read and dropped.
func ReadLine(in *bufio.Reader, most int) (line []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > most; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}
