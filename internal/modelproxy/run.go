package modelproxy

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"

	"weir/internal/control"
	"weir/internal/linux"
)

// maxConns is how many connections there may be at once.
const maxConns = 64

// Setup is what a proxy is told by who starts it.
type Setup struct {
	API      string  `json:"api"`
	Upstream string  `json:"upstream"`
	CA       string  `json:"ca,omitempty"` // certificates in PEM; empty: the system's
	Expect   string  `json:"expect"`
	Send     string  `json:"send,omitempty"`
	Files    bool    `json:"files,omitempty"`
	Fetch    bool    `json:"fetch,omitempty"`
	User     *uint32 `json:"user,omitempty"` // on a Unix socket, whose processes alone are served
}

// Proxy makes the proxy.
func (s Setup) Proxy(told func(code Code, pid int)) (*Proxy, error) {
	api, ok := Find(s.API)
	if !ok {
		return nil, fmt.Errorf("the API %q is unknown: known are %s", s.API, strings.Join(Names(), ", "))
	}
	u, err := url.Parse(s.Upstream)
	if err != nil {
		return nil, errors.New("the upstream is no URL")
	}
	o := Options{API: api, Upstream: u, Expect: s.Expect, Send: s.Send, Files: s.Files, Fetch: s.Fetch, Told: told}
	if s.CA != "" {
		if o.CAs = x509.NewCertPool(); !o.CAs.AppendCertsFromPEM([]byte(s.CA)) {
			return nil, errors.New("the CA's file holds no certificate in PEM")
		}
	}
	return New(o)
}

// Run serves on l. Its Setup comes from in, and it ends when in does, which is when who started it has gone. Refusals go to out, one JSON object a line.
func Run(ctx context.Context, in io.Reader, out io.Writer, l net.Listener) error {
	setup := json.NewDecoder(in)
	var s Setup
	if err := setup.Decode(&s); err != nil {
		return fmt.Errorf("read what to do: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		io.Copy(io.Discard, in) // however it ends
	}()
	var mu sync.Mutex
	lines := json.NewEncoder(out)
	p, err := s.Proxy(func(code Code, pid int) {
		r := control.ModelRefusal{Code: string(code), PID: pid}
		if pid > 0 {
			r.Cgroup, _ = linux.CgroupOf(pid) // if it has not ended
		}
		mu.Lock()
		defer mu.Unlock()
		if lines.Encode(r) != nil {
			cancel() // nobody hears what is refused
		}
	})
	if err != nil {
		return err
	}
	return p.Serve(ctx, control.LimitListener(l, maxConns, control.PeerRules{User: s.User}))
}
