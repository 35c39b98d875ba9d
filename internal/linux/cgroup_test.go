package linux

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBelow(t *testing.T) { // B28
	for _, c := range []struct {
		path, parent string
		want         bool
	}{
		{"/weir/g-1", "/weir/g-1", true},
		{"/weir/g-1/nested", "/weir/g-1", true},
		{"/weir/g-10", "/weir/g-1", false},
		{"/weir", "/weir/g-1", false},
		{"/", "/weir", false},
		{"/weir/g-1", "/", true},
	} {
		if got := PathWithin(c.path, c.parent); got != c.want {
			t.Errorf("Below(%q, %q) = %v", c.path, c.parent, got)
		}
	}
}

// A path is taken as it is: what looks like another one's is not that (B65).
func TestUnified(t *testing.T) {
	for lines, want := range map[string]string{
		"0::/weir/c9\n":                                  "/weir/c9",
		"0::/weir/c9 (deleted)\n":                        "/weir/c9 (deleted)",
		"0::/weir/c9 (deleted) (deleted)\n":              "/weir/c9 (deleted) (deleted)",
		"0::/weir/c9 \n":                                 "/weir/c9 ",
		"0::/weir/с9\n":                                  "/weir/с9", // another letter
		"0::/weir/0::/c9\n":                              "/weir/0::/c9",
		"1:name=systemd:/0::/c8\n0::/weir/c9//deleted\n": "/weir/c9//deleted",
		"1:name=systemd:/c9\n":                           "",
	} {
		if got, ok := unified([]byte(lines)); got != want || ok != (want != "") {
			t.Errorf("unified(%q) = %q, %v", lines, got, ok)
		}
		if PathWithin(want, "/weir/c9") && want != "/weir/c9" && want != "/weir/c9//deleted" {
			t.Errorf("%q counts as below /weir/c9", want)
		}
	}
}

func TestChild(t *testing.T) { // B28, G3
	for _, c := range []struct {
		path    string
		parents []string
		child   string // empty: none
		within  bool
	}{
		{"/weir/g-1", nil, "", false},
		{"/weir/g-1", []string{"/weir"}, "/weir/g-1", true},
		{"/weir/g-1/deep/er", []string{"/other", "/weir"}, "/weir/g-1", true},
		{"/weir", []string{"/weir"}, "", true}, // the parent itself is no container
		{"/weird/g-1", []string{"/weir"}, "", false},
		{"/", []string{"/weir"}, "", false},
		{"/kubepods/burstable/pod1/c", []string{"/kubepods/burstable", "/kubepods"}, "/kubepods/burstable/pod1", true},
		{"/kubepods/burstable/pod1/c", []string{"/kubepods", "/kubepods/burstable"}, "/kubepods/burstable/pod1", true},
		{"/kubepods/burstable", []string{"/kubepods", "/kubepods/burstable"}, "/kubepods/burstable", true},
		// a long name below the outer one does not outweigh the inner one
		{"/a/b/c/d", []string{"/a", "/a/b"}, "/a/b/c", true},
		{"/a-very-long-name/b/c", []string{"/a-very-long-name", "/a-very-long-name/b"}, "/a-very-long-name/b/c", true},
		{"/x/y", []string{"/"}, "/x", true},
		{"/", []string{"/"}, "", true},
	} {
		child, ok := CgroupChild(c.path, c.parents)
		if child != c.child || ok != (c.child != "") {
			t.Errorf("Child(%q, %q) = %q, %v", c.path, c.parents, child, ok)
		}
		if got := CgroupWithin(c.path, c.parents); got != c.within {
			t.Errorf("Within(%q, %q) = %v", c.path, c.parents, got)
		}
	}
}

func TestProcessesOfThreads(t *testing.T) { // B58
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	tids := []int{1 << 30} // has ended
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		tids = append(tids, tid)
	}
	if len(tids) < 3 {
		t.Fatalf("the test has only these threads: %v", tids)
	}
	if diff := cmp.Diff([]int{os.Getpid()}, processes(tids)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSlice(t *testing.T) {
	for name, want := range map[string]string{
		"user.slice": "/user.slice", "a-b.slice": "/a.slice/a-b.slice", "-.slice": "/", `a\x2db.slice`: `/a\x2db.slice`,
		"kubepods-burstable-pod1.slice": "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice",
		"a--b.slice":                    "", "-a.slice": "", "a-.slice": "", ".slice": "", "a/b.slice": "", "a\x00.slice": "", "agent.scope": "", "a": "", "": "",
	} {
		got, err := CgroupSlice(name)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("Slice(%q) = %q, %v", name, got, err)
		}
	}
}

func TestDir(t *testing.T) {
	for path, want := range map[string]string{
		"/weir": CgroupRoot + "/weir", "weir/": CgroupRoot + "/weir", "/": CgroupRoot, "/../../etc": CgroupRoot + "/etc",
	} {
		if got := CgroupDir(path); got != want {
			t.Errorf("Dir(%q) = %q, want %q", path, got, want)
		}
	}
}

// The entries of a directory have the inodes that their files have, over more than one read.
func TestEachEntry(t *testing.T) {
	dir := t.TempDir()
	want := map[string]uint64{}
	for i := range 1000 {
		name := strings.Repeat("x", i%200) + strconv.Itoa(i)
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		want[name] = st.Sys().(*syscall.Stat_t).Ino
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	got, files := map[string]uint64{}, 0
	err := eachEntry(dir, func(e entry) {
		switch {
		case !e.dir:
			files++
		case !strings.HasPrefix(e.name, "."):
			got[e.name] = e.inode
		}
	})
	if diff := cmp.Diff(want, got); diff != "" || files != 1 || err != nil {
		t.Errorf("error %v, %d files; -want +got\n%s", err, files, diff)
	}
	if err := eachEntry(filepath.Join(dir, "gone"), func(entry) {}); !os.IsNotExist(err) {
		t.Errorf("a directory that is not there: %v", err)
	}
}
