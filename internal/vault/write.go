package vault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/linux"
)

const lockTime = 10 * time.Second

// backup is where the generation before stands.
func (v *Vault) backup() string { return v.path + ".bak" }

// change reads, changes and writes the vault, with no other writer between. What cannot be read is not written.
func (v *Vault) change(doing string, f func(*content) error) error {
	unlock, err := v.lock()
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	defer unlock()
	c, err := v.read()
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	defer c.wipe()
	if err := f(&c); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	data, err := v.encrypt(c)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if err := v.replace(data); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// lock keeps other writers away until unlock is called; the kernel gives it back if the process dies.
func (v *Vault) lock() (unlock func(), err error) {
	f, err := os.OpenFile(v.path+".lock", os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock vault: %w", err)
	}
	for end := time.Now().Add(lockTime); ; time.Sleep(20 * time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(end) {
			f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, fmt.Errorf("lock vault: another process has been writing it for %v: try again when it is done", lockTime)
			}
			return nil, fmt.Errorf("lock vault: %w", err)
		}
	}
}

// replace puts a new generation in the file's place at once, and keeps the one before.
func (v *Vault) replace(data []byte) (err error) {
	dir := filepath.Dir(v.path)
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(v.path)+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("write vault: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("write vault: %w", err)
	}
	if err := v.keepBackup(); err != nil {
		return fmt.Errorf("keep the vault's generation before: %w", err)
	}
	if err := os.Rename(tmp.Name(), v.path); err != nil {
		return fmt.Errorf("write vault: %w", err)
	}
	return linux.SyncDir(dir)
}

// keepBackup gives the present generation a second name, in one step.
func (v *Vault) keepBackup() error {
	next := v.backup() + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Link(v.path, next); errors.Is(err, fs.ErrNotExist) {
		return nil // this is the first
	} else if err != nil {
		return err
	}
	return os.Rename(next, v.backup())
}
