package classifytest

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// What the runner must see, or the differential test would prove nothing.
func TestRunSees(t *testing.T) {
	tests := []struct {
		shell, command, exec, socket, made string
	}{
		{"bash", "ls", "/usr/bin/ls", "", ""},
		{"dash", "cat f | sort", "/usr/bin/sort", "", ""},
		{"bash", "PATH=.; ls", "./ls", "", ""},
		{"bash", "x='a[$(pwn)]'; [[ $x -gt 1 ]]", "/mnt/bin/pwn", "", ""},
		{"bash", "cat <(curl x)", "/mnt/bin/curl", "", ""},
		{"dash", "(awk 'BEGIN{system(\"./p\")}')", "./p", "", ""},
		{"bash", "find . -name f -exec ./p {} +", "./p", "", ""},
		{"bash", "(pwn &)", "/mnt/bin/pwn", "", ""},
		{"bash", "./not-there", "", "", ""},
		{"bash", "env not-there", "/usr/bin/not-there", "", ""},
		{"bash", "exec 3<>/dev/tcp/127.0.0.1/9", "", "AF_INET", ""},
		{"bash", "echo x >/dev/udp/192.0.2.1/9", "", "AF_INET", ""},
		{"dash", "echo x >out", "", "", "out"},
		{"bash", "exit 3", "", "", ""},
		{"dash", "if", "", "", ""},
		{"bash", "sort -S1k --compress-program=./p f", "/usr/bin/sort", "", ""},
	}
	for _, shell := range []string{"bash", "dash"} {
		var commands []string
		var at []int
		for i, tt := range tests {
			if tt.shell == shell {
				commands, at = append(commands, tt.command), append(at, i)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Minute)
		defer cancel()
		seen, err := Run(ctx, t.TempDir(), shell, commands)
		if err != nil {
			t.Fatal(err)
		}
		for k, s := range seen {
			tt := tests[at[k]]
			if tt.exec != "" && !slices.Contains(s.Execs, tt.exec) || tt.exec == "" && len(s.Execs) > 0 && tt.command != "./not-there" {
				t.Errorf("%s: %s: execs %q, want %q among them", shell, tt.command, s.Execs, tt.exec)
			}
			if found := strings.Contains(strings.Join(s.Sockets, "\n"), tt.socket); !found || tt.socket == "" && len(s.Sockets) > 0 {
				t.Errorf("%s: %s: sockets %q, want %q", shell, tt.command, s.Sockets, tt.socket)
			}
			if tt.made != "" && !slices.Contains(s.Made, tt.made) || tt.made == "" && len(s.Made) > 0 {
				t.Errorf("%s: %s: made %q, want %q", shell, tt.command, s.Made, tt.made)
			}
		}
	}
}

func TestRunSaysWhatIsWrong(t *testing.T) {
	_, err := Run(t.Context(), filepath.Join(t.TempDir(), "missing"), "bash", []string{"ls"})
	if err == nil || !strings.Contains(err.Error(), "lay out commands") {
		t.Errorf("error %v, want what could not be laid out", err)
	}
	_, err = Run(t.Context(), t.TempDir(), "no-such-shell", []string{"ls"})
	if err == nil || !strings.Contains(err.Error(), "no-such-shell") {
		t.Errorf("error %v, want the shell that is missing", err)
	}
}

func TestParseTrace(t *testing.T) {
	// A child's lines may come before its parent's fork returns.
	const trace = `10 chdir("/mnt/work/0") = 0
10 vfork( <unfinished ...>
11 execve("/usr/bin/a\tb", ["ls"], 0x5 /* 3 vars */) = -1 ENOENT (No such file or directory)
10 <... vfork resumed>) = 11
11 socket(AF_INET, SOCK_STREAM, IPPROTO_TCP) = 3
9 execve("/usr/bin/driver", ["x"], 0x5) = 0
12 chdir("/mnt/work/1") = 0
12 socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC|SOCK_NONBLOCK, 0) = 3
12 connect(3, {sa_family=AF_UNIX, sun_path="/var/run/nscd/socket"}, 110) = -1 ENOENT (No such file or directory)
12 connect(3, {sa_family=AF_UNIX, sun_path="/run/docker.sock"}, 110) = 0
12 chdir("/mnt/work/0") = 0
`
	seen, err := parseTrace(trace, 2)
	if err != nil {
		t.Fatal(err)
	}
	if got := seen[0].Execs; !slices.Equal(got, []string{"/usr/bin/a\tb"}) {
		t.Errorf("execs of 0: %q", got)
	}
	if got := seen[0].Sockets; len(got) != 1 {
		t.Errorf("sockets of 0: %q", got)
	}
	if got := seen[1].Sockets; len(got) != 1 || !strings.Contains(got[0], "docker") {
		t.Errorf("sockets of 1: %q", got)
	}
	if _, err := parseTrace(trace, 3); err == nil {
		t.Error("a command that did not begin is no error")
	}
}
