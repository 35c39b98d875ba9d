package modelproxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
)

// B43, B49: what is refused, each by its reason, and of none a byte arrives upstream.
func TestB43Refused(t *testing.T) {
	body := `{"model":"m","messages":[]}`
	many := make([]string, maxHeaders+1)
	for i := range many {
		many[i] = fmt.Sprintf("X-%d: 1", i)
	}
	for _, tt := range []struct {
		name string
		text string
		want Code
	}{
		{"somebody else's key", request(post, body, "X-Api-Key: "+other), ForeignKey},
		{"somebody else's token", request(post, body, "-X-Api-Key", "Authorization: Bearer "+other), ForeignKey},
		{"both, the own one first", request(post, body, "Authorization: Bearer "+other), ForeignKey},
		{"two in one name", request(post, body, "x-api-key: "+other), ForeignKey},
		{"a key of another cloud's name", request(post, body, "Api-Key: "+other), ForeignKey},
		{"a key of a proxy's name", request(post, body, "Proxy-Authorization: Basic "+other), ForeignKey},
		{"the beginning of the key", request(post, body, "X-Api-Key: "+mine[:20]), ForeignKey},
		{"no key", request(post, body, "-X-Api-Key"), NoKey},
		{"an empty key", request(post, body, "X-Api-Key: "), ForeignKey},
		{"a key in the address", request("POST /v1/messages?key="+other+" HTTP/1.1", body), Path},

		{"another host", request(post, body, "Host: api.example.org"), Host},
		{"another host's port", request(post, body, "Host: api.example.org:443"), Host},
		{"two hosts", request(post, body, "Host: 127.0.0.1", "host: api.example.org"), Malformed},
		{"no host", request(post, body, "-Host"), Malformed},
		{"a whole URL", request("POST https://api.example.org/v1/messages HTTP/1.1", body), Host},
		{"a whole URL of loopback", request("POST http://127.0.0.1/v1/messages HTTP/1.1", body), Host},
		{"CONNECT", request("CONNECT api.example.org:443 HTTP/1.1", ""), Method},
		{"CONNECT with a path", request("CONNECT /v1/messages HTTP/1.1", ""), Method},
		{"no path", request("OPTIONS * HTTP/1.1", ""), Host},

		{"another path", request("POST /v1/complete HTTP/1.1", body), Path},
		{"what stores something", request("POST /v1/files HTTP/1.1", body), Path},
		{"a batch", request("POST /v1/messages/batches HTTP/1.1", body), Path},
		{"an escaped letter", request("POST /v1/%6dessages HTTP/1.1", body), Path},
		{"an escaped dot", request("GET /v1/models/%2e%2e/files HTTP/1.1", ""), Path},
		{"an escaped slash", request("GET /v1/models/..%2ffiles HTTP/1.1", ""), Path},
		{"a dot", request("POST /v1/./messages HTTP/1.1", body), Path},
		{"two dots", request("POST /v1/models/../messages HTTP/1.1", body), Path},
		{"two dots as a name", request("GET /v1/models/.. HTTP/1.1", ""), Path},
		{"two slashes", request("POST //v1/messages HTTP/1.1", body), Path},
		{"a slash behind", request("POST /v1/messages/ HTTP/1.1", body), Path},
		{"a parameter of the path", request("POST /v1/messages;x=1 HTTP/1.1", body), Path},
		{"a backslash", request(`POST /v1\messages HTTP/1.1`, body), Path},
		{"a fragment", request("POST /v1/messages#x HTTP/1.1", body), Path},
		{"a host in the path", request("POST /@api.example.org/v1/messages HTTP/1.1", body), Path},
		{"an unknown parameter", request("POST /v1/messages?x=1 HTTP/1.1", body), Path},
		{"a parameter with a slash", request("GET /v1/models?after_id=a/b HTTP/1.1", ""), Path},
		{"another method", request("PUT /v1/messages HTTP/1.1", body), Method},
		{"TRACE", request("TRACE /v1/messages HTTP/1.1", ""), Method},

		{"a websocket", request("GET /v1/models HTTP/1.1", "", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="), Upgrade},
		{"an upgrade alone", request("GET /v1/models HTTP/1.1", "", "Upgrade: h2c"), Upgrade},
		{"HTTP/2 at once", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Malformed},
		{"HTTP/1.0", request("POST /v1/messages HTTP/1.0", body), Malformed},

		{"length and chunks", request(post, "0\r\n\r\nPOST /v1/files HTTP/1.1\r\n\r\n", "Transfer-Encoding: chunked"), Malformed},
		{"chunks", request(post, "0\r\n\r\n", "-Content-Length", "Transfer-Encoding: chunked"), NoLength},
		{"chunks in another case", request(post, "0\r\n\r\n", "-Content-Length", "transfer-encoding: xchunked"), NoLength},
		{"a space before the colon", request(post, body, "Transfer-Encoding : chunked"), Malformed},
		{"a tab before the name", request(post, body, "X-A: 1", "\tTransfer-Encoding: chunked"), Malformed},
		{"two lengths", request(post, body, "content-length: 1"), Malformed},
		{"a list of lengths", request(post, body, "Content-Length: 27, 27"), Malformed},
		{"a signed length", request(post, body, "Content-Length: +27"), Malformed},
		{"a folded line", request(post, body, "X-A: 1\r\n Transfer-Encoding: chunked"), Malformed},
		{"a bare line feed", request(post, body, "X-A: 1\nTransfer-Encoding: chunked"), Malformed},
		{"line feeds alone", strings.ReplaceAll(request(post, body), "\r\n", "\n"), Malformed},
		{"a bare carriage return", request(post, body, "X-A: 1\rTransfer-Encoding: chunked"), Malformed},
		{"a zero byte", request(post, body, "X-A: 1\x00"), Malformed},
		{"a line without a colon", request(post, body, "X-A"), Malformed},
		{"two spaces in the first line", request("POST  /v1/messages HTTP/1.1", body), Malformed},
		{"an empty line first", "\r\n" + request(post, body), Malformed},
		{"trailers", request(post, body, "Trailer: X-Api-Key"), NoLength},

		{"1 GiB", request(post, body, "Content-Length: 1073741824"), TooLarge},
		{"a byte too much", request(post, body, fmt.Sprint("Content-Length: ", MaxBody+1)), TooLarge},
		{"a long head", request(post, body, "X-A: "+strings.Repeat("x", maxHead)), TooLarge},
		{"many headers", request(post, body, many...), TooLarge},
		{"no JSON", request(post, "x"), Content},
		{"a body where none belongs", request("GET /v1/models HTTP/1.1", "{}"), Content},
		{"a compressed body", request(post, body, "Content-Encoding: zstd"), Content},
		{"an image by URL", request(post, `{"messages":[{"content":[{"type":"image","source":{"type":"url","url":"https://example.org/x"}}]}]}`), Fetches},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, nil, nil)
			resp := r.send(t, tt.text)
			if got := r.told(t); got.Code != tt.want {
				t.Errorf("refused for %s, want %s", got.Code, tt.want)
			}
			if resp != nil && resp.StatusCode < 400 {
				t.Errorf("status %d", resp.StatusCode)
			}
			r.nothing(t)
		})
	}
}

