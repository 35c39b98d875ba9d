//go:build vmguest

package rig

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Terminal is a command on a terminal of its own, as a person has it.
type Terminal struct {
	file *os.File
	done chan error

	mu      sync.Mutex
	text    strings.Builder
	seen    int
	changed chan struct{}
}

// GuardPTY runs a command under weir guard on a terminal, for as long as t runs.
func (s *Sensor) GuardPTY(t testing.TB, name string, argv ...string) *Terminal {
	t.Helper()
	return OnTerminal(t, append([]string{"weir", "guard", "-q", "--name", name, "--"}, argv...)...)
}

// OnTerminal runs a command on a terminal of its own, for as long as t runs.
func OnTerminal(t testing.TB, argv ...string) *Terminal {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	started, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 200})
	if err != nil {
		t.Fatal(err)
	}
	file, err := pollable(started)
	if err != nil {
		t.Fatal(err)
	}
	term := &Terminal{file: file, done: make(chan error, 1), changed: make(chan struct{})}
	go term.read()
	go func() { term.done <- cmd.Wait() }()
	t.Cleanup(func() {
		file.Close() // hangs up
		select {
		case <-term.done:
		case <-time.After(Late):
			t.Errorf("%s: goes on without its terminal", strings.Join(argv, " "))
			_ = cmd.Process.Kill()
		}
	})
	return term
}

// pollable is f in a form that can be closed while somebody reads: to have its window set, f was made blocking.
func pollable(f *os.File) (*os.File, error) {
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	return os.NewFile(uintptr(fd), f.Name()), err
}

func (p *Terminal) read() {
	b := make([]byte, 4096)
	for {
		n, err := p.file.Read(b)
		p.mu.Lock()
		p.text.Write(b[:n])
		close(p.changed)
		p.changed = make(chan struct{})
		p.mu.Unlock()
		if err != nil {
			return // EIO when the last process is gone
		}
	}
}

// Type sends keys.
func (p *Terminal) Type(t testing.TB, keys string) {
	t.Helper()
	if _, err := p.file.WriteString(keys); err != nil {
		t.Fatalf("type: %v", err)
	}
}

// Expect waits for text after what an earlier Expect found, and returns all that came up to its end.
func (p *Terminal) Expect(t testing.TB, text string) string {
	t.Helper()
	late := time.After(2 * Late)
	for {
		p.mu.Lock()
		rest, changed := p.text.String()[p.seen:], p.changed
		if i := strings.Index(rest, text); i >= 0 {
			p.seen += i + len(text)
			p.mu.Unlock()
			return rest[:i+len(text)]
		}
		p.mu.Unlock()
		select {
		case <-changed:
		case <-late:
			t.Fatalf("the terminal does not show %q but:\n%s", text, rest)
		}
	}
}
