package vault

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// NoDumps keeps this process's memory out of core files, and out of the reach of other processes of its user.
func NoDumps() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("forbid core files: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid core files: %w", err)
	}
	return nil
}
