package model

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"weir/internal/cop"
)

//go:embed prompt.md
var prompt string

// maxBody bounds an HTTP answer, in bytes.
const maxBody = 256 << 10

// newClient makes the HTTP client of a model. It follows no redirect: the key, and
// the command, go to the configured host only.
func newClient(over http.RoundTripper, concurrency int) *http.Client {
	if over == nil {
		over = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			ForceAttemptHTTP2:   true,
			TLSHandshakeTimeout: 10 * time.Second,
			MaxIdleConnsPerHost: concurrency,
			IdleConnTimeout:     90 * time.Second,
		}
	}
	return &http.Client{
		Transport:     over,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect },
	}
}

var (
	errRedirect = errors.New("the server redirects, which is not followed")
	errBroken   = errors.New("the connection was closed in the middle")
	errBody     = fmt.Errorf("the answer has more than %d bytes", maxBody)
)

// failure gives the error of a call that failed. status is that of the answer, 0 for none. Nothing of an
// answer's body is repeated: it may hold the key or the command.
func failure(ctx context.Context, err error, status int) *cop.Error {
	var dns *net.DNSError
	var op *net.OpError
	var call *url.Error
	switch {
	case errors.Is(err, errRedirect):
		return cop.Fail(cop.Refused, "ask model: %w", errRedirect)
	case errors.Is(err, errBody):
		return cop.Fail(cop.Malformed, "ask model: %w", errBody)
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded):
		return cop.Fail(cop.Timeout, "ask model: no answer in time")
	case status == http.StatusTooManyRequests:
		return cop.Fail(cop.RateLimited, "ask model: status %d", status)
	case status >= 500:
		return cop.Fail(cop.Server, "ask model: status %d", status)
	case status >= 400:
		return cop.Fail(cop.Refused, "ask model: status %d", status)
	case errors.As(err, &dns):
		return cop.Fail(cop.Transport, "ask model: look up %s: %s", dns.Name, dns.Err)
	case errors.As(err, &op):
		return cop.Fail(cop.Transport, "ask model: %s: %w", op.Op, op.Err)
	case errors.Is(err, errBroken), errors.Is(err, io.EOF) && errors.As(err, &call):
		return cop.Fail(cop.Transport, "ask model: %w", errBroken)
	case errors.As(err, &call):
		return cop.Fail(cop.Transport, "ask model: no HTTP connection")
	}
	return cop.Fail(cop.Malformed, "ask model: the answer is not one of this service")
}
