package linux

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// WriteFileAtomic writes beside path and renames. The mode is that of the plain file that was there, or 0600. What fails leaves that one as it was, but for
// the directory: if that cannot be synced, the new one is there and may not last.
func WriteFileAtomic(path string, data []byte) error {
	beside, err := StageFile(path, data)
	if err != nil {
		return err
	}
	if err := ReplaceFile(beside, path); err != nil {
		_ = os.Remove(beside) // unless its name alone was not synced
		return err
	}
	return nil
}

// StageFile writes what ReplaceFile puts into the place of a file, beside it.
func StageFile(path string, data []byte) (beside string, err error) {
	mode := os.FileMode(0o600)
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".weir-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// ReplaceFile ends what StageFile began.
func ReplaceFile(beside, path string) error {
	if err := os.Rename(beside, path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// MkdirAll is os.MkdirAll for directories that last.
func MkdirAll(path string, mode os.FileMode) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(path)
	if parent == path {
		return os.MkdirAll(path, mode)
	}
	if err := MkdirAll(parent, mode); err != nil {
		return err
	}
	if err := os.MkdirAll(path, mode); err != nil {
		return err
	}
	return SyncDir(parent)
}

// SyncDir makes the names in a directory last: files that were made, renamed or removed there. It is nil where the file system has nothing to sync.
func SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, d.Close())
}
