package main

import (
	"encoding/binary"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reachAttempts tell another process something without a socket or a file: -pid is that process, or -n the key by which both find
// what they share (B67).
func reachAttempts() map[string]attempt {
	return map[string]attempt{
		"kill":       func(c *call) error { return step("kill", unix.Kill(c.pid, heardSignal)) },
		"tgkill":     func(c *call) error { return step("tgkill", unix.Tgkill(c.pid, c.pid, heardSignal)) },
		"pidfd-kill": pidfdKill,
		"sigqueue": func(c *call) error {
			return c.values(func(info *siginfo) unix.Errno {
				_, _, errno := unix.RawSyscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(c.pid), heardSignal, uintptr(unsafe.Pointer(info)))
				return errno
			})
		},
		"tgsigqueue": func(c *call) error {
			return c.values(func(info *siginfo) unix.Errno {
				_, _, errno := unix.RawSyscall6(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(c.pid), uintptr(c.pid), heardSignal, uintptr(unsafe.Pointer(info)), 0, 0)
				return errno
			})
		},
		"message":   message,
		"memory":    sharedMemory,
		"semaphore": semaphores,
		"limit":     limit,
		"key":       addKey,
	}
}

const (
	heardSignal = 40
	ipcCreate   = 0o1000
	setAll      = 17 // of semctl
)

// siginfo is what the kernel takes from who queues a signal.
type siginfo struct {
	signo, errno, code int32
	_                  [unsafe.Sizeof(uintptr(0)) - 4]byte // what follows is aligned as a pointer is
	pid, uid           int32
	value              uintptr
	_                  [128]byte
}

// values sends the text, some bytes with each signal.
func (c *call) values(send func(*siginfo) unix.Errno) error {
	if err := c.done("open"); err != nil {
		return err
	}
	const queued = -1 // SI_QUEUE
	for rest := c.say; len(rest) > 0; {
		var four [4]byte
		rest = rest[copy(four[:], rest):]
		if errno := send(&siginfo{signo: heardSignal, code: queued, value: uintptr(binary.NativeEndian.Uint32(four[:]))}); errno != 0 {
			return step("sigqueue", errno)
		}
	}
	return nil
}

func pidfdKill(c *call) error {
	fd, err := unix.PidfdOpen(c.pid, 0)
	if err != nil {
		return step("pidfd_open", err)
	}
	if err := c.done("open"); err != nil {
		return err
	}
	return step("pidfd_send_signal", unix.PidfdSendSignal(fd, heardSignal, nil, 0))
}

// shared makes one of System V's objects, or finds that of its key.
func (c *call) shared(call uintptr, size ...uintptr) (uintptr, error) {
	args := append(append([]uintptr{uintptr(c.n)}, size...), ipcCreate|0o600, 0) // msgget takes no size
	id, _, errno := unix.Syscall(call, args[0], args[1], args[2])
	if errno != 0 {
		return 0, step("get", errno)
	}
	return id, c.done("open")
}

func message(c *call) error {
	id, err := c.shared(unix.SYS_MSGGET)
	if err != nil {
		return err
	}
	kind := uintptr(1)
	b := append(unsafe.Slice((*byte)(unsafe.Pointer(&kind)), unsafe.Sizeof(kind)), c.say...)
	_, _, errno := unix.Syscall6(unix.SYS_MSGSND, id, uintptr(unsafe.Pointer(&b[0])), uintptr(len(c.say)), 0, 0, 0)
	if errno != 0 {
		return step("msgsnd", errno)
	}
	return nil
}

func sharedMemory(c *call) error {
	id, err := c.shared(unix.SYS_SHMGET, 4096)
	if err != nil {
		return err
	}
	b, err := unix.SysvShmAttach(int(id), 0, 0)
	if err != nil {
		return step("shmat", err)
	}
	copy(b, c.say)
	return nil
}

// semaphores have values of fifteen bits: two letters of ASCII.
func semaphores(c *call) error {
	id, err := c.shared(unix.SYS_SEMGET, 64)
	if err != nil {
		return err
	}
	all := make([]byte, 2*64)
	copy(all, c.say)
	_, _, errno := unix.Syscall6(unix.SYS_SEMCTL, id, 0, setAll, uintptr(unsafe.Pointer(&all[0])), 0, 0)
	if errno != 0 {
		return step("semctl", errno)
	}
	return nil
}

// limit says a number, -n.
func limit(c *call) error {
	if err := c.done("open"); err != nil {
		return err
	}
	return step("prlimit", unix.Prlimit(c.pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(c.n), Max: unix.RLIM_INFINITY}, nil))
}

// addKey says the text by a key's description, which /proc/keys shows, after -then. -by is the keyring.
func addKey(c *call) error {
	ring := map[string]int{"write": unix.KEY_SPEC_USER_KEYRING, "session": unix.KEY_SPEC_SESSION_KEYRING, "process": unix.KEY_SPEC_PROCESS_KEYRING}[c.by]
	if _, err := unix.KeyctlGetKeyringID(ring, c.by == "process"); err != nil { // of another kind it takes what is there
		return step("find keyring", err)
	}
	if err := c.done("open"); err != nil {
		return err
	}
	if _, err := unix.AddKey("user", c.then+string(c.say), []byte("x"), ring); err != nil {
		return step("add_key", err)
	}
	time.Sleep(c.after) // a process's keys end with it
	return nil
}
