package vault

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// proxy is an HTTP proxy on loopback that knows CONNECT and notes all that it sees.
type proxy struct {
	net.Listener
	answer string // in place of connecting, if set

	mu    sync.Mutex
	asked []string
	seen  bytes.Buffer // of what went through from the client
}

func newProxy(t *testing.T, answer string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, answer: answer}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.serve(conn) })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return p
}

func (p *proxy) url() string { return "http://" + p.Addr().String() }

func (p *proxy) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	req, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.asked = append(p.asked, req.Method+" "+req.RequestURI+" "+req.Host)
	p.mu.Unlock()
	switch p.answer {
	case "":
	case "silence":
		io.Copy(io.Discard, conn)
		return
	default:
		io.WriteString(conn, p.answer)
		return
	}
	server, err := net.Dial("tcp", req.RequestURI)
	if err != nil {
		io.WriteString(conn, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		return
	}
	defer server.Close()
	io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
	go func() {
		io.Copy(io.MultiWriter(server, p), r)
		server.Close()
	}()
	io.Copy(conn, server)
}

// Write notes what the client sent.
func (p *proxy) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.Write(b)
}

// V8: a request through the operator's proxy has its addresses checked here, the proxy is told the checked one and sees nothing but TLS with
// the server, whose name is verified.
func TestProxyV8(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		r := newRig(t, h2)
		set(t, r.vault, "gh", "", secret, r.binding())
		p := newProxy(t, "")
		r.fetch.Proxy = p.url
		t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1") // is not used in any case
		resolver := &names{answers: at("127.0.0.1", "10.0.0.1")}
		r.fetch.Resolver = resolver
		got, err := r.fetch.Fetch(t.Context(), "c", nil, r.request("/echo", Bearer))
		if err != nil || got.Status != 200 || !strings.Contains(got.Body, "[removed]") || (got.Proto == "HTTP/2.0") != h2 || got.Address.String() != "127.0.0.1:"+r.port {
			t.Fatalf("h2 %v: %+v, %v", h2, got, err)
		}
		noSecret(t, secret, got, err)
		to := "CONNECT 127.0.0.1:" + r.port + " 127.0.0.1:" + r.port
		if len(p.asked) != 1 || p.asked[0] != to || resolver.asked != 1 {
			t.Errorf("asked %q, want %q; %d look-ups", p.asked, to, resolver.asked)
		}
		if bytes.Contains(p.seen.Bytes(), []byte(secret)) || p.seen.Len() == 0 {
			t.Error("the proxy sees the secret, or nothing at all")
		}
		// What does not pass the check does not get to the proxy, whatever that would do with it.
		if _, err := r.fetch.Fetch(t.Context(), "c", nil, r.request("/echo", Bearer)); ClassOf(err) != Refused || len(p.asked) != 1 {
			t.Errorf("a private address: %v, the proxy was asked %q", err, p.asked)
		}
	}
	// A proxy that connects to somebody else gets no further than TLS: that server has no certificate for the host.
	r, other := newRig(t, false), newRig(t, false)
	b := r.binding()
	b.Hosts = []string{"other.example.org:" + r.port} // the server's certificate is for example.com
	set(t, r.vault, "gh", "", secret, b)
	p := newProxy(t, "")
	r.fetch.Proxy = p.url
	q := r.request("/echo", Bearer)
	q.url.Host = "other.example.org:" + r.port
	if _, err := r.fetch.Fetch(t.Context(), "c", nil, q); ClassOf(err) != Untrusted || other.hits.Load()+r.hits.Load() > 0 {
		t.Errorf("another server: %v", err)
	}
}

// V6: what a proxy answers is told in words of our own, and in time.
func TestProxiesThatFailV6(t *testing.T) {
	r := newRig(t, false)
	set(t, r.vault, "gh", "", secret, r.binding())
	for name, tt := range map[string]struct {
		proxy func() string
		class Class
		says  string
	}{
		"refuses":       {newProxy(t, "HTTP/1.1 403 "+secret+"\r\n\r\n").url, Connecting, "status 403"},
		"no proxy":      {newProxy(t, "SSH-2.0-x\r\n").url, Connecting, "did not answer as one does"},
		"speaks first":  {newProxy(t, "HTTP/1.1 200 OK\r\n\r\nhello").url, Connecting, "did not answer as one does"},
		"endless":       {newProxy(t, "HTTP/1.1 200 OK\r\nA: "+strings.Repeat("x", 1<<20)).url, Connecting, "did not answer as one does"},
		"closed":        {func() string { return "http://127.0.0.1:1" }, Connecting, "no connection"},
		"not a URL":     {func() string { return "socks5://127.0.0.1:1" }, Connecting, "no http or https URL"},
		"with a user":   {func() string { return "http://u:p@127.0.0.1:1" }, Connecting, "no http or https URL"},
		"is silent":     {newProxy(t, "silence").url, Timeout, ""},
		"plain for TLS": {func() string { return strings.Replace(newProxy(t, "silence").url(), "http:", "https:", 1) }, Connecting, "no connection"},
	} {
		r.fetch.Proxy, r.fetch.Time = tt.proxy, time.Minute
		if tt.class == Timeout {
			r.fetch.Time = 200 * time.Millisecond
		}
		got, err := r.fetch.Fetch(t.Context(), "c", nil, r.request("/echo", Bearer))
		if ClassOf(err) != tt.class || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
		noSecret(t, secret, got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.fetch.Proxy, r.fetch.Time = newProxy(t, "silence").url, 0
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := r.fetch.Fetch(ctx, "c", nil, r.request("/echo", Bearer)); ClassOf(err) != Cancelled {
		t.Errorf("cancelled: %v", err)
	}
	r.fetch.Proxy = func() string { return "" }
	if _, err := r.fetch.Fetch(t.Context(), "c", nil, r.request("/echo", Bearer)); err != nil || r.hits.Load() != 1 {
		t.Errorf("without one: %v, %d requests", err, r.hits.Load())
	}
}
