package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"weir/internal/control"
)

// caller is who runs weir without a sensor, and what for.
type caller struct {
	euid   int
	stdin  string // its text
	stdout string // a file in place of what is returned
	runDir string // where its sensor usually is
}

// weirSays runs one command line without a sensor, as root or not, and gives its output and exit code.
func weirSays(t *testing.T, euid int, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return caller{euid: euid}.says(t, args...)
}

func (c caller) says(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	dir := t.TempDir()
	open := func(name string, flag int) *os.File {
		f, err := os.OpenFile(name, flag, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	if err := os.WriteFile(filepath.Join(dir, "stdin"), []byte(c.stdin), 0o600); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "stdout")
	if c.stdout != "" {
		to = c.stdout
	}
	out, errs := open(to, os.O_CREATE|os.O_WRONLY), open(filepath.Join(dir, "stderr"), os.O_CREATE|os.O_WRONLY)
	s := &system{
		stdin: open(filepath.Join(dir, "stdin"), os.O_RDONLY), stdout: out, stderr: errs, euid: c.euid, log: filepath.Join(dir, "none"), runDir: c.runDir,
		environ: []string{"HOME=" + dir, "WEIR_BRIDGE=" + filepath.Join(dir, "none")},
		kernel:  fakeKernel, daemon: fakeDaemon, watch: fakeWatch, detach: os.RemoveAll,
	}
	code = run(t.Context(), args, s)
	var said [2]string
	for i, f := range []*os.File{out, errs} {
		if f.Name() == c.stdout {
			continue // a device may have no end
		}
		data, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		said[i] = strings.ReplaceAll(string(data), dir, "$HOME")
	}
	return said[0], said[1], code
}

// everyCommand lists the command lines of all commands, hidden ones left out.
func everyCommand(cmd *cobra.Command) (all [][]string) {
	for _, c := range cmd.Commands() {
		if c.Hidden {
			continue
		}
		all = append(all, strings.Fields(c.CommandPath())[1:])
		all = append(all, everyCommand(c)...)
	}
	return all
}

// TestF44Help: every command has help, and what is none is told with and without --help.
func TestF44Help(t *testing.T) {
	commands := everyCommand(new(system).root())
	if len(commands) < 40 {
		t.Fatalf("%d commands", len(commands))
	}
	for _, c := range commands {
		for _, args := range [][]string{append(c[:len(c):len(c)], "--help"), append([]string{"--json"}, append(c[:len(c):len(c)], "-h")...), append([]string{"help"}, c...)} {
			out, err, code := weirSays(t, 1000, args...)
			if code != 0 || err != "" || !strings.Contains(out, "Usage:") {
				t.Errorf("%q: exit %d, %s%s", args, code, out, err)
			}
		}
	}
	for _, args := range []string{"grants --help", "grants -h", "--help grants", "grants --json --help", "policy nonsense --help", "vault nonsense -h", "help grants", "help policy nonsense", "memory nonsense x --help", "--run x grants --help", "kill-switch maybe --help"} {
		out, err, code := weirSays(t, 0, strings.Fields(args)...)
		if code != 2 || strings.Contains(args, "--json") == (out == "") || !strings.Contains(out+err, "unknown command") || strings.Count(out+err, "\n") != 1 {
			t.Errorf("%q: exit %d, %s%s", args, code, out, err)
		}
	}
	for _, args := range []string{"--version", "version"} {
		if out, err, code := weirSays(t, 1000, args); code != 0 || err != "" || !regexp.MustCompile(`^weir \S+ \(commit \S+, ABI \d+, go\S+\)\n$`).MatchString(out) {
			t.Errorf("%q: exit %d, %s%s", args, code, out, err)
		}
		var told struct {
			Version, Commit, Go *string
			ABI                 int
		}
		if out, _, code := weirSays(t, 1000, args, "--json"); code != 0 || json.Unmarshal([]byte(out), &told) != nil || told.Version == nil || told.Commit == nil || told.Go == nil || told.ABI == 0 {
			t.Errorf("%q: exit %d, %s", args, code, out)
		}
	}
}

// TestF44JSONErrors: with --json each failure is one object, with the exit code that it has without.
func TestF44JSONErrors(t *testing.T) {
	stderr := map[string]bool{"guard": true, "run": true, "watch": true, "mcp": true}
	streams := map[string]bool{"hook": true, "shell": true} // they answer agents, and take no flags of weir
	for _, c := range everyCommand(new(system).root()) {
		if streams[c[0]] {
			continue
		}
		args := append(append([]string{}, c...), "--zz")
		_, text, want := weirSays(t, 0, args...)
		if want != 2 || strings.Count(text, "\n") != 1 || !strings.Contains(text, "unknown flag --zz") {
			t.Errorf("%q: exit %d, %s", args, want, text)
		}
		out, err, code := weirSays(t, 0, append(args, "--json")...)
		if stderr[c[0]] {
			out, err = err, out
		}
		var told struct {
			Error, Command string
			Code           int
		}
		if e := json.Unmarshal([]byte(out), &told); e != nil || code != want || told.Code != want || told.Command+": "+told.Error+"\n" != text || err != "" {
			t.Errorf("%q: exit %d, %v, %s%s", args, code, e, out, err)
		}
	}
}

// TestF44NoSensor: without a sensor, and without rights, each command says so in one plain line.
func TestF44NoSensor(t *testing.T) {
	dir := t.TempDir()
	for _, line := range []string{
		"status", "health", "health --live", "containers", "events", "events -f", "events --file DIR/none", "taint web secret", "untaint web secret --why x", "pending", "pending --ended",
		"approve abc234", "deny abc234", "mode seal --why x", "vault list --vault DIR/none", "vault rm k --vault DIR/none", "vault bind k --host h --vault DIR/none",
		"memory show s k --dir DIR/none", "memory import s DIR/none --dir DIR/m", "policy validate DIR/none", "policy replay DIR/none --policy DIR/none", "policy suggest DIR/none", "top", "console", "why web", "approvals", "revoke abc234", "approve --all", "approve abc234 --for 5m", "permissions lint DIR/none",
		"toolcheck --jsonl --rules DIR/none", "guard --cgroup no-such.scope", "guard --policy DIR/none -- true", "node-ready",
	} {
		args := strings.Fields(strings.ReplaceAll("--run DIR/run "+line, "DIR", dir))
		for _, euid := range []int{0, 1000} {
			out, err, code := weirSays(t, euid, args...)
			if code == 0 || out != "" || strings.Count(err, "\n") != 1 || !strings.HasPrefix(err, "weir ") {
				t.Errorf("%q as %d: exit %d, %s%s", args, euid, code, out, err)
			}
			for _, raw := range []string{"no such file or directory", "open /", "dial ", "permission denied", "%!", "EOF", "json:", "strconv"} {
				if strings.Contains(err, raw) {
					t.Errorf("%q as %d: %s", args, euid, err)
				}
			}
		}
	}
	for _, line := range []string{"run", "watch", "guard -- true", "detach"} {
		if _, err, code := weirSays(t, 1000, strings.Fields(line)...); code != 1 || err != "weir "+strings.Fields(line)[0]+": needs root: run it with sudo\n" {
			t.Errorf("%s: exit %d, %s", line, code, err)
		}
	}
}

// TestF44EventsNoSensor: weir events names the log that is not there.
func TestF44EventsNoSensor(t *testing.T) {
	_, err, code := caller{runDir: t.TempDir()}.says(t, "events")
	if want := "weir events: " + control.ErrNotRunning.Error() + ", or read an event log with --file: there is none at $HOME/none\n"; code != 1 || err != want {
		t.Errorf("exit %d, %s", code, err)
	}
}

// TestF44NarrowTable: a table that the terminal is too narrow for becomes lines of a cell each, and loses nothing.
func TestF44NarrowTable(t *testing.T) {
	head, rows := []string{"ID", "NAME"}, [][]string{{"c0ffee", "a long name"}, {"b", "x"}}
	for width, want := range map[int]string{
		0:  "ID      NAME\nc0ffee  a long name\nb       x\n",
		19: "ID      NAME\nc0ffee  a long name\nb       x\n",
		18: "ID    c0ffee\nNAME  a long name\n\nID    b\nNAME  x\n",
	} {
		p := page{width: width}
		table(&p, head, rows)
		if diff := cmp.Diff(want, p.String()); diff != "" {
			t.Errorf("width %d, want - got +\n%s", width, diff)
		}
	}
	var b bytes.Buffer
	table(&b, head, rows)
	if !strings.HasPrefix(b.String(), "ID      NAME\n") {
		t.Error(b.String())
	}
}
