package command

import (
	"testing"

	"weir/internal/classify/table"
)

// TestObserved (G5, B06, B12): a command line by its file, its variables and whether it is whole.
func TestObserved(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    Observed
		want table.Class
	}{
		{"a program", Observed{Argv: []string{"ls", "-l"}, File: "/usr/bin/ls"}, table.Local},
		{"no file", Observed{Argv: []string{"/bin/ls"}}, table.Local},
		{"another file", Observed{Argv: []string{"ls"}, File: "/tmp/x"}, table.Grey},
		{"in memory", Observed{Argv: []string{"ls"}, File: "memfd:ls"}, table.Grey},
		{"deleted", Observed{Argv: []string{"ls"}, File: "/usr/bin/ls (deleted)"}, table.Grey},
		{"a name that lies", Observed{Argv: []string{"cat", "f"}, File: "/usr/bin/curl"}, table.Network},
		{"a name that lies about a local one", Observed{Argv: []string{"curl", "f"}, File: "/usr/bin/cat"}, table.Grey},
		{"an applet", Observed{Argv: []string{"wget", "x"}, File: "/bin/busybox"}, table.Network},
		{"truncated", Observed{Argv: []string{"ls"}, Truncated: true}, table.Grey},
		{"nothing", Observed{}, table.Grey},
		{"a preload", Observed{Argv: []string{"ls"}, Env: []string{"LD_PRELOAD"}}, table.Grey},
		{"a pager's filter", Observed{Argv: []string{"less", "f"}, Env: []string{"LESSOPEN=|x %s"}}, table.Grey},
		{"a strange PATH", Observed{Argv: []string{"ls"}, Env: []string{"PATH=.:/bin"}}, table.Grey},
		{"an ordinary environment", Observed{Argv: []string{"ls"}, Env: []string{"PATH=/usr/bin:/bin", "HOME=/root", "LANG=C.UTF-8"}}, table.Local},
		{"a builtin is no program", Observed{Argv: []string{"cd", "/"}}, table.Grey},
		{"words are not expanded", Observed{Argv: []string{"sort", "*", "$(curl x)"}}, table.Local},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := New("")
			j.Observed(tt.o)
			if j.Class != tt.want {
				t.Errorf("%v, want %v: %v", j.Class, tt.want, j.Reasons)
			}
		})
	}
}
