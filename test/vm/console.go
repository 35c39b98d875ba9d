package vm

import (
	"bytes"
	"io"
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
	for line := range strings.Lines(c.all.String()) {
		for _, sign := range []string{"BUG: ", "Oops: ", "WARNING: CPU", "Kernel panic", "general protection fault", "kernel BUG at"} {
			if strings.Contains(line, sign) {
				return strings.TrimSpace(line)
			}
		}
	}
	return ""
}
