package modelproxy

import (
	"bufio"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	mine  = "sk-own-0123456789abcdef"
	other = "sk-other-0123456789abcd"
	key   = "sk-vault-fedcba9876543210"
)

type refusal struct {
	Code Code
	PID  int
}

// rig is a proxy before a scripted upstream, which notes all that arrives.
type rig struct {
	*Proxy
	addr     string
	dials    atomic.Int64 // connections to the upstream
	upstream *httptest.Server
	refused  chan refusal

	mu   sync.Mutex
	seen []*http.Request
	body []string
}

func newRig(t testing.TB, change func(*Options), answer http.HandlerFunc) *rig {
	t.Helper()
	r := &rig{refused: make(chan refusal, 100)}
	r.upstream = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.seen, r.body = append(r.seen, req), append(r.body, string(body))
		r.mu.Unlock()
		if answer != nil {
			answer(w, req)
		}
	}))
	r.upstream.EnableHTTP2 = true
	r.upstream.Config.ErrorLog = nowhere
	r.upstream.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			r.dials.Add(1)
		}
	}
	r.upstream.StartTLS()
	t.Cleanup(r.upstream.Close)
	u, err := url.Parse(r.upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	api, _ := Find("anthropic")
	o := Options{API: api, Upstream: u, CAs: x509.NewCertPool(), Expect: mine, Told: func(code Code, pid int) { r.refused <- refusal{code, pid} }}
	o.CAs.AddCert(r.upstream.Certificate())
	if change != nil {
		change(&o)
	}
	if r.Proxy, err = New(o); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = l.Addr().String()
	r.run(t, l)
	return r
}

// run serves on l until the test ends.
func (r *rig) run(t testing.TB, l net.Listener) {
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- r.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// request is the text of one that passes, with lines of its head replaced: "Name: value" takes the place of the one of that name, "-Name" takes it out.
func request(line, body string, head ...string) string {
	all := []string{"Host: 127.0.0.1", "Content-Type: application/json", "X-Api-Key: " + mine, fmt.Sprint("Content-Length: ", len(body))}
next:
	for _, h := range head {
		name, _, _ := strings.Cut(strings.TrimPrefix(h, "-"), ":")
		for i, have := range all {
			if strings.HasPrefix(have, name+":") {
				if all[i] = h; h[0] == '-' {
					all = append(all[:i], all[i+1:]...)
				}
				continue next
			}
		}
		all = append(all, h)
	}
	return line + "\r\n" + strings.Join(all, "\r\n") + "\r\n\r\n" + body
}

const post = "POST /v1/messages HTTP/1.1"

// send writes a text to the proxy and returns its answer; nil: the connection ended without one.
func (r *rig) send(t testing.TB, text string) *http.Response {
	t.Helper()
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	go io.WriteString(c, text) // it may be refused before its end
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return nil
	}
	return resp
}

// nothing fails the test if anything arrived at the upstream.
func (r *rig) nothing(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.dials.Load(); n > 0 || len(r.seen) > 0 {
		t.Errorf("%d connections and %d requests arrived at the upstream", n, len(r.seen))
	}
}

// unix has the proxy listen on a Unix socket as well.
func (r *rig) unix(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	r.run(t, l)
	return path
}

// told is the next refusal.
func (r *rig) told(t *testing.T) refusal {
	t.Helper()
	select {
	case f := <-r.refused:
		return f
	case <-time.After(20 * time.Second):
		t.Fatal("nothing was refused")
		return refusal{}
	}
}
