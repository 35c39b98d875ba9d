package agenthook

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/bridge/wire"
)

const (
	// A sensor that is there says so more often.
	aliveFor  = 15 * time.Second
	firstWait = 5 * time.Millisecond
	longWait  = 100 * time.Millisecond
	maxAnswer = 64 << 10
)

var (
	errNoFolder = errors.New("no sensor answers in the folder")
	errOwner    = errors.New("the hook cannot tell who answers in the folder: the agent must not run as the sensor's user")
	errReplaced = errors.New("there is another file in its place now")
	errStamp    = errors.New("the hook cannot tell who answers in the folder: an agent that is root needs a sensor's stamp on each answer, and this one has none")
	errForger   = errors.New("the hook cannot tell who answers in the folder: an agent that is root must not have CAP_SYS_ADMIN, with which it could answer itself")
)

// folder is where to ask when there is no socket.
type folder struct{ path string }

// alive says whether a sensor answers there.
func (f folder) alive() error {
	for range 10 {
		if err := f.signed(); !errors.Is(err, errReplaced) {
			return err
		}
	}
	return errOwner // no sensor does it so often
}

// signed looks at what a sensor says so with.
func (f folder) signed() error {
	file, err := open(f.path + "/" + wire.Alive)
	if err != nil {
		return errNoFolder
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return errNoFolder
	}
	if err := written(file, nil); err != nil {
		return err
	}
	if age := time.Since(info.ModTime()); age > aliveFor || age < -aliveFor {
		return errNoFolder
	}
	return nil
}

// ask leaves one line as a request, and waits for its answer. What it made is removed again.
func (f folder) ask(ctx context.Context, id string, line []byte) (data []byte, err error) {
	if err := f.alive(); err != nil {
		return nil, err
	}
	request, answer, temp := f.path+"/"+id+wire.RequestSuffix, f.path+"/"+id+wire.AnswerSuffix, f.path+"/"+wire.TempPrefix+id
	defer func() {
		for _, name := range []string{temp, request, answer} {
			if gone := os.Remove(name); gone != nil && !errors.Is(gone, os.ErrNotExist) && err == nil {
				err = fmt.Errorf("tidy the folder: %w", plain(gone))
			}
		}
	}()
	if err := leave(temp, line); err != nil {
		return nil, err
	}
	if err := os.Rename(temp, request); err != nil {
		return nil, plain(err)
	}
	late := time.Now().Add(askTime)
	for wait := firstWait; ; wait = min(2*wait, longWait) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
		data, err := f.read(answer)
		if !errors.Is(err, os.ErrNotExist) {
			return data, err
		}
		if err := f.alive(); err != nil {
			return nil, err
		}
		if time.Now().After(late) {
			return nil, plain(os.ErrDeadlineExceeded)
		}
	}
}

// leave writes a request, unless this process could answer it as well.
func leave(temp string, line []byte) error {
	file, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return plain(err)
	}
	defer file.Close()
	if err := forger(file); err != nil {
		return err
	}
	if _, err = file.Write(line); err == nil {
		err = file.Close()
	}
	if err != nil {
		return plain(err)
	}
	return nil
}

// open opens a file of the folder that is a plain one, or is found out to be none without waiting.
func open(path string) (*os.File, error) {
	return os.OpenFile(path, unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
}

// read takes an answer that the sensor wrote.
func (f folder) read(path string) ([]byte, error) {
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxAnswer))
	if err != nil {
		return nil, plain(err)
	}
	return data, written(file, data)
}

// written says whether the sensor can have written a file with that content, and the agent cannot: who can write an answer would say yes to
// everything. For most users only root can; root outside may have no name in here. Whoever is root itself needs the sensor's stamp.
func written(file *os.File, data []byte) error {
	const nobody = 65534
	info, err := file.Stat()
	if err != nil {
		return plain(err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if ok && st.Nlink == 0 {
		return errReplaced
	}
	if !ok || !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 || st.Nlink != 1 || st.Uid != 0 && st.Uid != nobody {
		return errOwner
	}
	if own := os.Geteuid(); own != 0 {
		if st.Uid == uint32(own) {
			return errOwner
		}
		return nil
	}
	var stamp [sha256.Size + 1]byte
	n, err := unix.Fgetxattr(int(file.Fd()), wire.Stamp, stamp[:])
	if sum := sha256.Sum256(data); err != nil || string(stamp[:n]) != string(sum[:]) {
		return errStamp
	}
	return nil
}

// forger tells whether this process could stamp a file itself: then a stamp says nothing.
func forger(own *os.File) error {
	if os.Geteuid() != 0 {
		return nil
	}
	switch err := unix.Fsetxattr(int(own.Fd()), wire.Stamp, []byte("x"), 0); {
	case err == nil:
		return errForger
	case errors.Is(err, unix.EPERM):
		return nil
	}
	return errStamp // nobody can here
}

// folder is the folder of this process.
func (w World) folder() folder {
	if path := env(w.Environ, wire.FolderVariable); path != "" {
		return folder{path}
	}
	return folder{wire.Folder}
}

// answerTo reads the answer to a request.
func answerTo(id string, data []byte) (wire.Answer, error) {
	var answer wire.Answer
	if err := json.Unmarshal(data, &answer); err != nil {
		return wire.Answer{}, errors.New("its answer cannot be read")
	}
	if answer.RequestID != id && (answer.RequestID != "" || answer.Decision == wire.Allow) {
		return wire.Answer{}, errors.New("its answer is for another question")
	}
	return answer, nil
}
