package sight

import (
	"os"
	"path/filepath"
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
		if got, ok := By("self", dir)(name); !ok || got != in(want) {
			t.Errorf("%s: got %s (%v), want %s", name, got, ok, in(want))
		}
	}
	long := dir
	for len(long) < 5000 {
		long += "/a"
	}
	if got, ok := By("self", dir)(long); ok {
		t.Errorf("a path that is too long for the kernel leads to %d bytes", len(got))
	}
}
