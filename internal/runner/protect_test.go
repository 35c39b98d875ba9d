package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWritable: nothing that holds start-up files is opened by standing in it (B52).
func TestWritable(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(top, "home")
	for _, dir := range []string{"home/project/x", "home/.config/y", "other"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(home, filepath.Join(top, "link")); err != nil {
		t.Fatal(err)
	}
	for work, ok := range map[string]bool{
		"home/project": true, "home/project/x": true, "other": true, "link/project": true,
		"home": false, "link": false, ".": false, "home/.config": false, "home/.config/y": false, "/": false, "/etc": false, "/var/spool": false, "missing": false,
	} {
		path := work
		if !filepath.IsAbs(path) {
			path = filepath.Join(top, work)
		}
		got, err := Writable(path, filepath.Join(top, "link"), Write{Dirs: []string{".agent/state"}, Files: []string{".agent/id"}})
		if (err == nil) != ok {
			t.Errorf("%s: %v, %v", work, got, err)
		}
		if ok && (!strings.HasPrefix(got.Dirs[0], top) || strings.Contains(got.Dirs[0], "link") || got.Dirs[len(got.Dirs)-1] != home+"/.agent/state" || got.Files[0] != home+"/.agent/id") {
			t.Errorf("%s: %v", work, got)
		}
	}
}
