package modelproxy

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"mime"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// Limits, where Options do not say others.
const (
	MaxBody    = 32 << 20 // bytes of a request
	maxBodies  = 4        // of the largest, at once
	perSecond  = 10       // requests in the long run
	burst      = 60       // at once
	headTime   = 10 * time.Second
	bodyTime   = time.Minute
	answerTime = time.Hour // a whole request and its answer
)

// Options are a proxy's.
type Options struct {
	API      API
	Upstream *url.URL                 // https, without user and query
	CAs      *x509.CertPool           // nil: the system's
	Expect   string                   // what a request must carry
	Send     string                   // a key that goes up in its place; empty: what it carries
	Files    bool                     // what stores something in the account is open
	Fetch    bool                     // a request may have the upstream contact an address
	MaxBody  int64                    // 0: MaxBody
	HeadTime time.Duration            // 0: 10 s
	BodyTime time.Duration            // 0: a minute
	Told     func(code Code, pid int) // called for each request that is refused, at the same time; pid: of who asked on a Unix socket, or 0
}

// Proxy passes on what is the user's own.
type Proxy struct {
	opts    Options
	expect  [sha256.Size]byte
	open    []endpoint
	forward *httputil.ReverseProxy
	rate    *rate.Limiter
	room    *semaphore.Weighted // bytes of bodies
}

// New makes a proxy.
func New(o Options) (*Proxy, error) {
	u := o.Upstream
	switch {
	case u == nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.RawPath != "":
		return nil, errors.New("the upstream is no plain https URL")
	case len(o.Expect) < 16:
		return nil, errors.New("what requests must carry has less than 16 bytes")
	}
	o.MaxBody, o.HeadTime, o.BodyTime = cmp.Or(o.MaxBody, MaxBody), cmp.Or(o.HeadTime, headTime), cmp.Or(o.BodyTime, bodyTime)
	p := &Proxy{opts: o, expect: sha256.Sum256([]byte(o.Expect)), open: o.API.paths, rate: rate.NewLimiter(perSecond, burst), room: semaphore.NewWeighted(maxBodies * o.MaxBody)}
	if o.Files {
		p.open = slices.Concat(p.open, o.API.files)
	}
	p.forward = &httputil.ReverseProxy{
		Rewrite: p.rewrite,
		Transport: &http.Transport{ // which follows no redirect, knows no cookies, and takes no proxy from the environment
			DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.CAs},
			TLSHandshakeTimeout:    10 * time.Second,
			ForceAttemptHTTP2:      true,
			DisableCompression:     true,
			MaxIdleConnsPerHost:    16,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		},
		FlushInterval:  -1, // at once
		ErrorLog:       nowhere,
		ModifyResponse: p.answered,
		ErrorHandler:   p.failed,
	}
	return p, nil
}

// nowhere takes what net/http would say: it quotes requests.
var nowhere = log.New(io.Discard, "", 0)

// Serve answers on l until ctx ends.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	type pid struct{}
	s := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			peer, _ := r.Context().Value(pid{}).(int)
			p.serve(w, r, peer)
		}),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, pid{}, c.(*conn).pid)
		},
		ReadHeaderTimeout: p.opts.HeadTime,
		ReadTimeout:       p.opts.HeadTime + p.opts.BodyTime, // also of a request that is refused before its body has come
		MaxHeaderBytes:    maxHead,
		ErrorLog:          nowhere,
	}
	s.SetKeepAlivesEnabled(false) // each connection has one request, and nothing can be hidden behind it
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	if err := s.Serve(listener{l, p.opts.Told}); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, pid int) {
	refuse := func(code Code) {
		p.opts.Told(code, pid)
		code.write(w)
	}
	if r.Method == http.MethodHead && r.RequestURI == "/" {
		return // Claude Code looks whether anybody is there: it is this proxy
	}
	if code := p.judge(r); code != "" {
		refuse(code)
		return
	}
	if !p.room.TryAcquire(r.ContentLength) {
		refuse(Busy)
		return
	}
	defer p.room.Release(r.ContentLength)
	body, code := p.body(w, r)
	if code != "" {
		refuse(code)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerTime)
	defer cancel()
	ctx = context.WithValue(ctx, failing{}, refuse)
	r = r.WithContext(ctx)
	r.Body, r.GetBody = io.NopCloser(bytes.NewReader(body)), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	if len(body) == 0 {
		r.Body = http.NoBody
	}
	p.forward.ServeHTTP(w, r)
}

