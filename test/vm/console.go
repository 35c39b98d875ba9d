package vm

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// tailLines is how much of the console an error shows.
const tailLines = 60

// console keeps what the kernel printed and hands it on.
type console struct {
	next io.Writer // may be nil

	mu  sync.Mutex
	all bytes.Buffer
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all.Write(p)
	if c.next != nil {
		_, _ = c.next.Write(p) // a reader that went away must not end the VM
	}
	return len(p), nil
}

// Close is there because vmtest closes what it writes to.
func (c *console) Close() error { return nil }

func (c *console) tail() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := strings.Split(strings.ReplaceAll(strings.TrimSpace(c.all.String()), "\r", ""), "\n")
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	return "console:\n" + strings.Join(lines, "\n")
}

// trouble is the first line by which the kernel says that something broke in it, or empty.
func (c *console) trouble() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := slices.Collect(strings.Lines(c.all.String()))
	for i, line := range lines {
		for _, sign := range []string{"BUG: ", "Oops: ", "WARNING: CPU", "Kernel panic", "general protection fault", "kernel BUG at"} {
			if strings.Contains(line, sign) && !emulators(lines[i:]) {
				return strings.TrimSpace(line)
			}
		}
	}
	return ""
}

var flags = regexp.MustCompile(`EFLAGS: ([0-9a-f]{8})\b`)

// emulators says whether a report, which its lines begin with, is the warning of a single step that nobody asked for, by flags that no
// processor has: its bits from 22 on are always clear. QEMU 7.2 takes something else for the flags now and then; the kernel clears the step
// and goes on (docs/decisions/0005).
func emulators(report []string) bool {
	if !strings.Contains(report[0], "exc_debug_kernel") {
		return false
	}
	for _, line := range report[:min(len(report), tailLines)] {
		if m := flags.FindStringSubmatch(line); m != nil {
			n, err := strconv.ParseUint(m[1], 16, 32)
			return err == nil && n>>22 != 0
		}
	}
	return false
}
