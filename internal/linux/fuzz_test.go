package linux

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// FuzzStat: whatever a process calls itself, its other fields are the kernel's; and what is no stat at all is an error or has its own ids.
func FuzzStat(f *testing.F) {
	f.Add("cat", 1, uint32(9876))
	f.Add("a) S 1 (b", 7, uint32(0))
	f.Add(") R 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", 1, uint32(1))
	f.Fuzz(func(t *testing.T, comm string, pid int, start uint32) {
		if s, err := parseStat([]byte(comm)); err == nil && !strings.Contains(comm, "("+s.Comm+")") {
			t.Fatalf("%q has the name %q", comm, s.Comm)
		}
		got, err := parseStat(fmt.Appendf(nil, "%d (%s) S 41 42 43 34817 45 4194304 1 2 3 4 5 6 7 8 20 0 1 0 %d 1 2 3\n", pid, comm, start))
		if want := (Stat{PID: pid, PPID: 41, Group: 42, Session: 43, TTY: 34817, State: 'S', Start: uint64(start) * tick, Comm: comm}); err != nil || got != want {
			t.Fatalf("%+v, %v, want %+v", got, err, want)
		}
	})
}

// FuzzMounts: whatever paths are mounted where, each mount point is found under its own name, below its directory and by its device, and
// no name makes up another one.
func FuzzMounts(f *testing.F) {
	f.Add("a b", "c")
	f.Add("a\\040b\t", "\n1 2 0:7 / /x rw")
	f.Add("\r", "\u00a0x y")
	f.Add("..", "#\v\f\u0085")
	kernel := strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`) // as show_mountinfo does
	f.Fuzz(func(t *testing.T, root, at string) {
		MountsBelow(root+at, "/")
		if strings.Contains(root+at, "\x00") { // no path has one
			return
		}
		info := fmt.Sprintf("36 35 8:1 / / rw,noatime master:1 - ext4 /dev/root rw\n37 36 0:7 /%s /d/%s rw - tmpfs x rw\n", kernel.Replace(root), kernel.Replace(at))
		want := []string{"/d/" + at}
		if got := MountsBelow(info, "/d"); !slices.Equal(got, want) {
			t.Fatalf("below /d: %q, want %q", got, want)
		}
		if got := MountsOf(info, 7); !slices.Equal(got, want) {
			t.Fatalf("of 0:7: %q, want %q", got, want)
		}
		if got := MountsOf(info, 8<<20|1); !slices.Equal(got, []string{"/"}) {
			t.Fatalf("of 8:1: %q", got)
		}
	})
}

// FuzzCgroup: a process is where the line of cgroup v2 says, whatever its other hierarchies are called.
func FuzzCgroup(f *testing.F) {
	f.Add("name=x", "/a", "/b (deleted)")
	f.Add("0", ":/x", "")
	f.Fuzz(func(t *testing.T, controllers, other, path string) {
		unified([]byte(controllers + other))
		if strings.Contains(controllers+other+path, "\n") { // no cgroup has one
			return
		}
		if got, ok := unified([]byte("4:" + controllers + ":" + other + "\n0::" + path + "\n")); !ok || got != path {
			t.Fatalf("%q, %v, want %q", got, ok, path)
		}
	})
}