// What the tests of refusals change arrives unchanged, once, with the user's credential and nothing that was not asked for.
func TestB43Passes(t *testing.T) {
	r := newRig(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Request-Id", "req-1")
		io.WriteString(w, "hello")
	})
	body := `{"model":"m","messages":[{"role":"user","content":"x"}]}`
	resp := r.send(t, request("POST /v1/messages?beta=true HTTP/1.1", body, "Cookie: sessionKey="+other, "Anthropic-Version: 2023-06-01", "X-Forwarded-For: 10.0.0.1", "Forwarded: for=10.0.0.1",
		"X-Stainless-Lang: js", "Authorization: Bearer "+mine)+"POST /v1/files HTTP/1.1\r\n\r\n")
	if resp == nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%+v", resp)
	}
	got, err := io.ReadAll(resp.Body)
	if err != nil || string(got) != "hello" || resp.Header.Get("Request-Id") != "req-1" || resp.Header.Get("Set-Cookie") != "" {
		t.Errorf("%q, %v, %v", got, resp.Header, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) != 1 || r.body[0] != body || r.seen[0].RequestURI != "/v1/messages?beta=true" || r.seen[0].Host != r.opts.Upstream.Host {
		t.Fatalf("arrived: %d, %q, %+v", len(r.seen), r.body, r.seen[0])
	}
	h := r.seen[0].Header
	for name, want := range map[string]string{
		"X-Api-Key": mine, "Authorization": "Bearer " + mine, "Cookie": "", "X-Forwarded-For": "", "Forwarded": "", "Anthropic-Version": "2023-06-01", "X-Stainless-Lang": "js", "User-Agent": "",
	} {
		if h.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, h.Get(name), want)
		}
	}
}

