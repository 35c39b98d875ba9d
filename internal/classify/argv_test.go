package classify

import (
	"testing"

	"weir/internal/commands"
)

// TestObservedG5 (B06, B12): a command line by its file, its variables and whether it is whole.
func TestObservedG5(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    Observed
		want commands.Class
	}{
		{"a program", Observed{Argv: []string{"ls", "-l"}, File: "/usr/bin/ls"}, commands.Local},
		{"no file", Observed{Argv: []string{"/bin/ls"}}, commands.Local},
		{"another file", Observed{Argv: []string{"ls"}, File: "/tmp/x"}, commands.Grey},
		{"in memory", Observed{Argv: []string{"ls"}, File: "memfd:ls"}, commands.Grey},
		{"deleted", Observed{Argv: []string{"ls"}, File: "/usr/bin/ls (deleted)"}, commands.Grey},
		{"a name that lies", Observed{Argv: []string{"cat", "f"}, File: "/usr/bin/curl"}, commands.Network},
		{"a name that lies about a local one", Observed{Argv: []string{"curl", "f"}, File: "/usr/bin/cat"}, commands.Grey},
		{"an applet", Observed{Argv: []string{"wget", "x"}, File: "/bin/busybox"}, commands.Network},
		{"truncated", Observed{Argv: []string{"ls"}, Truncated: true}, commands.Grey},
		{"nothing", Observed{}, commands.Grey},
		{"a preload", Observed{Argv: []string{"ls"}, Env: []string{"LD_PRELOAD"}}, commands.Grey},
		{"a pager's filter", Observed{Argv: []string{"less", "f"}, Env: []string{"LESSOPEN=|x %s"}}, commands.Grey},
		{"a strange PATH", Observed{Argv: []string{"ls"}, Env: []string{"PATH=.:/bin"}}, commands.Grey},
		{"an ordinary environment", Observed{Argv: []string{"ls"}, Env: []string{"PATH=/usr/bin:/bin", "HOME=/root", "LANG=C.UTF-8"}}, commands.Local},
		{"a builtin is no program", Observed{Argv: []string{"cd", "/"}}, commands.Grey},
		{"words are not expanded", Observed{Argv: []string{"sort", "*", "$(curl x)"}}, commands.Local},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := newJudge("", "", nil)
			j.Observed(tt.o)
			if j.Class != tt.want {
				t.Errorf("%v, want %v: %v", j.Class, tt.want, j.Reasons)
			}
		})
	}
}
