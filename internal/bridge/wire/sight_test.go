package wire

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestFollowsLinksK7: also links that lead nowhere yet, and those of others in directories where the kernel follows them for nobody else.
func TestFollowsLinksK7(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o1777); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.Mkdir(in("real"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"link": "real", "dangling": in("real") + "/absent", "chain": "dangling", "real/up": "../link/x", "loop": "loop",
	} {
		if err := os.Symlink(target, in(name)); err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() == 0 {
			if err := os.Lchown(in(name), 1000, 1000); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, want := range map[string]string{
		"link": "real", "link/a/b": "real/a/b", "dangling": "real/absent", "chain": "real/absent", "real/up": "real/x", "loop": "loop", "absent/file": "absent/file",
	} {
		if got, ok := SeenBy("self", dir)(name); !ok || !slices.Contains(got, in(want)) {
			t.Errorf("%s: got %s (%v), want %s", name, got, ok, in(want))
		}
	}
	long := dir
	for len(long) < 5000 {
		long += "/a"
	}
	if got, ok := SeenBy("self", dir)(long); !ok || len(got) != 1 {
		t.Errorf("a path that is too long for the kernel leads to %d places (%v)", len(got), ok)
	}
}

// F32: one call has a bound on what is looked up, however many paths it has and however long they are.
func TestF32Bound(t *testing.T) {
	deep := strings.Repeat("/a", 2000)
	for name, tt := range map[string]struct {
		paths int
		path  string
		whole bool
	}{
		"a few":         {50, "/etc/hostname", true},
		"new ones":      {500, "a/b/c/d.go", true},
		"deep":          {40, deep, false},
		"deep, by dots": {40, strings.Repeat("/a/..", 800), false},
		"many":          {4000, "/etc/hostname", false},
		"many, short":   {4000, "a", false},
	} {
		all := true
		look := SeenBy("self", t.TempDir())
		for range tt.paths {
			_, whole := look(tt.path)
			all = all && whole
		}
		if all != tt.whole {
			t.Errorf("%s: all of it was looked up: %v", name, all)
		}
	}
}

// F32: a process chooses how long its environment is; a home that stands behind what is read of it is not guessed.
func TestF32Home(t *testing.T) {
	for name, tt := range map[string]struct {
		env   []string
		whole bool
	}{
		"first": {[]string{"HOME=/home/x", "A=" + strings.Repeat("x", 100<<10), "B=" + strings.Repeat("x", 100<<10), "C=" + strings.Repeat("x", 100<<10)}, true},
		"last":  {[]string{"A=" + strings.Repeat("x", 100<<10), "B=" + strings.Repeat("x", 100<<10), "C=" + strings.Repeat("x", 100<<10), "HOME=/home/x"}, false},
		"none":  {nil, true},
	} {
		cmd := exec.Command("cat")
		cmd.Env = append([]string{"X=1"}, tt.env...)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, 1)); err != nil { // before, it may have no environment yet
			t.Fatal(err)
		}
		got, whole := SeenBy(strconv.Itoa(cmd.Process.Pid), "/")("~/f")
		if whole != tt.whole || whole && name == "first" && !slices.Contains(got, "/home/x/f") {
			t.Errorf("%s: %s (%v)", name, got, whole)
		}
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// F32: a path is read in each way that a tool may read it in: by the kernel, cleaned first, and with the home at its beginning.
func TestF32Readings(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"work", "home", "other/deep", "~"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"work/link": "../other/deep", "home/up": "../other", "work/near": "../other"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", filepath.Join(dir, "home"))
	child := exec.Command("/bin/sleep", "60")
	child.Env = []string{"A=b", "HOME=" + filepath.Join(dir, "home")}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.Process.Kill(); child.Wait() })
	for name, want := range map[string][]string{
		"link/../x": {"other/x", "work/x"}, dir + "/work/link/../near/x": {"other/near/x", "other/x"}, "gone/../near/x": {"other/x"}, "link/../gone/../../x": {"x"},
		"~/up/x": {"other/x", "work/~/up/x"}, "$HOME/up/x": {"other/x"}, "${HOME}/up/x": {"other/x"}, "~/../other/x": {"other/x"}, "~": {"home"},
		strings.Repeat("./", 3000) + "near/x": {"other/x"}, "near/" + strings.Repeat("a/../", 1000) + "x": {"other/x"},
	} {
		for _, process := range []string{"self", strconv.Itoa(child.Process.Pid)} {
			got, whole := SeenBy(process, filepath.Join(dir, "work"))(name)
			for _, w := range want {
				if !whole || !slices.Contains(got, filepath.Join(dir, w)) {
					t.Errorf("%.40s by %s: got %q (%v), want %s", name, process, got, whole, w)
				}
			}
		}
	}
	for name, want := range map[string]string{"~root/a": "/root/a", "~root": "/root", "~me/a": "/home/me/a", "$HOMES/a": filepath.Join(dir, "work/$HOMES/a")} {
		if got, _ := SeenBy("self", filepath.Join(dir, "work"))(name); !slices.Contains(got, want) {
			t.Errorf("%s: got %q, want %s", name, got, want)
		}
	}
}