// A key of the vault goes up in place of what the container has, which goes nowhere; and no answer has it.
func TestB43VaultKey(t *testing.T) {
	for api, want := range map[string]http.Header{"anthropic": {"X-Api-Key": {key}}, "openai": {"Authorization": {"Bearer " + key}}} {
		r := newRig(t, func(o *Options) { o.API, _ = Find(api); o.Send = key }, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Request-Id", "it was "+key)
		})
		for _, as := range [][]string{nil, {"-X-Api-Key", "Authorization: Bearer " + mine}} {
			resp := r.send(t, request("GET /v1/models HTTP/1.1", "", as...))
			if resp == nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Request-Id") != "" {
				t.Fatalf("%s: %+v", api, resp)
			}
		}
		r.send(t, request("GET /v1/models HTTP/1.1", "", "X-Api-Key: "+key)) // who knows the key is not this user, either
		if got := r.told(t); got.Code != ForeignKey {
			t.Errorf("%s: refused for %s", api, got.Code)
		}
		for _, req := range r.seen {
			for _, name := range []string{"X-Api-Key", "Authorization"} {
				if req.Header.Get(name) != want.Get(name) {
					t.Errorf("%s: %s: %q", api, name, req.Header.Get(name))
				}
			}
		}
		if len(r.seen) != 2 {
			t.Errorf("%s: %d arrived", api, len(r.seen))
		}
	}
}

// Each part of an answer is there before the next is written.
func TestStreams(t *testing.T) {
	next := make(chan bool)
	r := newRig(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
			<-next
		}
	})
	resp := r.send(t, request(post, `{"stream":true}`))
	if resp == nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%+v", resp)
	}
	lines := bufio.NewReader(resp.Body)
	for i := range 3 {
		line, err := lines.ReadString('\n')
		if err != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("%q, %v", line, err)
		}
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		next <- true
	}
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
}

// Whether anybody is there is answered here, to whoever asks.
func TestThere(t *testing.T) {
	r := newRig(t, nil, nil)
	if resp := r.send(t, request("HEAD / HTTP/1.1", "", "-X-Api-Key")); resp == nil || resp.StatusCode != http.StatusOK || len(r.refused) > 0 {
		t.Errorf("%+v, %d refused", resp, len(r.refused))
	}
	r.nothing(t)
}

// A client that hangs up ends the request upstream.
func TestHangsUp(t *testing.T) {
	began, ended := make(chan bool), make(chan bool)
	r := newRig(t, nil, func(w http.ResponseWriter, req *http.Request) {
		w.(http.Flusher).Flush()
		close(began)
		<-req.Context().Done()
		close(ended)
	})
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, request(post, "{}")); err != nil {
		t.Fatal(err)
	}
	<-began
	c.Close()
	<-ended
}

// What comes too slowly never arrives upstream.
func TestB43Slow(t *testing.T) {
	whole := request(post, `{"messages":[]}`)
	head := strings.Index(whole, "\r\n\r\n") + 4
	for name, part := range map[string]string{"in the first line": whole[:6], "in the head": whole[:head-10], "before the body": whole[:head], "in the body": whole[:len(whole)-1]} {
		r := newRig(t, func(o *Options) { o.HeadTime, o.BodyTime = 50*time.Millisecond, 50*time.Millisecond }, nil)
		r.send(t, part)
		if got := r.told(t); got.Code != Slow {
			t.Errorf("%s: refused for %s", name, got.Code)
		}
		r.nothing(t)
	}
}

// A request that is refused keeps no connection, though its body never comes.
func TestB43SilentBody(t *testing.T) {
	for _, line := range []string{"POST /x HTTP/1.1", "HEAD / HTTP/1.1"} {
		r := newRig(t, func(o *Options) { o.HeadTime, o.BodyTime = 50*time.Millisecond, 50*time.Millisecond }, nil)
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, line+"\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection stays", line)
		}
		r.nothing(t)
	}
}

// A body that ends before its length is no request.
func TestB43Cut(t *testing.T) {
	r := newRig(t, nil, nil)
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, strings.TrimSuffix(request(post, `{"messages":[]}`), "}")); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got := r.told(t); got.Code != Slow {
		t.Errorf("refused for %s", got.Code)
	}
	r.nothing(t)
}

