package linux

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
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

// Soon is what f finds where a container may have mounted a file system that never answers. It waits no longer than most, and ok is false
// then, as it is where all slots are taken: what hangs keeps its slot.
func Soon[T any](slots chan struct{}, most time.Duration, f func() T) (found T, ok bool) {
	select {
	case slots <- struct{}{}:
	default:
		return found, false
	}
	done := make(chan T, 1)
	go func() {
		defer func() { <-slots }()
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
