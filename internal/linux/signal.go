package linux

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// OpenProcess returns a pidfd of the process that started then; the caller closes it. What is signalled through it is that process or
// nobody. The error wraps ErrGone if the process has ended.
func OpenProcess(pid int, start uint64) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("open pidfd of process %d: %w", pid, gone(err))
	}
	f := os.NewFile(uintptr(fd), fmt.Sprintf("pidfd:%d", pid))
	// Read after the pidfd is open: if this shows the wanted process, the pidfd is its own or that of a dead one.
	s, err := ReadStat(pid)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if !SameStart(s.Start, start) {
		return nil, errors.Join(fmt.Errorf("open pidfd of process %d: %w: its id was reused", pid, ErrGone), f.Close())
	}
	return f, nil
}

// SendSignal sends a signal through a pidfd. The error wraps ErrGone if the process has ended.
func SendSignal(pidfd *os.File, sig unix.Signal) error {
	if err := OnFD(pidfd, func(fd int) error { return gone(unix.PidfdSendSignal(fd, sig, nil, 0)) }); err != nil {
		return fmt.Errorf("send %s to %s: %w", unix.SignalName(sig), pidfd.Name(), err)
	}
	return nil
}

// SameMemory tells whether two processes share one address space, as vfork and CLONE_VM make it.
func SameMemory(a, b int) (bool, error) {
	order, err := kcmp(Living(a), Living(b), Memory)
	return err == nil && order == 0, err
}

// kcmp orders two processes by something that they have: 0, where it is the same.
func kcmp(a, b, kind int) (int, error) {
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), uintptr(kind), 0, 0, 0)
	if errno != 0 {
		return 0, fmt.Errorf("compare processes %d and %d: %w", a, b, gone(errno))
	}
	return int(order), nil
}

// failed names what could not be read.
func failed(pid int, what string, err error) error {
	return fmt.Errorf("read %s of process %d: %w", what, pid, gone(err))
}

func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	return err
}