func TestRate(t *testing.T) {
	r := newRig(t, nil, nil)
	r.rate.SetLimit(0)
	r.rate.SetBurst(2)
	for range 2 {
		if resp := r.send(t, request(post, "{}")); resp == nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%+v", resp)
		}
	}
	if resp := r.send(t, request(post, "{}")); resp == nil || resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" || resp.Header.Get("X-Should-Retry") != "true" {
		t.Errorf("%+v", resp)
	}
	if got := r.told(t); got.Code != Rate || len(r.seen) != 2 {
		t.Errorf("%s, %d arrived", got.Code, len(r.seen))
	}
}

// Bodies have room together, and what a refused one took is free again.
func TestRoom(t *testing.T) {
	r := newRig(t, func(o *Options) { o.MaxBody = 100 }, nil)
	if !r.room.TryAcquire(maxBodies*100 - 20) {
		t.Fatal("no room")
	}
	body := `{"a":"` + strings.Repeat("x", 50) + `"}`
	r.send(t, request(post, body))
	if got := r.told(t); got.Code != Busy {
		t.Errorf("refused for %s", got.Code)
	}
	r.nothing(t)
	for range 3 {
		if err := r.room.Acquire(t.Context(), 20); err != nil { // once the last one's is free
			t.Fatal(err)
		}
		r.room.Release(20)
		if resp := r.send(t, request(post, `{"a":"12345678"}`)); resp == nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%+v", resp)
		}
	}
}

// The upstream's own mistakes: no redirect is followed, and who has no certificate for the name is not spoken to.
func TestUpstream(t *testing.T) {
	elsewhere := newRig(t, nil, nil)
	r := newRig(t, nil, func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, elsewhere.upstream.URL+"/v1/messages", http.StatusTemporaryRedirect)
	})
	resp := r.send(t, request(post, "{}"))
	if resp == nil || resp.StatusCode != http.StatusBadGateway || resp.Header.Get("Location") != "" {
		t.Errorf("%+v", resp)
	}
	if got := r.told(t); got.Code != Redirect {
		t.Errorf("refused for %s", got.Code)
	}
	elsewhere.nothing(t)

	stranger := newRig(t, func(o *Options) { o.CAs = nil }, nil)
	if resp := stranger.send(t, request(post, "{}")); resp == nil || resp.StatusCode != http.StatusBadGateway {
		t.Errorf("%+v", resp)
	}
	if got := stranger.told(t); got.Code != Upstream || len(stranger.seen) > 0 {
		t.Errorf("refused for %s, %d arrived", got.Code, len(stranger.seen))
	}
}

// On a Unix socket the process that asks is known.
func TestUnixPeer(t *testing.T) {
	r := newRig(t, nil, nil)
	path := r.unix(t)
	for _, text := range []string{request(post, "{}", "X-Api-Key: "+other), "x\n"} {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		if got := r.told(t); got.PID != os.Getpid() {
			t.Errorf("%q: pid %d", text, got.PID)
		}
		c.Close()
	}
}

// An upstream with a path of its own; a path of files, where they are open.
func TestPaths(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Upstream.Path = "/llm/"; o.Files = true }, nil)
	for sent, want := range map[string]string{
		"GET /v1/models/claude-x.1:2": "/llm/v1/models/claude-x.1:2", "GET /v1/files/f_1/content": "/llm/v1/files/f_1/content", "DELETE /v1/files/f_1": "/llm/v1/files/f_1",
	} {
		r.seen = nil
		if resp := r.send(t, request(sent+" HTTP/1.1", "")); resp == nil || resp.StatusCode != http.StatusOK || len(r.seen) != 1 || r.seen[0].URL.Path != want {
			t.Errorf("%s: %+v, %+v", sent, resp, r.seen)
		}
	}
	if resp := r.send(t, request("POST /v1/files HTTP/1.1", "a file", "Content-Type: multipart/form-data; boundary=x")); resp == nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%+v", resp)
	}
	r.send(t, request(post, `{"mcp_servers":[1]}`, "Content-Type: multipart/form-data; boundary=x"))
	if got := r.told(t); got.Code != Content {
		t.Errorf("refused for %s", got.Code)
	}
}

func TestNew(t *testing.T) {
	for _, bad := range []string{"http://api.example.org", "https://", "https://u@api.example.org", "https://api.example.org/?a=b", "https://api.example.org/%2e", "ftp://x"} {
		u, err := url.Parse(bad)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(Options{Upstream: u, Expect: mine}); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	if _, err := New(Options{Upstream: &url.URL{Scheme: "https", Host: "x"}, Expect: "short"}); err == nil {
		t.Error("a short credential is taken")
	}
}

// A listener that fails is an error.
func TestServeFails(t *testing.T) {
	r := newRig(t, nil, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := r.Serve(context.Background(), l); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
