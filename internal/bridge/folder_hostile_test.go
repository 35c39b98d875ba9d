package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/bridge/wire"
	"weir/internal/event"
	"weir/internal/gate"
)

const raceTime = 10 * time.Second

// TestRace: for ten seconds, or more where the machine is slow, names change between plain files, links to what the container may not read, FIFOs, devices and directories,
// while they are asked and answered. Nothing but plain files of its own is ever read, nothing outside is ever written, nothing hangs.
func TestRace(t *testing.T) {
	dir, outside := shared(t), t.TempDir()
	secret, victim := filepath.Join(outside, "secret"), filepath.Join(outside, "victim")
	for path, text := range map[string]string{secret: request("", "SECRET"), victim: "untouched"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var read, crossed atomic.Int64
	serveFolder(t, map[string]string{"a": dir}, func(_ context.Context, _ string, data []byte) wire.Answer {
		read.Add(1)
		if strings.Contains(string(data), "SECRET") {
			crossed.Add(1)
		}
		return wire.Answer{Decision: wire.Deny, Reason: "no"}
	})
	stop := make(chan struct{})
	var racing sync.WaitGroup
	var swaps atomic.Int64
	forms := []func(path string) error{
		func(p string) error { return os.Symlink(secret, p) },
		func(p string) error { return os.Link(secret, p) },
		func(p string) error { return syscall.Mkfifo(p, 0o666) },
		func(p string) error { return syscall.Mknod(p, syscall.S_IFCHR|0o666, 1<<8|3) },
		func(p string) error { return os.Mkdir(p, 0o777) },
		func(p string) error {
			return errors.Join(os.WriteFile(p, []byte(request("", "ls")), 0o600), os.Chown(p, 1000, 1000))
		},
		func(p string) error {
			return errors.Join(os.WriteFile(p, []byte(request("", "ls")), 0o600), os.Chown(p, 1000, 1000))
		},
	}
	for i := range 4 {
		racing.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				name := filepath.Join(dir, fmt.Sprintf("r%d%s", n%3, wire.RequestSuffix))
				temp := filepath.Join(dir, fmt.Sprintf(".race-%d", i))
				os.RemoveAll(temp)
				if forms[rand.IntN(len(forms))](temp) != nil {
					continue
				}
				// Swapped, so that the name is never missing; the first has nothing to swap with.
				if unix.Renameat2(unix.AT_FDCWD, temp, unix.AT_FDCWD, name, unix.RENAME_EXCHANGE) != nil {
					os.Rename(temp, name)
				}
				swaps.Add(1)
			}
		})
	}
	racing.Go(func() { // where answers go
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			for _, name := range []string{fmt.Sprintf("r%d%s", n%3, wire.AnswerSuffix), wire.Alive} {
				path := filepath.Join(dir, name)
				os.RemoveAll(path)
				switch n % 3 {
				case 0:
					os.Symlink(victim, path)
				case 1:
					os.Link(victim, path)
				}
			}
			temps, _ := filepath.Glob(filepath.Join(dir, wire.TempPrefix+"*"))
			for _, temp := range temps { // and what is not whole yet
				os.Remove(temp)
				os.Symlink(victim, temp)
			}
		}
	})
	time.Sleep(raceTime)
	for end := time.Now().Add(within); (read.Load() == 0 || swaps.Load() < 1000) && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
	}
	close(stop)
	racing.Wait()
	if n := crossed.Load(); n != 0 {
		t.Errorf("%d times the secret was read", n)
	}
	if data, err := os.ReadFile(victim); err != nil || string(data) != "untouched" {
		t.Errorf("the victim has %q, %v", data, err)
	}
	if read.Load() == 0 || swaps.Load() < 1000 {
		t.Errorf("%d requests in %d swaps: there was no race", read.Load(), swaps.Load())
	}
	t.Logf("%d swaps, %d requests read", swaps.Load(), read.Load())
	// It still answers.
	for _, name := range []string{"last" + wire.AnswerSuffix, "last" + wire.RequestSuffix} {
		os.RemoveAll(filepath.Join(dir, name))
	}
	names, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, name := range names {
		os.RemoveAll(name)
	}
	leave(t, dir, "last"+wire.RequestSuffix, request("last", "ls"))
	folderAnswered(t, dir, "last")
}

