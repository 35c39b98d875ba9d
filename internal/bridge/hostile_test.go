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
	"weir/internal/gate"
)

// TestHostile: 60 clients of one container at once send endless lines, long lines, half lines, floods with one id, deep JSON and nothing at
// all. Who asks properly is served meanwhile, nothing is allowed that the gate denies, and memory stays below 64 MiB.
func TestHostile(t *testing.T) {
	h := &host{asker: inside("secret"), decide: func(_ context.Context, r gate.Request) gate.Verdict {
		if r.Command == "ls" {
			return gate.Verdict{Decision: gate.Allow, Reason: gate.LocalRun}
		}
		return gate.Verdict{Reason: gate.Denied}
	}}
	path := serve(t, h)
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	attacks := map[string]func(w io.Writer){
		"endless line": func(w io.Writer) {
			junk := bytes.Repeat([]byte("x"), 64<<10)
			for range 1 << 14 { // 1 GiB
				if _, err := w.Write(junk); err != nil {
					return
				}
			}
		},
		"long line":  func(w io.Writer) { io.WriteString(w, bash("1", strings.Repeat("curl ", 380<<10))) },
		"half line":  func(w io.Writer) { io.WriteString(w, `{"type":"security:bash_check",`) },
		"deep":       func(w io.Writer) { io.WriteString(w, strings.Repeat("[", 1<<20)+"\n") },
		"zero bytes": func(w io.Writer) { w.Write(make([]byte, 1<<16)) },
		"one id": func(w io.Writer) {
			for range 100 {
				io.WriteString(w, bash("same", "curl"))
			}
		},
		"nothing": func(io.Writer) {},
	}
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
	conn := dial(t, path)
	for i := range 10_000 {
		if _, err := io.WriteString(conn, bash(fmt.Sprint(i), "ls")); err != nil {
			t.Fatal(err)
		}
		if a := answers(t, conn, 1)[fmt.Sprint(i)]; a.Decision != wire.Allow {
			t.Fatalf("request %d: %+v", i, a)
		}
		if i%1000 == 0 {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			if now.HeapInuse > before.HeapInuse+64<<20 {
				t.Errorf("after %d requests: %d MiB of heap", i, now.HeapInuse>>20)
			}
		}
	}
	clients.Wait()
}
