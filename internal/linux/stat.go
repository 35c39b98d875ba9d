package linux

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// tick is the unit of start times in /proc: USER_HZ is 100 on every architecture that is supported.
const tick = 10_000_000

// ErrGone means that the process has ended, or that its id now belongs to another one.
var ErrGone = errors.New("the process has ended")

// Stat is /proc/PID/stat at one moment.
type Stat struct {
	PID, PPID, Group, Session int
	TTY                       int    // device number of the controlling terminal, 0 without one
	State                     byte   // R, S, D, T, t, Z, X or I
	Start                     uint64 // ns since boot, cut to a multiple of 10 ms
	Comm                      string // at most 15 bytes, chosen by the process
}

// ReadStat reads the stat of a process. The error wraps ErrGone if there is no such process.
func ReadStat(pid int) (Stat, error) {
	data, err := os.ReadFile(file(pid, "stat"))
	if err != nil {
		return Stat{}, failed(pid, "stat", err)
	}
	s, err := parseStat(data)
	if err != nil {
		return Stat{}, failed(pid, "stat", err)
	}
	return s, nil
}

// parseStat finds the end of comm from the right: comm is chosen by the process and may hold anything, the rest is numbers.
func parseStat(data []byte) (Stat, error) {
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || end < open {
		return Stat{}, errors.New("no name in parentheses")
	}
	s := Stat{Comm: string(data[open+1 : end])}
	rest := strings.Fields(string(data[end+1:]))
	if len(rest) < 20 || len(rest[0]) != 1 {
		return Stat{}, fmt.Errorf("%d fields after the name, at least 20 expected", len(rest))
	}
	s.State = rest[0][0]
	var errs [6]error
	s.PID, errs[0] = strconv.Atoi(strings.TrimSpace(string(data[:open])))
	s.PPID, errs[1] = strconv.Atoi(rest[1])
	s.Session, errs[2] = strconv.Atoi(rest[3])
	s.TTY, errs[3] = strconv.Atoi(rest[4])
	ticks, err := strconv.ParseUint(rest[19], 10, 64)
	errs[4] = err
	s.Group, errs[5] = strconv.Atoi(rest[2])
	s.Start = ticks * tick
	return s, errors.Join(errs[:]...)
}

// SameStart tells whether a start from /proc and an exact one, from task->start_boottime, are of one process.
func SameStart(ticked, exact uint64) bool {
	return ticked == exact-exact%tick
}

// Alive tells whether the process that started then is still there and no zombie.
func Alive(pid int, start uint64) bool {
	s, err := ReadStat(pid)
	return err == nil && SameStart(s.Start, start) && s.State != 'Z' && s.State != 'X'
}

// PIDs returns the ids of all processes that are there now, in ascending order as the kernel lists them.
func PIDs() ([]int, error) {
	return numbers("/proc")
}

// Threads returns the thread ids of a process.
func Threads(pid int) ([]int, error) {
	tids, err := numbers(file(pid, "task"))
	if err != nil {
		return nil, failed(pid, "task", err)
	}
	return tids, nil
}

// numbers returns the entries of a directory that are numbers.
func numbers(dir string) ([]int, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var found []int
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n >= 0 {
			found = append(found, n)
		}
	}
	return found, nil
}

func file(pid int, elem ...string) string {
	return filepath.Join(append([]string{"/proc", strconv.Itoa(pid)}, elem...)...)
}
