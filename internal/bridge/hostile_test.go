package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

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

// mcpTools serve MCP, with one tool that waits until its call is cancelled.
type mcpTools struct{ ownTools }

func (*mcpTools) Serve(ctx context.Context, _ func() (Asker, error), conn io.ReadWriteCloser) error {
	m := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	m.AddTool(&mcp.Tool{Name: "wait", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		return &mcp.CallToolResult{}, nil
	})
	return m.Run(ctx, &mcp.IOTransport{Reader: conn, Writer: conn, MaxLineLength: wire.MaxLine})
}

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n" +
	`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

func serveMCP(t *testing.T, h *host) (*Server, string) {
	t.Helper()
	s := New(h, quiet())
	s.Offer(&mcpTools{})
	return s, listen(t, s)
}

// TestHostileTools: as TestHostile, of clients of the tools: half frames, requests and messages without an answer from who reads none. What they
// write and nobody takes stays in the kernel.
func TestHostileTools(t *testing.T) {
	const most = 48 << 20 // garbage of a slow machine among it; what is kept without a bound is 80 MiB after these three seconds
	filler := strings.Repeat("x", 15<<10)
	for name, c := range map[string]struct {
		conns int
		line  func(i int) string
		bytes int // that each writes
	}{
		"half frames": {64, func(int) string { return `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", wire.MaxLine*3/4) }, 1},
		"pings": {8, func(i int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping","params":{"_meta":{"x":"%s"}}}`+"\n", i+1, filler)
		}, 32 << 20},
		"calls": {8, func(i int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wait","arguments":{"x":"%s"}}}`+"\n", i+1, filler)
		}, 32 << 20},
		"pings and notes": {8, func(i int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n"+`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"%s"}}`+"\n", i+1, filler)
		}, 32 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			_, path := serveMCP(t, &host{asker: inside()})
			lines := []byte(c.line(0)) // made once: memory is to be the server's
			if c.conns == 8 {
				for i := 1; len(lines) < 8<<20; i++ {
					lines = append(lines, c.line(i)...)
				}
			}
			var before, now runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			var clients sync.WaitGroup
			for range c.conns {
				conn := dial(t, path)
				clients.Go(func() {
					conn.SetWriteDeadline(time.Now().Add(3 * time.Second)) // nobody has to take it all
					io.WriteString(conn, hello)
					for sent := 0; sent < c.bytes; sent += len(lines) {
						if _, err := conn.Write(lines); err != nil {
							return
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
			conn := dial(t, path) // who asks properly is served
			if _, err := io.WriteString(conn, bash("1", "ls")); err != nil {
				t.Fatal(err)
			}
			if a := answers(t, conn, 1)["1"]; a.Decision != wire.Allow {
				t.Errorf("%+v", a)
			}
			t.Logf("%d MiB in use, after %d MiB before", used>>20, first>>20)
		})
	}
}

// TestOneMessageInALine: for the library that reads after the stream, a carriage return ends a line, too.
func TestOneMessageInALine(t *testing.T) {
	for name, between := range map[string]string{"carriage return": "\r", "blank": " ", "nothing": ""} {
		t.Run(name, func(t *testing.T) {
			_, path := serveMCP(t, &host{asker: inside()})
			conn := dial(t, path)
			lines := strings.Split(strings.TrimSpace(hello), "\n")
			io.WriteString(conn, lines[0]+"\n")
			first := make([]byte, 1<<20)
			if n, err := conn.Read(first); err != nil || !strings.Contains(string(first[:n]), `"id":0`) {
				t.Fatalf("%s %v", first[:n], err)
			}
			io.WriteString(conn, lines[1]+between+`{"jsonrpc":"2.0","id":7,"method":"ping"}`+"\n")
			conn.SetReadDeadline(time.Now().Add(late))
			if rest, err := io.ReadAll(conn); err != nil || strings.Contains(string(rest), `"id":7`) {
				t.Errorf("the connection goes on: %q, %v", rest, err)
			}
		})
	}
}

// TestToolsAreBounded: so many connections of a container, so many requests without an answer of one; what ends frees its place, and ids count once.
func TestToolsAreBounded(t *testing.T) {
	s, path := serveMCP(t, &host{asker: inside()})
	open := func() *net.UnixConn {
		conn := dial(t, path)
		if _, err := io.WriteString(conn, hello); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	line := func(conn *net.UnixConn) string {
		t.Helper()
		data := make([]byte, 1<<20)
		n, err := conn.Read(data)
		if err != nil {
			return err.Error()
		}
		return string(data[:n])
	}
	var conns []*net.UnixConn
	for range maxOwnTools {
		conns = append(conns, open())
		if got := line(conns[len(conns)-1]); !strings.Contains(got, `"id":0`) {
			t.Fatal(got)
		}
	}
	if got := line(open()); !strings.Contains(got, "too many connections") {
		t.Error(got)
	}
	first := conns[0]
	for i := range maxFlight {
		fmt.Fprintf(first, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wait","arguments":{}}}`+"\n", i+1)
	}
	io.WriteString(first, `{"jsonrpc":"2.0","id":"p","method":"ping"}`+"\n")
	first.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if got := line(first); !strings.Contains(got, "timeout") {
		t.Errorf("more than %d requests wait: %s", maxFlight, got)
	}
	first.Close()
	conns[1].SetReadDeadline(time.Now().Add(late))
	for range 2 { // a call that is cancelled frees its place
		for i := range maxFlight - 1 {
			fmt.Fprintf(conns[1], `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wait","arguments":{}}}`+"\n", i+1)
		}
		for i := range maxFlight - 1 {
			fmt.Fprintf(conns[1], `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`+"\n", i+1)
		}
		for got := ""; strings.Count(got, "\n") < maxFlight-1; {
			if got += line(conns[1]); strings.Contains(got, "timeout") {
				t.Fatal(got)
			}
		}
	}
	io.WriteString(conns[2], strings.Repeat(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"wait","arguments":{}}}`+"\n", 2))
	for got := ""; !strings.Contains(got, "EOF") && !strings.Contains(got, "reset"); {
		if got = line(conns[2]); strings.Contains(got, "timeout") {
			t.Fatal("an id counts twice")
		}
	}
	for deadline := time.Now().Add(late); ; time.Sleep(10 * time.Millisecond) {
		s.mu.Lock()
		u := s.use["g-test"]
		left := u.tools
		s.mu.Unlock()
		if left == maxOwnTools-2 && len(u.open) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections, %d requests are left", left, len(u.open))
		}
	}
}
