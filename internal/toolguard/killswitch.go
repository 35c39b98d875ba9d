package toolguard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"weir/internal/linux"
)

// KillSwitchOn says whether the switch is on. A file that cannot be looked for counts as on.
func KillSwitchOn(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// SetKillSwitch turns the switch on or off, also for after a power cut; what is so already stays.
func SetKillSwitch(path string, on bool) error {
	if !on {
		err := os.Remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = linux.SyncDir(filepath.Dir(path))
		}
		if err != nil {
			return fmt.Errorf("turn the kill switch off: %w", err)
		}
		return nil
	}
	if err := linux.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("turn the kill switch on: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("turn the kill switch on: %w", err)
	}
	if err := errors.Join(f.Sync(), f.Close(), linux.SyncDir(filepath.Dir(path))); err != nil {
		return fmt.Errorf("turn the kill switch on: %w", err)
	}
	return nil
}
