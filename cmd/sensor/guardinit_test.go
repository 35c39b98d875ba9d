package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
)

// stub starts guard-init on a terminal, as weir guard does, with descriptors
// that somebody left open.
func stub(t *testing.T, argv ...string) (cmd *exec.Cmd, terminal *os.File, release *os.File) {
	t.Helper()
	terminal, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	defer tty.Close()
	wait, release, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { release.Close() })
	defer wait.Close()
	cmd = exec.Command("weir", append([]string{"guard-init", "--"}, argv...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.ExtraFiles = []*os.File{wait, os.Stderr, tty, os.Stdin}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, terminal, release
}

// output is what comes from a terminal until its last user has gone.
func output(t *testing.T, terminal *os.File) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := io.Copy(&b, terminal); err != nil && !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	return strings.ReplaceAll(b.String(), "\r\n", "\n")
}

// ignored is the line of this process's status that says which signals it ignores; a child inherits them.
func ignored(t *testing.T) string {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "SigIgn:") {
			return line
		}
	}
	t.Fatal("no SigIgn in /proc/self/status")
	return ""
}

func TestInitBecomesTheCommand(t *testing.T) {
	const script = `echo $$
		for fd in $(seq 0 99); do [ -e /proc/$$/fd/$fd ] && echo $fd; done
		cut -d ' ' -f 5,8 /proc/$$/stat
		grep SigIgn /proc/$$/status
		exit 7`
	cmd, terminal, release := stub(t, "sh", "-c", script)
	time.Sleep(100 * time.Millisecond) // it waits
	if _, err := release.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	release.Close()
	got := output(t, terminal)
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Error("ended with", err)
	}
	pid := cmd.Process.Pid
	// its descriptors, its own and the foreground group, signals that it ignores: no others than this process does
	want := fmt.Sprintf("%d\n0\n1\n2\n%d %d\n%s", pid, pid, pid, ignored(t))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInitRunsNothingUntold(t *testing.T) {
	cmd, terminal, release := stub(t, "echo", "it ran")
	release.Close()
	if got := output(t, terminal); got != "" {
		t.Errorf("said %q", got)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 {
		t.Error("ended with", err)
	}
}

func TestInitInterrupted(t *testing.T) {
	cmd, terminal, release := stub(t, "sh", "-c", "echo up; read line; echo no")
	release.Write([]byte{1})
	buf := make([]byte, 16)
	if n, err := terminal.Read(buf); err != nil || !strings.HasPrefix(string(buf[:n]), "up") {
		t.Fatal(string(buf[:n]), err)
	}
	if _, err := terminal.Write([]byte{3}); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	if got := output(t, terminal); strings.Contains(got, "no") {
		t.Errorf("said %q", got)
	}
	cmd.Wait()
	if diff := cmp.Diff(130, 128+int(cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())); diff != "" {
		t.Error("exit status (-want +got):\n" + diff)
	}
}

func TestInitCannotRun(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		if err := os.WriteFile(dir+"/"+name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return dir + "/" + name
	}
	for _, tc := range []struct {
		program string
		code    int
		want    string
	}{
		{"no-such-program", 127, "no-such-program: no such program: check the name and PATH"},
		{dir + "/none", 127, "does not exist"},
		{write("interp", "#!/no/such/interpreter\n", 0o755), 127, "the interpreter that its first line names, does not exist"},
		{write("plain", "text\n", 0o644), 126, "may not run it"},
		{write("noexec", "text\n", 0o755), 126, "no program: give it a first line"},
		{dir, 126, "is a directory"},
	} {
		cmd, terminal, release := stub(t, tc.program)
		release.Write([]byte{1})
		got := output(t, terminal)
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != tc.code || !strings.HasPrefix(got, "weir guard: ") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: exit %d, %q; want %d with %q", tc.program, code, got, tc.code, tc.want)
		}
	}
}
