package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// filled makes a database with records on many pages, and gives its directory.
func filled(t *testing.T) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	db, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{"taint", "questions"} {
			b, err := tx.CreateBucketIfNotExists([]byte(name))
			if err != nil {
				return err
			}
			for i := range 400 {
				if err := b.Put(fmt.Appendf(nil, "id%03d", i), bytes.Repeat([]byte("x"), 400)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, filepath.Join(dir, "state.db")
}

// refused checks that the database is refused in one line, and left as it is.
func refused(t *testing.T, dir, want string) {
	t.Helper()
	path := filepath.Join(dir, "state.db")
	before, _ := os.ReadFile(path)
	db, err := OpenStore(dir)
	if err == nil {
		db.Close()
		t.Errorf("it was opened; want %q", want)
		return
	}
	if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want one line with %q", err, want)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the file was changed")
	}
}

func TestStateIsMadeOnce(t *testing.T) {
	dir, path := filled(t)
	for range 2 {
		db, err := OpenStore(dir)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		db.View(func(tx *bbolt.Tx) error { n = tx.Bucket([]byte("questions")).Stats().KeyN; return nil })
		if err := db.Close(); err != nil || n != 400 {
			t.Errorf("%d records, %v", n, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	// What a start that was broken off left is no database.
	os.Remove(path)
	if err := os.WriteFile(path+".new", []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
}

// Who else could write the database, or put another one in its place, could take taint out of it, or approve what they like.
func TestStateIsOurs(t *testing.T) {
	for name, spoil := range map[string]func(dir, path string) error{
		"another's file":        func(_, path string) error { return os.Chown(path, 1000, -1) },
		"a group's file":        func(_, path string) error { return os.Chmod(path, 0o620) },
		"everybody's file":      func(_, path string) error { return os.Chmod(path, 0o602) },
		"another's directory":   func(dir, _ string) error { return os.Chown(dir, 1000, -1) },
		"everybody's directory": func(dir, _ string) error { return os.Chmod(dir, 0o777|os.ModeSticky) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, path := filled(t)
			if err := spoil(dir, path); err != nil {
				t.Fatal(err)
			}
			refused(t, dir, "others than the sensor could write to ")
		})
	}
	dir, path := filled(t)
	if err := errors.Join(os.Chmod(path, 0o644), os.Chmod(dir, 0o755)); err != nil { // to read it is no harm here
		t.Fatal(err)
	}
	db, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
}

func TestStateIsLocked(t *testing.T) {
	dir, _ := filled(t)
	db, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	refused(t, dir, "it is locked: is another sensor using it?")
}

func TestStateIsCut(t *testing.T) {
	for _, size := range []int64{0, 1, 100, 4095, 4096, 8191, 8192, 16384, 20000, 65536, 100000} {
		dir, path := filled(t)
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		want := "remove it and so forget all taint, questions and the mode"
		refused(t, dir, want)
	}
}

func TestStateIsNoDatabase(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"it is damaged, or no database of weir": func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("text\n"), 9999), 0o600) },
		"zeros":                                 func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte{0}, 65536), 0o600) },
		"it is not a file":                      func(path string) error { return os.Mkdir(path, 0o700) },
		"not a file":                            func(path string) error { return os.Symlink("/nonexistent", path) },
	} {
		dir := t.TempDir()
		if err := make(filepath.Join(dir, "state.db")); err != nil {
			t.Fatal(err)
		}
		if name == "zeros" {
			name = "it is damaged"
		}
		refused(t, dir, name)
	}
}

// Whatever bytes are damaged, it is refused in one line or opened; it never crashes.
func TestStateIsDamaged(t *testing.T) {
	dir, path := filled(t)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	opened := 0
	for i := range 150 {
		bad := bytes.Clone(good)
		switch i % 3 {
		case 0: // a page of noise, but not the two with the newest and the last state
			page := 2 + random.IntN(len(bad)/4096-2)
			for j := range 4096 {
				bad[page*4096+j] = byte(random.Uint32())
			}
		case 1: // the heads of pages
			for page := 2; page < len(bad)/4096; page++ {
				bad[page*4096+random.IntN(32)] ^= byte(1 << random.IntN(8))
			}
		default:
			for range 20 {
				bad[random.IntN(len(bad))] ^= byte(1 << random.IntN(8))
			}
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := OpenStore(dir)
		if err == nil {
			opened++
			db.Close()
			continue
		}
		if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), path) {
			t.Errorf("not one line: %v", err)
		}
	}
	if opened > 100 {
		t.Errorf("%d of 150 damaged files were opened", opened)
	}
}

func TestStateOfAnotherVersion(t *testing.T) {
	dir, _ := filled(t)
	db, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put(formatKey, []byte("7")) }); err != nil {
		t.Fatal(err)
	}
	db.Close()
	refused(t, dir, `it was written by another version of weir: its format is "7", this one knows 1: run the build that wrote it`)
}

// A disk that is full: a limit on the size of files stands for it, in a process of its own, since the test's own log is a file, too.
func TestStateOnAFullDisk(t *testing.T) {
	const alone = "WEIR_TEST_FULL_DISK"
	if os.Getenv(alone) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), alone+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 4096, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	db, err := OpenStore(dir)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err == nil {
		db.Close()
		t.Fatal("it was made")
	}
	if !strings.Contains(err.Error(), "make "+dir) || !strings.Contains(err.Error(), "file too large") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
