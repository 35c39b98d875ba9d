package adapter

import (
	"context"
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
	errOwner    = errors.New("it cannot be told who answers in the folder: the agent must not run as root")
)

// folder is where to ask when there is no socket.
type folder struct {
	path  string
	owner func(os.FileInfo) error // says whether the sensor wrote a file
}

// alive says whether a sensor answers there.
func (f folder) alive() error {
	info, err := os.Lstat(f.path + "/" + wire.Alive)
	if err != nil {
		return errNoFolder
	}
	if err := f.owner(info); err != nil {
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
	if err := os.WriteFile(temp, line, 0o600); err != nil {
		return nil, plain(err)
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

// read takes an answer that the sensor wrote.
func (f folder) read(path string) ([]byte, error) {
	file, err := os.OpenFile(path, unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, plain(err)
	}
	if err := f.owner(info); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(file, maxAnswer))
}

// byRoot says whether a file is one that only root outside, or in, the container can have written, and the agent is not that: who can write
// an answer would say yes to everything. Root outside may have no name in here.
func byRoot(info os.FileInfo) error {
	const nobody = 65534
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errOwner
	}
	own := uint32(os.Geteuid())
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 || st.Nlink != 1 || st.Uid == own || st.Uid != 0 && st.Uid != nobody {
		return errOwner
	}
	return nil
}

// folder is the folder of this process.
func (w World) folder() folder {
	f := folder{wire.Folder, w.owner}
	if path := env(w.Environ, wire.FolderVariable); path != "" {
		f.path = path
	}
	if f.owner == nil {
		f.owner = byRoot
	}
	return f
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