// judge looks at everything but the body.
func (p *Proxy) judge(r *http.Request) Code {
	path, query, _ := strings.Cut(r.RequestURI, "?")
	at := slices.DeleteFunc(slices.Clone(p.open), func(e endpoint) bool { return !e.fits(path) })
	switch {
	case !p.names(r.Host):
		return Host
	case len(at) == 0 || !plainQuery(query):
		return Path
	case !slices.ContainsFunc(at, func(e endpoint) bool { return e.method == r.Method }):
		return Method
	case r.ContentLength < 0:
		return NoLength
	case r.ContentLength > p.opts.MaxBody:
		return TooLarge
	}
	if code := p.credential(r.Header); code != "" {
		return code
	}
	if !p.rate.Allow() {
		return Rate
	}
	return ""
}

// names says whether a Host is this proxy on loopback, or its upstream.
func (p *Proxy) names(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	return name == "127.0.0.1" || name == "localhost" || name == "::1" || name == "[::1]" || strings.EqualFold(host, p.opts.Upstream.Host)
}

// credential says what is wrong with the keys that a request carries. Every one must be the right one: the upstream may prefer either.
func (p *Proxy) credential(h http.Header) Code {
	code := NoKey
	for _, name := range credentials {
		for _, value := range h.Values(name) {
			if scheme, rest, ok := strings.Cut(value, " "); ok && strings.EqualFold(scheme, "Bearer") {
				value = rest
			}
			sum := sha256.Sum256([]byte(value))
			if subtle.ConstantTimeCompare(sum[:], p.expect[:]) != 1 {
				return ForeignKey
			}
			code = ""
		}
	}
	return code
}

// body is read whole before anything goes up, so that the upstream sees no part of what is refused.
func (p *Proxy) body(w http.ResponseWriter, r *http.Request) ([]byte, Code) {
	in := http.NewResponseController(w)
	if in.SetReadDeadline(time.Now().Add(p.opts.BodyTime)) != nil {
		return nil, Busy
	}
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return nil, Slow // or it ended before its length
	}
	if in.SetReadDeadline(time.Time{}) != nil || in.SetWriteDeadline(time.Now().Add(answerTime)) != nil {
		return nil, Busy
	}
	switch {
	case r.Method != http.MethodPost && len(body) > 0:
		return nil, Content
	case r.Method != http.MethodPost || p.opts.Fetch || r.URL.Path == uploads:
		return body, ""
	case r.Header.Get("Content-Encoding") != "" || !isJSON(r.Header.Values("Content-Type")):
		return nil, Content
	}
	return body, p.opts.API.inspect(body)
}

// isJSON says whether an upstream reads a body as inspect does.
func isJSON(types []string) bool {
	if len(types) != 1 {
		return false
	}
	kind, params, err := mime.ParseMediaType(types[0])
	charset, has := params["charset"]
	return err == nil && kind == "application/json" && (len(params) == 0 || len(params) == 1 && has && strings.EqualFold(charset, "utf-8"))
}

func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	u := *p.opts.Upstream
	u.Path = strings.TrimSuffix(u.Path, "/") + r.In.URL.Path
	u.RawQuery = r.In.URL.RawQuery
	r.Out.URL, r.Out.Host, r.Out.Trailer = &u, "", nil
	r.Out.Header = pick(r.In.Header, up, "")
	if p.opts.Send == "" {
		for _, name := range []string{"Authorization", "X-Api-Key"} {
			if v := r.In.Header.Values(name); len(v) > 0 {
				r.Out.Header[name] = v[:1]
			}
		}
		return
	}
	value := p.opts.Send
	if p.opts.API.bearer {
		value = "Bearer " + value
	}
	r.Out.Header.Set(p.opts.API.header, value)
}

var errRedirect = errors.New("redirected")

func (p *Proxy) answered(r *http.Response) error {
	if r.StatusCode >= 300 && r.StatusCode < 400 {
		return errRedirect
	}
	r.Header = pick(r.Header, down, cmp.Or(p.opts.Send, p.opts.Expect))
	return nil
}

// failing is what a request's refusal is kept under.
type failing struct{}

func (p *Proxy) failed(_ http.ResponseWriter, r *http.Request, err error) {
	refuse, ok := r.Context().Value(failing{}).(func(Code))
	switch {
	case !ok || errors.Is(err, context.Canceled): // nobody waits for it any more
	case errors.Is(err, errRedirect):
		refuse(Redirect)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		refuse(Slow)
	default:
		refuse(Upstream)
	}
}
