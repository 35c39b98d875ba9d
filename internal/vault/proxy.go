package vault

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// proxy is the one to use for a request now, or nil.
func (f *Fetcher) proxy() (*url.URL, error) {
	if f.Proxy == nil {
		return nil, nil
	}
	s := f.Proxy()
	if s == "" {
		return nil, nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil, refuse(Connecting, "the proxy that the operator named is no http or https URL without a user")
	}
	return u, nil
}

// through has a proxy connect to an address that was checked. It is told the address, not the name, so that it looks nothing up (V8);
// what goes through is TLS with the server itself.
func through(ctx context.Context, proxy *url.URL, to netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, maxDial)
	defer cancel()
	port := cmp.Or(proxy.Port(), map[string]string{"http": "80", "https": "443"}[proxy.Scheme])
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(proxy.Hostname(), port))
	if err != nil {
		return nil, refuse(Connecting, "no connection to the operator's proxy was possible")
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) }) // reads and writes end
	if proxy.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: proxy.Hostname(), MinVersion: tls.VersionTLS12})
	}
	err = connect(conn, to)
	if !stop() { // it may come any moment: the connection is of no use
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

func connect(conn net.Conn, to netip.AddrPort) error {
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to); err != nil {
		return refuse(Connecting, "no connection to the operator's proxy was possible")
	}
	r := bufio.NewReader(io.LimitReader(conn, maxHeaders))
	resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	switch {
	case err != nil:
		return refuse(Connecting, "the operator's proxy did not answer as one does")
	case resp.StatusCode != http.StatusOK:
		return refuse(Connecting, fmt.Sprintf("the operator's proxy does not connect to this host: it answers with status %d", resp.StatusCode))
	case r.Buffered() > 0: // a server of TLS does not speak first
		return refuse(Connecting, "the operator's proxy did not answer as one does")
	}
	return nil
}
