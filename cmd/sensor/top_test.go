package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"weir/internal/control"
)

// serve has a backend answer on a control socket in a directory of its own, in which weir is this program.
func serve(t *testing.T, b control.Backend) (dir, weir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("the control socket takes root only: run the tests as root")
	}
	dir, err := os.MkdirTemp("", "weir") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	server, err := control.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(t.Context(), b, nil)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	weir = filepath.Join(dir, "weir")
	if err := os.Symlink(self, weir); err != nil {
		t.Fatal(err)
	}
	return dir, weir
}

// weir top as a program on a terminal: keys answer, and whatever signal ends
// it, the terminal is as it was.
func TestTop(t *testing.T) {
	dir, weir := serve(t, &fakeBackend{})
	for name, end := range map[string]func(far io.Writer, p *os.Process) error{
		"q":       func(far io.Writer, _ *os.Process) error { _, err := far.Write([]byte("q")); return err },
		"SIGTERM": func(_ io.Writer, p *os.Process) error { return p.Signal(syscall.SIGTERM) },
		"SIGINT":  func(_ io.Writer, p *os.Process) error { return p.Signal(syscall.SIGINT) },
		"SIGHUP":  func(_ io.Writer, p *os.Process) error { return p.Signal(syscall.SIGHUP) },
		"SIGQUIT": func(_ io.Writer, p *os.Process) error { return p.Signal(syscall.SIGQUIT) },
	} {
		t.Run(name, func(t *testing.T) {
			p := openTerminal(t)
			before, err := unix.IoctlGetTermios(int(p.tty.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(weir, "--run", dir, "top")
			cmd.Stdout, cmd.Stderr = p.tty, p.tty
			p.start(t, cmd)
			shows := func(want string) {
				t.Helper()
				for range 6000 {
					if strings.Contains(p.text(), want) {
						return
					}
					time.Sleep(10 * time.Millisecond)
				}
				t.Errorf("no %q: %q", want, p.text())
			}
			shows("> abc234")
			if _, err := p.far.Write([]byte("d")); err != nil {
				t.Fatal(err)
			}
			shows("deny abc234?")
			if _, err := p.far.Write([]byte("n")); err != nil {
				t.Fatal(err)
			}
			shows("nothing was answered")
			if err := end(p.far, cmd.Process); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			shows("\x1b[?25h\x1b[?1049l")
			after, err := unix.IoctlGetTermios(int(p.tty.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Error("the terminal is not as it was:\n" + diff)
			}
			if out := p.text(); strings.ContainsAny(out, "\u202e\x07") || strings.Contains(out, "\x1b[2J") {
				t.Errorf("the terminal is given what a container chose: %q", out)
			}
		})
	}
}

// TestElsewhere: questions of other nodes are weir-fleet's, which weir becomes.
func TestElsewhere(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	weir := filepath.Join(t.TempDir(), "weir") // not a link: it looks beside itself
	if err := os.WriteFile(weir, program, 0o755); err != nil {
		t.Fatal(err)
	}
	try := func(want string, args ...string) {
		t.Helper()
		out, err := exec.Command(weir, args...).CombinedOutput()
		if !strings.Contains(string(out), want) || strings.Count(string(out), "\n") != 1 || (err == nil) != strings.HasPrefix(want, "fleet:") {
			t.Errorf("%q: %s, %v, want %q", args, out, err, want)
		}
	}
	try("weir-fleet: it does not exist", "top", "--fleet")
	if err := os.WriteFile(weir+"-fleet", []byte("#!/bin/sh\necho fleet: \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	try("fleet: top", "top", "--fleet")
	try("fleet: pending", "pending", "--fleet")
	try("fleet: approve build-07/abc234", "approve", "build-07/abc234")
	try("fleet: approve build-07/abc234 --why=known --scope=2", "approve", "build-07/abc234", "--scope", "2", "--reason", "known")
	try("fleet: deny build-07/abc234 --why=x y", "deny", "build-07/abc234", "--why", "x y")
	for _, args := range [][]string{{"approve", "a/b", "c/d"}, {"approve", "a/b", "c"}, {"approve", "a/b", "--for", "30m"}, {"deny", "a/b", "--yes"}} {
		try("answered alone and for once", args...)
	}
	try("leave --ended and --each out", "pending", "--fleet", "--ended")
}
