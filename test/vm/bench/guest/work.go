//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// work does what its lines say, OPERATION and a number, and answers each with a line.
func work(in io.Reader, out io.Writer) error {
	orders := operations()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) != 2 {
			return fmt.Errorf("work: %q is no order", lines.Text())
		}
		n, err := strconv.Atoi(words[1])
		if err != nil {
			return fmt.Errorf("work: %w", err)
		}
		var answer any
		switch words[0] {
		case "hold":
			answer, err = held(uint16(n))
		case "flood":
			answer, err = flood(uint16(n))
		case "burst":
			answer, err = 0, burst(n)
		case "pace":
			answer, err = 0, pace("pace", n, 4*time.Millisecond)
		case "steady":
			answer, err = 0, pace("steady", n, 45*time.Millisecond)
		default:
			answer, err = alone(orders[words[0]], n)
		}
		if err != nil {
			return fmt.Errorf("work: %s: %w", lines.Text(), err)
		}
		if _, err := fmt.Fprintln(out, answer); err != nil {
			return fmt.Errorf("work: %w", err)
		}
	}
	return lines.Err()
}

func fork(words ...string) (int, error) {
	return syscall.ForkExec(program, append([]string{program}, words...), &syscall.ProcAttr{Env: environment()})
}

func reap(pid int) error {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(pid, &status, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err == nil && status.ExitStatus() != 0 {
			err = fmt.Errorf("%s: exit %d", program, status.ExitStatus())
		}
		return err
	}
}

// burst executes n programs, up to 100 at the same time. Each has its number as argument, for its event.
func burst(n int) error {
	const most = 100
	for i := range n {
		if i >= most {
			if err := reap(-1); err != nil {
				return err
			}
		}
		if _, err := fork("burst", strconv.Itoa(i)); err != nil {
			return err
		}
	}
	for range min(n, most) {
		if err := reap(-1); err != nil {
			return err
		}
	}
	return nil
}

// pace executes n programs with pauses, of 3 ms more at most, that do not beat with the sensor's own.
func pace(mark string, n int, pause time.Duration) error {
	for i := range n {
		pid, err := fork(mark, strconv.Itoa(i))
		if err != nil {
			return err
		}
		if err := reap(pid); err != nil {
			return err
		}
		time.Sleep(pause + time.Duration(i*7919%3000)*time.Microsecond)
	}
	return nil
}

// flood sends a datagram to denied about 5,000 times a second, and gives the time of the first that is refused.
func flood(port uint16) (int64, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	to := address(denied, port)
	var text [64]byte
	pause := unix.Timespec{Nsec: 100_000}
	for {
		errno := sendTo(uintptr(fd), &text, to)
		now := monotonic()
		switch errno {
		case 0, unix.ECONNREFUSED: // the world's answer to an earlier one
		case unix.EPERM:
			return now, nil
		default:
			return 0, fmt.Errorf("send: %w", errno)
		}
		if err := unix.Nanosleep(&pause, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return 0, err
		}
	}
}

// held starts a command that connects to denied, and gives what connectOnce says. The time makes it another command than the one
// before, whose approval it could claim: that sent nothing.
func held(port uint16) (string, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer r.Close()
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	p, err := os.StartProcess(self, []string{self, "connect", strconv.Itoa(int(port)), strconv.FormatInt(monotonic(), 10)}, &os.ProcAttr{
		Env: os.Environ(), Files: []*os.File{nil, w, os.Stderr},
	})
	w.Close()
	if err != nil {
		return "", err
	}
	answer, readErr := io.ReadAll(r)
	if _, err := p.Wait(); err != nil || readErr != nil {
		return "", errors.Join(err, readErr)
	}
	return strings.TrimSpace(string(answer)), nil
}

// connectOnce says of one connect to denied how many ns it took, how many of them on a processor, and when it was done.
func connectOnce(args []string) error {
	if len(args) != 2 {
		return errors.New("connect: want a port and a time")
	}
	port, err := strconv.ParseUint(args[0], 10, 16)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	to := address(denied, uint16(port))
	runtime.LockOSThread()
	start, ran := monotonic(), now(unix.CLOCK_THREAD_CPUTIME_ID)
	fd, errno := dial(to)
	ran, end := now(unix.CLOCK_THREAD_CPUTIME_ID)-ran, monotonic()
	if errno != 0 {
		return fmt.Errorf("connect: %w", errno)
	}
	hangUp(fd)
	fmt.Println(end-start, ran, end)
	return nil
}
