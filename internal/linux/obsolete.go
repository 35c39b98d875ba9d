package linux

import (
	"bytes"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// UseUpWarnings makes the calls that the kernel writes into its log for the first time since the boot only, with the name of who makes
// them, so that nobody else's is there. What such a call returns does not matter.
func UseUpWarnings() error {
	// remap nothing, and set no timer
	_, _, _ = unix.Syscall6(unix.SYS_REMAP_FILE_PAGES, 0, 0, 0, 0, 0, 0)
	_, _, _ = unix.Syscall(unix.SYS_SETITIMER, unix.ITIMER_REAL, 0, 0)
	for _, version := range []uint32{unix.LINUX_CAPABILITY_VERSION_1, unix.LINUX_CAPABILITY_VERSION_2} {
		var data [2]unix.CapUserData
		_ = unix.Capget(&unix.CapUserHeader{Version: version}, &data[0])
	}
	if fd, err := unix.MemfdCreate("weir", 0); err == nil { // neither MFD_EXEC nor MFD_NOEXEC_SEAL
		const mandatory = 32 // LOCK_MAND
		_ = unix.Flock(fd, mandatory)
		unix.Close(fd)
	}
	const packets = 10 // SOCK_PACKET
	if fd, err := unix.Socket(unix.AF_INET, packets|unix.SOCK_CLOEXEC, 0); err == nil {
		unix.Close(fd)
	}
	return errors.Join(ExecWithoutArguments(), oldScore())
}

// oldScore writes what is there in the old way, and puts back what that rounds.
func oldScore() error {
	const file, old = "/proc/self/oom_score_adj", "/proc/self/oom_adj"
	score, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	rounded, err := os.ReadFile(old)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(old, bytes.TrimSpace(rounded), 0), os.WriteFile(file, bytes.TrimSpace(score), 0))
}
