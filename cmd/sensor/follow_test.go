package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"weir/internal/control"
)

// weir pending -f as a program on a terminal: keys answer, and whatever signal ends
// it, the terminal is as it was.
func TestPendingFollow(t *testing.T) {
	dir, err := os.MkdirTemp("", "weir") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	server, err := control.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		t.Fatal("the control socket takes root only: run the tests as root")
	}
	go server.Serve(t.Context(), &fakeBackend{}, nil)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	weir := filepath.Join(dir, "weir")
	if err := os.Symlink(self, weir); err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func(far io.Writer, p *os.Process) error{
		"q":       func(far io.Writer, _ *os.Process) error { _, err := far.Write([]byte("q")); return err },
		"SIGTERM": func(_ io.Writer, p *os.Process) error { return p.Signal(syscall.SIGTERM) },
		"SIGINT":  func(_ io.Writer, p *os.Process) error { return p.Signal(syscall.SIGINT) },
		"SIGHUP":  func(_ io.Writer, p *os.Process) error { return p.Signal(syscall.SIGHUP) },
		"SIGQUIT": func(_ io.Writer, p *os.Process) error { return p.Signal(syscall.SIGQUIT) },
	} {
		t.Run(name, func(t *testing.T) {
			far, tty, err := pty.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer far.Close()
			defer tty.Close()
			if err := pty.Setsize(far, &pty.Winsize{Cols: 100, Rows: 40}); err != nil {
				t.Fatal(err)
			}
			before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(weir, "--run", dir, "pending", "-f")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			var out bytes.Buffer
			go func() {
				buf := make([]byte, 4096)
				for {
					n, err := far.Read(buf)
					mu.Lock()
					out.Write(buf[:n])
					mu.Unlock()
					if err != nil {
						return
					}
				}
			}()
			shows := func(want string) {
				t.Helper()
				for range 6000 {
					mu.Lock()
					found := strings.Contains(out.String(), want)
					mu.Unlock()
					if found {
						return
					}
					time.Sleep(10 * time.Millisecond)
				}
				t.Errorf("no %q: %q", want, out.String())
			}
			shows("> abc234")
			if _, err := far.Write([]byte("d")); err != nil {
				t.Fatal(err)
			}
			shows("deny abc234?")
			if _, err := far.Write([]byte("n")); err != nil {
				t.Fatal(err)
			}
			shows("nothing was answered")
			if err := end(far, cmd.Process); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			shows("\x1b[?25h\x1b[?1049l")
			after, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Error("the terminal is not as it was:\n" + diff)
			}
			mu.Lock()
			defer mu.Unlock()
			if strings.ContainsAny(out.String(), "\u202e\x07") || strings.Contains(out.String(), "\x1b[2J") {
				t.Errorf("the terminal is given what a container chose: %q", out.String())
			}
		})
	}
}
