package agentupdate

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"weir/internal/linux"
)

// file is what is written beside the target. discard removes it unless it has taken the target's place.
type file interface {
	io.Writer
	name() string
	finish(like fs.FileInfo) error // owner, mode, and all of it on the disk
	discard()
}

type temp struct {
	*os.File
	closed bool
}

// createTemp makes a file beside base that nobody else can read yet.
func createTemp(dir, base string) (file, error) {
	f, err := os.CreateTemp(dir, "."+base+".update-*")
	if err != nil {
		return nil, err
	}
	return &temp{File: f}, nil
}

func (t *temp) name() string { return t.Name() }

func (t *temp) finish(like fs.FileInfo) error {
	owner, ok := like.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("the owner of what is replaced is unknown")
	}
	err := errors.Join(t.Chown(int(owner.Uid), int(owner.Gid)), t.Chmod(like.Mode().Perm()), t.Sync())
	t.closed = true
	return errors.Join(err, t.Close())
}

func (t *temp) discard() {
	if !t.closed {
		t.Close() // it goes anyway
	}
	os.Remove(t.Name()) // it is not there any more when it has taken the target's place
}

// look describes a file that may be replaced: a plain one, which nobody but its owner and root can have put there.
func look(path string) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be replaced: %w", path, errors.Unwrap(err))
	}
	dir, err := os.Stat(filepath.Dir(path))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s cannot be replaced: %w", path, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s cannot be replaced: it is no plain file", path)
	case info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0:
		return nil, fmt.Errorf("%s cannot be replaced: it runs as another user (setuid or setgid)", path)
	case info.Mode().Perm()&0o022 != 0 || dir.Mode().Perm()&0o022 != 0:
		return nil, fmt.Errorf("%s cannot be replaced: others than its owner may write it or its directory; take that away (chmod go-w)", path)
	}
	return info, nil
}

func sumOf(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return nil, err
	}
	return hash.Sum(nil), nil
}

// exchange keeps target as old and puts next in its place: at every moment there is a whole file under target's name.
func exchange(target, next string) (old string, err error) {
	old = target + ".old"
	link := next + ".old"
	if err := os.Link(target, link); err != nil {
		return "", err
	}
	defer os.Remove(link) // rename leaves it where old is the same file already
	if err := os.Rename(link, old); err != nil {
		return "", err
	}
	if err := os.Rename(next, target); err != nil {
		return "", err
	}
	if err := linux.SyncDir(filepath.Dir(target)); err != nil {
		return "", errors.Join(err, back(target, old, link))
	}
	return old, nil
}

// back undoes an exchange that may not last.
func back(target, old, link string) error {
	os.Remove(link) // it is the same file as old, if it is there
	if err := os.Link(old, link); err != nil {
		return fmt.Errorf("put it back from %s: %w", old, err)
	}
	return os.Rename(link, target)
}
