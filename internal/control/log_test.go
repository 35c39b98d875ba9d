package control

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weir/internal/event"
)

// Who may look gets the log's files, can read and search them, and can write none of them; no file stays open at either end.
func TestLogIsHandedOver(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("run the tests as root: they connect as others")
	}
	const look, user = 70001, 70100
	b := &fake{}
	dir, s := start(t, b, nil)
	if err := s.SetRoles(Roles{Look: []uint32{look}}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "log.jsonl")
	line := `{"time":"2026-03-01T12:30:05Z","kind":"start","message":"1"}` + "\n"
	if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() int {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, fd := range fds {
			if to, _ := os.Readlink("/proc/self/fd/" + fd.Name()); to == path {
				n++
			}
		}
		return n
	}
	for _, c := range []struct{ files, want int }{{0, 0}, {1, 1}, {3, 3}, {maxFiles + 5, maxFiles}} {
		b.files = nil
		for range c.files {
			b.files = append(b.files, path)
		}
		log, err := clientAs(t, dir, user, look).Log(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(log.Files()) != c.want {
			t.Errorf("%d files have come, not %d", len(log.Files()), c.want)
		}
		found := 0
		if _, err := log.Newest(t.Context(), event.Filter{}, func(event.Event) error { found++; return nil }); err != nil || found != c.want {
			t.Errorf("%d found, %v", found, err)
		}
		for _, file := range log.Files() {
			if _, err := file.WriteAt([]byte("x"), 0); !errors.Is(err, unix.EBADF) {
				t.Error("it was written:", err)
			}
			if flags, err := unix.FcntlInt(file.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Error("a program that it starts has it:", err)
			}
		}
		log.Close()
	}
	b.files = []string{"/proc/self/fd/0/none"}
	if _, err := clientAs(t, dir, user, look).Log(t.Context()); err == nil {
		t.Error("there is no such file")
	}
	b.err = errors.New("no history")
	b.files = []string{path}
	if _, err := clientAs(t, dir, user, look).Log(t.Context()); err == nil || err.Error() != "no history" {
		t.Error(err)
	}
	b.err = nil
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	b.files = []string{path, fifo}
	if _, err := clientAs(t, dir, user, look).Log(t.Context()); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Error(err)
	}
	for open() > 0 { // the sensor closes them after it has handed them over
		runtime.Gosched()
	}
}
