package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memorySize is how much of a victim's memory can be overwritten.
const memorySize = 4096

func memoryAttempts() map[string]attempt {
	return map[string]attempt{
		"victim":         victim,
		"ptrace-attach":  ptrace(unix.PTRACE_ATTACH),
		"ptrace-seize":   ptrace(unix.PTRACE_SEIZE),
		"ptrace-traceme": traceme,
		"vm-writev":      vmWritev,
		"proc-mem":       procMem,
		"pidfd-getfd":    pidfdGetfd,
	}
}

// victim is a process that the others write into: it says where its text is, and sends what stands there when a line comes (B30).
func victim(c *call) error {
	mem, err := unix.Mmap(-1, 0, memorySize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return step("mmap", err)
	}
	copy(mem, c.say)
	fmt.Fprintf(c.out, "victim %d %d\n", os.Getpid(), uintptr(unsafe.Pointer(&mem[0])))
	if err := c.proceed(); err != nil {
		return err
	}
	c.say = mem[:64]
	return udpConnect(c)
}

func ptrace(request int) attempt {
	return func(c *call) error {
		runtime.LockOSThread()
		if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(c.pid), 0, 0, 0, 0); errno != 0 {
			return failure("ptrace", errno)
		}
		if request == unix.PTRACE_SEIZE {
			if err := unix.PtraceInterrupt(c.pid); err != nil {
				return step("interrupt", err)
			}
		}
		if err := c.done("open"); err != nil {
			return err
		}
		var status unix.WaitStatus
		if _, err := unix.Wait4(c.pid, &status, unix.WALL, nil); err != nil {
			return step("wait", err)
		}
		if _, err := unix.PtracePokeData(c.pid, uintptr(c.mem), c.say); err != nil {
			return step("poke", err)
		}
		return step("detach", unix.PtraceDetach(c.pid))
	}
}

// traceme lets its parent trace it: the child is the tracee of its own accord.
func traceme(c *call) error {
	runtime.LockOSThread()
	cmd := exec.Command("/proc/self/exe", "udp-sendto", "-to", c.to, "-say", string(c.say))
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		return step("start", err)
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(cmd.Process.Pid, &status, unix.WALL, nil); err != nil {
		return step("wait", err)
	}
	if err := unix.PtraceDetach(cmd.Process.Pid); err != nil {
		return step("detach", err)
	}
	if _, err := unix.Wait4(cmd.Process.Pid, &status, unix.WALL, nil); err != nil {
		return step("wait", err)
	}
	if !status.Exited() || status.ExitStatus() != 0 {
		return step("tracee's udp-sendto", unix.EPERM)
	}
	return nil
}

func vmWritev(c *call) error {
	local := []unix.Iovec{{Base: &c.say[0]}}
	local[0].SetLen(len(c.say))
	_, err := unix.ProcessVMWritev(c.pid, local, []unix.RemoteIovec{{Base: uintptr(c.mem), Len: len(c.say)}}, 0)
	return step("process_vm_writev", err)
}

// procMem can open before a taint or a grant and write after it.
func procMem(c *call) error {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/mem", c.pid), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return step("open", err)
	}
	if err := c.done("open"); err != nil {
		return err
	}
	_, err = unix.Pwrite(fd, c.say, int64(c.mem))
	return step("write", err)
}

// pidfdGetfd sends on a copy of another process's socket (B22).
func pidfdGetfd(c *call) error {
	pidfd, err := unix.PidfdOpen(c.pid, 0)
	if err != nil {
		return step("pidfd_open", err)
	}
	if c.wait == "connect" {
		if err := c.pause(); err != nil {
			return err
		}
	}
	fd, err := unix.PidfdGetfd(pidfd, c.fd, 0)
	if err != nil {
		return step("pidfd_getfd", err)
	}
	if err := c.done("open"); err != nil {
		return err
	}
	return c.send(fd)
}
