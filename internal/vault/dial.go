package vault

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"syscall"
	"time"
)

// maxDial is how long a connection may take to come about.
const maxDial = 10 * time.Second

// Resolver looks names up.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

func (f *Fetcher) resolver() Resolver {
	if f.Resolver != nil {
		return f.Resolver
	}
	return net.DefaultResolver
}

// way is how one request gets to its server.
type way struct {
	resolver Resolver
	binding  Binding
	proxy    *url.URL // nil: none

	mu sync.Mutex
	to netip.AddrPort
}

func (w *way) dialled() netip.AddrPort {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to
}

// transport serves one request: HTTP/2 where the server speaks it, no proxy from the environment, nothing kept.
func (w *way) transport() (*http.Transport, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if w.binding.CA != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(w.binding.CA)) {
			return nil, refuse(Unusable, "the CA of the key's binding holds no certificate")
		}
	}
	return &http.Transport{
		DialContext:            w.dial,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: maxHeaders,
	}, nil
}

// dial resolves a name once, checks every address, and dials one of those, or has a proxy dial it (V8): the name is not looked up again.
func (w *way) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, refuse(Invalid, "url names no host")
	}
	port, err := net.LookupPort("tcp", service)
	if err != nil {
		return nil, refuse(Invalid, "url has no port that exists")
	}
	addrs := []netip.Addr{}
	if literal, err := netip.ParseAddr(host); err == nil {
		addrs = append(addrs, literal)
	} else if addrs, err = w.resolver.LookupNetIP(ctx, "ip", host); err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, refuse(Resolving, "the host's name has no address")
	}
	for _, addr := range addrs {
		if !w.binding.reaches(addr) {
			return nil, refuse(Refused, "the host's address is private, local or reserved, and the key's binding does not name it")
		}
	}
	dialer := &net.Dialer{Timeout: maxDial, Control: w.control}
	var last error
	for _, addr := range addrs {
		to := netip.AddrPortFrom(addr.Unmap(), uint16(port))
		var conn net.Conn
		if w.proxy != nil {
			conn, err = through(ctx, w.proxy, to)
		} else {
			conn, err = dialer.DialContext(ctx, network, to.String())
		}
		if err == nil {
			w.mu.Lock()
			w.to = to
			w.mu.Unlock()
			return conn, nil
		}
		last = err
	}
	return nil, last
}

// control looks at the address that the kernel is about to be given.
func (w *way) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !w.binding.reaches(to.Addr()) {
		return refuse(Refused, "the address that was to be dialled is not one that was checked")
	}
	return nil
}
