// Package prompttest has a terminal emulator for tests: what a person would see is read from its screen, not guessed from bytes.
package prompttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Screen is a tmux with one window, in which a program runs.
type Screen struct {
	t      *testing.T
	socket string
}

// Start runs a program, with more in its environment, on a screen of that size until the test ends. What it shows stays when it has ended.
func Start(t *testing.T, width, height int, env []string, argv ...string) *Screen {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatal("no tmux: run scripts/packages screens")
	}
	dir, err := os.MkdirTemp("", "weir") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	conf := filepath.Join(dir, "conf")
	if err := os.WriteFile(conf, []byte("set -g status off\nset -g default-terminal screen-256color\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Screen{t, filepath.Join(dir, "s")}
	cmd := append([]string{"-u", "-f", conf, "new-session", "-d", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height), "sh", "-c", `"$@"; exec sleep infinity`, "sh", "env"}, env...)
	s.tmux(append(cmd, argv...)...)
	t.Cleanup(func() { s.tmux("kill-server") })
	return s
}

func (s *Screen) tmux(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", s.socket}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TMUX=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

// Lines is what is on the screen now, blanks at the end of lines included.
func (s *Screen) Lines() []string {
	s.t.Helper()
	return strings.Split(strings.TrimSuffix(s.tmux("capture-pane", "-p", "-N"), "\n"), "\n")
}

// History is the same with all that has scrolled away.
func (s *Screen) History() []string {
	s.t.Helper()
	return strings.Split(strings.TrimRight(s.tmux("capture-pane", "-p", "-N", "-S", "-"), "\n"), "\n")
}

// Until waits for a screen that done accepts.
func (s *Screen) Until(what string, done func(lines []string) bool) []string {
	s.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		lines := s.Lines()
		if done(lines) {
			return lines
		}
		if time.Now().After(end) {
			s.t.Fatalf("not on the screen: %s\n%s", what, strings.Join(lines, "\n"))
		}
	}
}

// Shows waits for a text that begins and ends on one line of the screen.
func (s *Screen) Shows(text string) []string {
	s.t.Helper()
	return s.Until(strconv.Quote(text), func(lines []string) bool { return strings.Contains(strings.Join(lines, "\n"), text) })
}

// Types sends text as if somebody typed it.
func (s *Screen) Types(text string) {
	s.t.Helper()
	s.tmux("send-keys", "-l", text)
}

// Resize makes the screen another size.
func (s *Screen) Resize(width, height int) {
	s.t.Helper()
	s.tmux("resize-window", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height))
}

// Words is what lines show, without blanks and what breaks lines.
func Words(lines ...string) string { return strings.Join(strings.Fields(strings.Join(lines, " ")), "") }
