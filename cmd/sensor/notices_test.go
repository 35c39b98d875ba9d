package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/control"
)

// guardBackend has one session, in the cgroup that the test is in, and one question of it.
type guardBackend struct {
	fakeBackend
	cgroup string
}

func (b *guardBackend) Guard(context.Context, control.GuardRequest) (control.GuardReply, error) {
	return control.GuardReply{ID: "c0ffee", Cgroup: b.cgroup, Mode: "enforce"}, nil
}

// ownCgroup is the directory of this process's cgroup.
func ownCgroup(t *testing.T) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	cgroups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	_, path, _ := strings.Cut("\n"+string(cgroups), "\n0::")
	path, _, _ = strings.Cut(path, "\n")
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); f[2] == "cgroup2" {
			return filepath.Join(f[1], path)
		}
	}
	t.Fatal("no cgroup v2 here")
	return ""
}

// F12: the terminal of weir guard shows what is denied, where to answer, and what waits; what CMD writes to files stays its own.
func TestGuardNotices(t *testing.T) {
	dir, weir := serve(t, &guardBackend{cgroup: ownCgroup(t)})
	const notice = "weir: waiting for an answer to abc234 ($'cu\\x1brl' → 192.0.2.1:443)"
	begins := []string{
		"weir guard: c0ffee runs as root and is clean: nothing is denied until it is tainted",
		"weir guard: root can undo what guards it: better use --user NAME",
		"weir guard: to answer questions, run in another terminal: sudo weir --run " + dir + " top",
	}
	for name, tc := range map[string]struct {
		flags  []string
		notice bool
		begins []string
	}{
		"plain":      {nil, true, begins},
		"quiet":      {[]string{"-q"}, false, nil},
		"no-notices": {[]string{"--no-notices"}, false, begins},
	} {
		t.Run(name, func(t *testing.T) {
			p := openTerminal(t)
			out := filepath.Join(t.TempDir(), "out")
			file, err := os.Create(out)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			args := append(append([]string{"--run", dir, "guard", "--user", "root"}, tc.flags...), "--", "sh", "-c", "echo out; echo err >&2; read line; exit 7")
			cmd := exec.Command(weir, args...)
			cmd.Stdout, cmd.Stderr = file, file
			p.start(t, cmd)
			until := time.Now().Add(time.Minute)
			if !tc.notice {
				until = time.Now().Add(3 * time.Second)
			}
			for time.Now().Before(until) && !strings.Contains(p.text(), notice) {
				time.Sleep(10 * time.Millisecond)
			}
			if got := strings.Contains(p.text(), notice); got != tc.notice {
				t.Errorf("notice is shown: %t: %q", got, p.text())
			}
			if _, err := p.far.WriteString("\n"); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 7 {
				t.Error("exit code", code)
			}
			data, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			want := append(slices.Clone(tc.begins), "out", "err")
			if tc.begins != nil {
				want = append(want, "weir guard: c0ffee ended: 0 denied, 0 asked, 0 approved")
			}
			if diff := cmp.Diff(strings.Join(want, "\n")+"\n", string(data)); diff != "" {
				t.Error("standard output and error (-want +got):\n" + diff)
			}
		})
	}
}

// F12: the first line says what is denied.
func TestTellBegin(t *testing.T) {
	for _, tc := range []struct {
		reply control.GuardReply
		run   string
		want  string
	}{
		{control.GuardReply{ID: "g-1", Mode: "enforce"}, control.DefaultDir, `weir guard: g-1 runs as nobody (uid 65534) and is clean: nothing is denied until it is tainted
weir guard: to answer questions, run in another terminal: sudo weir top
`},
		{control.GuardReply{ID: "g-1", Mode: "enforce", Taint: []string{"corruption", "secret"}}, "/tmp/r", `weir guard: g-1 runs as nobody (uid 65534) and starts tainted (corruption, secret): egress needs an approval
weir guard: to answer questions, run in another terminal: sudo weir --run /tmp/r top
`},
		{control.GuardReply{ID: "g-1", Mode: "observe", Taint: []string{"secret"}}, control.DefaultDir, "weir guard: g-1 runs as nobody (uid 65534): the mode is observe, nothing is denied\n"},
		{control.GuardReply{ID: "g-1", Mode: "seal"}, control.DefaultDir, "weir guard: g-1 runs as nobody (uid 65534): the mode is seal, all egress is denied\n"},
		{control.GuardReply{ID: "g-1"}, control.DefaultDir, "weir guard: g-1 runs as nobody (uid 65534)\n"}, // a sensor of an earlier version
	} {
		path := filepath.Join(t.TempDir(), "err")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		s := &system{stderr: f, runDir: tc.run}
		who, err := s.world().Identify("nobody")
		if err != nil {
			t.Fatal(err)
		}
		s.tellBegin(tc.reply, who)
		f.Close()
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, string(got)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tc.reply, diff)
		}
	}
}
