package linux

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const testKey = "not-a-real-key-0123456789"

// TestKeysG13: keys come from a file or the environment.
func TestKeysG13(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"GOOD": " " + testKey + "\n", "EMPTY": "", "TWO": testKey + " " + testKey, "LONG": strings.Repeat("k", maxKey+1), "BYTES": testKey + "\x00"}
	for _, c := range []struct{ name, file, env, key, want string }{
		{"none", "", "", "", ""},
		{"file", file("good", testKey+"\n", 0o600), "", testKey, ""},
		{"file for a group", file("group", testKey, 0o640), "", testKey, ""},
		{"environment", "", "GOOD", testKey, ""},
		{"both", "x", "GOOD", "", "name one"},
		{"absent", filepath.Join(dir, "none"), "", "", "no such file"},
		{"a directory", dir, "", "", "is not a file"},
		{"open to all", file("open", testKey, 0o644), "", "", "chmod 600"},
		{"a pipe", fifo, "", "", "is not a file"},
		{"empty file", file("empty", "\n", 0o600), "", "", "is empty"},
		{"two words", file("two", testKey+"\n"+testKey, 0o600), "", "", "not one word"},
		{"long file", file("long", strings.Repeat("k", maxKey*2), 0o600), "", "", "more than"},
		{"unset", "", "UNSET", "", "environment variable UNSET is empty"},
		{"set to nothing", "", "EMPTY", "", "is empty"},
		{"two in the environment", "", "TWO", "", "not one word"},
		{"long in the environment", "", "LONG", "", "more than"},
		{"bytes", "", "BYTES", "", "not one word"},
	} {
		key, err := ReadKey(c.file, c.env, func(name string) string { return env[name] })
		if key != c.key || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v, want %q, %q", c.name, key, err, c.key, c.want)
		}
		if err != nil && strings.Contains(err.Error(), testKey) {
			t.Errorf("%s: the key is in %v", c.name, err)
		}
	}
}