// TestFlood: 10,000 requests at once, with long ones among them, in one folder, and another container is answered meanwhile. Memory stays
// below 64 MiB, and no more wait at once than may.
func TestFlood(t *testing.T) {
	const most = 10_000
	flood, calm := shared(t), shared(t)
	var now, peak atomic.Int64
	long := request("", strings.Repeat("x", wire.MaxLine-200))
	for i := range most {
		text := request("", "ls")
		if i%500 == 0 {
			text = long
		}
		leave(t, flood, fmt.Sprintf("f%d%s", i, wire.RequestSuffix), text)
	}
	var before, memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	serveFolder(t, map[string]string{"flood": flood, "calm": calm}, func(ctx context.Context, c string, data []byte) wire.Answer {
		if c == "flood" {
			defer now.Add(-1)
			if n := now.Add(1); n > peak.Load() {
				peak.Store(n)
			}
		}
		return echo(ctx, c, data)
	})
	left, heap := most, uint64(0)
	for i := 0; left > 0; i++ {
		id := fmt.Sprint("c", i)
		leave(t, calm, id+wire.RequestSuffix, request(id, "ls"))
		if a := folderAnswered(t, calm, id); a.Decision != wire.Allow {
			t.Fatalf("the other: %+v", a)
		}
		names, err := filepath.Glob(filepath.Join(flood, "*"+wire.AnswerSuffix))
		if err != nil || len(names) > maxAnswers {
			t.Fatalf("%d answers lie about, %v", len(names), err)
		}
		for _, name := range names {
			var a wire.Answer
			data, err := os.ReadFile(name)
			if err != nil || json.Unmarshal(data, &a) != nil || a.RequestID+wire.AnswerSuffix != filepath.Base(name) {
				t.Fatalf("%s: %q, %v", name, data, err)
			}
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
			left--
		}
		runtime.ReadMemStats(&memory)
		heap = max(heap, memory.HeapInuse)
	}
	if n := peak.Load(); n > maxFolderFlight || n == 0 {
		t.Errorf("%d requests at once, want at most %d", n, maxFolderFlight)
	}
	if heap > before.HeapInuse+64<<20 {
		t.Errorf("%d MiB of heap, after %d MiB before", heap>>20, before.HeapInuse>>20)
	}
	t.Logf("%d MiB of heap, after %d MiB before; %d at once", heap>>20, before.HeapInuse>>20, peak.Load())
}

// Long requests of other containers, for which people are asked, do not keep one's from being answered, and have room for a few of each.
func TestLongRequestsB152(t *testing.T) {
	const greedy = maxFolderLong / maxFolderOwn
	folders := map[string]string{"calm": shared(t)}
	for i := range greedy {
		dir := shared(t)
		folders[fmt.Sprint("greedy", i)] = dir
		for i := range maxFolderFlight {
			leave(t, dir, fmt.Sprintf("f%d%s", i, wire.RequestSuffix), request("", strings.Repeat("x", 2*maxFolderShort)))
		}
	}
	asked := make(chan struct{}, greedy*maxFolderFlight)
	h := &host{decide: func(ctx context.Context, r gate.Request) gate.Verdict {
		if r.Container.ID != "calm" {
			asked <- struct{}{}
			<-ctx.Done() // as for a person
		}
		return gate.Verdict{Decision: gate.Allow}
	}}
	s := New(h, quiet())
	serveFolder(t, folders, func(ctx context.Context, c string, data []byte) wire.Answer {
		return s.Answer(ctx, data, func() (Asker, error) { return Asker{Container: event.Container{ID: c}, Mode: "enforce"}, nil })
	})
	for range greedy * maxFolderOwn {
		<-asked
	}
	for i := range 2 * maxFolderLong { // one after the other: the greedy ones' have had their turns
		id := fmt.Sprint("c", i)
		leave(t, folders["calm"], id+wire.RequestSuffix, request(id, strings.Repeat("x", 2*maxFolderShort)))
		if a := folderAnswered(t, folders["calm"], id); a.Decision != wire.Allow {
			t.Fatalf("the other: %+v", a)
		}
	}
	if n := len(asked); n > 0 {
		t.Errorf("%d more of their long ones have room", n)
	}
}

// FuzzFile: whatever a container leaves as a request, under whatever name, it gets one answer that parses under its own id, or none.
func FuzzFile(f *testing.F) {
	f.Add("1.request", []byte(request("1", "ls")))
	f.Add("a-b.request", []byte(`{"request_id":"x"}`))
	f.Add("..request", []byte("{"))
	f.Add("../x.request", []byte("[]"))
	f.Add("x.answer", []byte("\x00"))
	dir := shared(f)
	long := make(chan struct{}, maxFolderLong)
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		folder, err := open(dir, 1000)
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		id := wire.FolderID(name, wire.RequestSuffix)
		if id == "" {
			return
		}
		leave(t, dir, name, string(data)) // a name with an id has no slash
		b := &box{Folder: folder, container: "a", answer: echo, long: []chan struct{}{long}, alone: func() bool { return true }}
		b.decide(context.Background(), id)
		answer, err := os.ReadFile(filepath.Join(dir, id+wire.AnswerSuffix))
		if err != nil {
			t.Fatal(err)
		}
		var a wire.Answer
		if err := json.Unmarshal(answer, &a); err != nil || a.RequestID != id || a.Decision != wire.Allow && a.Decision != wire.Deny {
			t.Fatalf("%q: %v", answer, err)
		}
		var r wire.Request
		if a.Decision == wire.Allow && (json.Unmarshal(data, &r) != nil || r.Command != "ls" || r.RequestID != "" && r.RequestID != id) {
			t.Fatalf("%q is allowed", data)
		}
		if err := os.Remove(filepath.Join(dir, id+wire.AnswerSuffix)); err != nil {
			t.Fatal(err)
		}
	})
}
