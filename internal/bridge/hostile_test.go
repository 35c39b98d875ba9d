package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"

	"weir/internal/bridge/wire"
	"weir/internal/gate/verdict"
)

// TestHostile: 60 clients of one container at once send endless lines, long lines, half lines, floods with one id, deep JSON and nothing at
// all. Who asks properly is served meanwhile, nothing is allowed that the gate denies, and memory stays below 64 MiB.
func TestHostile(t *testing.T) {
	h := &host{asker: inside("secret"), decide: func(_ context.Context, r verdict.Request) verdict.Verdict {
		if r.Command == "ls" {
			return verdict.Verdict{Decision: verdict.Allow, Reason: verdict.LocalRun}
		}
		return verdict.Verdict{Reason: verdict.Denied}
	}}
	path := serve(t, h)
	// What the clients send is made once: memory is to be the server's.
	junk, zero := bytes.Repeat([]byte("x"), 64<<10), make([]byte, 64<<10)
	long, half, deep := []byte(bash("1", strings.Repeat("curl ", 380<<10))), []byte(`{"type":"security:bash_check",`), []byte(strings.Repeat("[", 1<<20)+"\n")
	same := bytes.Repeat([]byte(bash("same", "curl")), 100)
	attacks := map[string]func(w io.Writer){
		"endless line": func(w io.Writer) {
			for range 1 << 14 { // 1 GiB
				if _, err := w.Write(junk); err != nil {
					return
				}
			}
		},
		"long line":  func(w io.Writer) { w.Write(long) },
		"half line":  func(w io.Writer) { w.Write(half) },
		"deep":       func(w io.Writer) { w.Write(deep) },
		"zero bytes": func(w io.Writer) { w.Write(zero) },
		"one id":     func(w io.Writer) { w.Write(same) },
		"nothing":    func(io.Writer) {},
	}
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var clients sync.WaitGroup
	for name, attack := range attacks {
		for range 8 {
			conn := dial(t, path)
			clients.Go(func() {
				go func() {
					attack(conn)
					conn.CloseWrite()
				}()
				dec := json.NewDecoder(conn)
				for {
					var a wire.Answer
					if dec.Decode(&a) != nil {
						return // cut off, or done
					}
					if a.Decision != wire.Deny || a.Reason == "" {
						t.Errorf("%s: %+v", name, a)
					}
				}
			})
		}
	}
	conn, peak := dial(t, path), uint64(0)
	for i := range 10_000 {
		if _, err := io.WriteString(conn, bash(fmt.Sprint(i), "ls")); err != nil {
			t.Fatal(err)
		}
		if a := answers(t, conn, 1)[fmt.Sprint(i)]; a.Decision != wire.Allow {
			t.Fatalf("request %d: %+v", i, a)
		}
		if i%100 == 0 {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapInuse)
		}
	}
	clients.Wait()
	if peak > before.HeapInuse+64<<20 {
		t.Errorf("%d MiB of heap, after %d MiB before", peak>>20, before.HeapInuse>>20)
	}
	t.Logf("%d MiB of heap, after %d MiB before", peak>>20, before.HeapInuse>>20)
}
