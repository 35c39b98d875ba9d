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
	"time"

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

// waitingTools are tools whose calls wait until they are cancelled.
type waitingTools struct{ ownTools }

func (*waitingTools) Call(ctx context.Context, _ func() (Asker, error), r wire.Request, tell func(string)) wire.CallAnswer {
	tell("It waits.")
	<-ctx.Done()
	return wire.CallAnswer{Answer: wire.Answer{RequestID: r.RequestID}}
}

func toolCalls(from, to int, filler string) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, `{"type":"security:tool_call","request_id":"%d","tool_name":"wait","tool_input":{"x":%q}}`+"\n", i, filler)
	}
	return b.String()
}

// TestHostileTools: as TestHostile, of who calls tools: half frames, and calls of who reads no answer. What they write and nobody takes stays in the
// kernel.
func TestHostileTools(t *testing.T) {
	const most = 48 << 20 // garbage of a slow machine among it
	for name, c := range map[string]struct {
		conns int
		lines string
		bytes int // that each writes
	}{
		"half frames": {64, `{"type":"security:tool_call","request_id":"` + strings.Repeat("x", wire.MaxLine*3/4), 1},
		"calls":       {8, toolCalls(0, 512, strings.Repeat("x", 15<<10)), 32 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(&host{asker: inside()}, quiet())
			s.Offer(&waitingTools{})
			path := listen(t, s)
			lines := []byte(c.lines)
			var before, now runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			var clients sync.WaitGroup
			for range c.conns {
				conn := dial(t, path)
				clients.Go(func() {
					conn.SetWriteDeadline(time.Now().Add(3 * time.Second)) // nobody has to take it all
					for sent := 0; sent < c.bytes; sent += len(lines) {
						if _, err := conn.Write(lines); err != nil {
							break
						}
					}
				})
			}
			clients.Wait()
			runtime.GC()
			runtime.ReadMemStats(&now)
			used, first := now.HeapInuse+now.StackInuse, before.HeapInuse+before.StackInuse
			if used > first+most {
				t.Errorf("%d MiB in use, after %d MiB before", used>>20, first>>20)
			}
			t.Logf("%d MiB in use, after %d MiB before", used>>20, first>>20)
		})
	}
}

// TestToolsAreBounded: so many calls of one connection wait, the next is not read, and who hangs up has cancelled all of them.
func TestToolsAreBounded(t *testing.T) {
	s := New(&host{asker: inside()}, quiet())
	s.Offer(&waitingTools{})
	path := listen(t, s)
	for range 3 {
		conn := dial(t, path)
		if _, err := io.WriteString(conn, toolCalls(0, maxFlight+1, "")); err != nil {
			t.Fatal(err)
		}
		conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		data, _ := io.ReadAll(conn)
		if n := strings.Count(string(data), "It waits."); n != maxFlight {
			t.Errorf("%d calls were begun: %s", n, data)
		}
		conn.Close()
		for deadline := time.Now().Add(late); ; time.Sleep(10 * time.Millisecond) {
			s.mu.Lock()
			left := len(s.use)
			s.mu.Unlock()
			if left == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("places are not free again")
			}
		}
	}
}
