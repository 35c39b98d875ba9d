package vault

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir/internal/redact"
)

// Limits on a response (V4).
const (
	MaxTime     = 30 * time.Second
	MaxResponse = 1 << 20 // bytes of the body, decompressed
	maxHeaders  = 64 << 10
	maxWait     = 2 * time.Minute // for a turn
)

// Response is what came back, without the secret (V5).
type Response struct {
	Status    int
	Text      string // of the status line; of HTTP/2, which has none, what the status means
	Proto     string
	Headers   []Header // in the order of their names
	Body      string   // UTF-8; what is none is replaced
	Truncated bool     // there was more
	Bytes     int64    // of the body, as far as it was read
	Address   netip.AddrPort
}

// Header is one line of a response.
type Header struct{ Name, Value string }

// Fetcher makes requests with the secrets of a vault. Its methods may be called at the same time; requests with one key wait for each
// other, and one of each container is before those that it makes besides.
type Fetcher struct {
	Vault    *Vault
	Resolver Resolver      // nil: the host's own
	Time     time.Duration // of one request; 0: MaxTime
	Proxy    func() string // URL of the proxy to use for the next request; nil or empty: none, whatever the environment names

	mu   sync.Mutex
	busy map[string]*turn
}

type turn struct {
	wait  chan struct{} // holds one while nobody has it
	users int
}

// Check says what is known of the request's key, and whether it may go there, without using it (V7).
func (f *Fetcher) Check(r Request) (Info, error) {
	e, err := f.take(r)
	if err != nil {
		return Info{}, err
	}
	clear(e.Secret)
	return e.Info, nil
}

func (f *Fetcher) take(r Request) (entry, error) {
	if r.url == nil {
		return entry{}, refuse(Invalid, "the request was not checked")
	}
	e, err := f.Vault.entry(r.Key)
	switch {
	case errors.Is(err, ErrNoKey):
		return entry{}, refuse(NoSuchKey, "the vault has no key of this name")
	case err != nil:
		return entry{}, refuse(Locked, "the vault cannot be read: the operator finds why in the sensor's log")
	}
	if err := cmp.Or(e.Binding.permits(r.Host(), r.Method, r.Path()), e.Binding.carries(r)); err != nil {
		clear(e.Secret)
		return entry{}, err
	}
	return e, nil
}

// Fetch makes one request for a container. still, which may be nil, is asked once its turn has come: an error of it is given on, and nothing is sent.
// The secret is read, used and wiped here; other errors are *Error.
func (f *Fetcher) Fetch(ctx context.Context, container string, still func() error, r Request) (Response, error) {
	waiting, end := context.WithTimeout(ctx, maxWait)
	defer end()
	// First the container's own among themselves, so that few of them are before another's (B163).
	for _, turn := range []string{container + "\x00" + r.Key, r.Key} {
		leave, err := f.enter(waiting, turn)
		if err != nil {
			return Response{}, err
		}
		defer leave()
	}
	if still != nil {
		if err := still(); err != nil {
			return Response{}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(f.Time, MaxTime))
	defer cancel()
	e, err := f.take(r)
	if err != nil {
		return Response{}, err
	}
	defer clear(e.Secret)
	needles, err := r.needles(e)
	if err != nil {
		return Response{}, err
	}
	name, value, err := r.header(e)
	if err != nil {
		return Response{}, err
	}
	defer clear(value)
	scrub, err := redact.New(needles...)
	if err != nil {
		return Response{}, refuse(Unusable, "the secret could not be taken out of a response: rotate it")
	}
	defer scrub.Wipe()
	return f.send(ctx, r, e.Binding, name, value, scrub)
}

// enter waits for a turn, in the order of asking.
func (f *Fetcher) enter(ctx context.Context, key string) (leave func(), err error) {
	f.mu.Lock()
	t := f.busy[key]
	if t == nil {
		t = &turn{wait: make(chan struct{}, 1)}
		t.wait <- struct{}{}
		if f.busy == nil {
			f.busy = map[string]*turn{}
		}
		f.busy[key] = t
	}
	t.users++
	f.mu.Unlock()
	done := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(f.busy, key)
		}
	}
	select {
	case <-t.wait:
		return func() {
			t.wait <- struct{}{}
			done()
		}, nil
	case <-ctx.Done():
		done()
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, refuse(Timeout, "other requests with this key were before this one for too long: it was not sent, make it again later")
		}
		return nil, afresh(ctx, ctx.Err())
	}
}

func (f *Fetcher) send(ctx context.Context, r Request, b Binding, name string, value []byte, scrub *redact.Scrubber) (Response, error) {
	var body io.Reader
	if r.Body != "" {
		body = strings.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.url.String(), body)
	if err != nil {
		return Response{}, refuse(Invalid, "the request cannot be made of this url")
	}
	req.GetBody = nil // it is sent once
	req.Header.Set("User-Agent", "weir")
	if r.Body != "" {
		req.Header.Set("Content-Type", r.Type())
	}
	req.Header.Set(name, string(value))
	defer req.Header.Del(name)
	proxy, err := f.proxy()
	if err != nil {
		return Response{}, err
	}
	way := &way{resolver: f.resolver(), binding: b, proxy: proxy}
	transport, err := way.transport()
	if err != nil {
		return Response{}, err
	}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req) // which follows no redirect, and has no cookies
	if err != nil {
		return Response{}, afresh(ctx, err)
	}
	defer resp.Body.Close()
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return Response{}, refuse(Encoding, "the server compressed its answer in a way that was not asked for")
	}
	out := Response{Status: resp.StatusCode, Text: clean(scrub, strings.TrimSpace(strings.TrimPrefix(resp.Status, strconv.Itoa(resp.StatusCode)))), Proto: resp.Proto, Headers: headers(resp.Header, name, scrub), Address: way.dialled()}
	err = out.read(resp.Body, scrub)
	if ctx.Err() != nil {
		err = ctx.Err() // a server that sees this end hang up may end its answer in order
	}
	if err != nil {
		return Response{}, afresh(ctx, err)
	}
	return out, nil
}

// read takes the body. Of a longer one, as much more is read as a secret at the limit could take, and then dropped.
func (r *Response) read(body io.Reader, scrub *redact.Scrubber) error {
	var clean bytes.Buffer
	w := scrub.Writer(&clean)
	n, err := io.Copy(w, io.LimitReader(body, MaxResponse+int64(scrub.Hold())+1))
	if err != nil {
		return err
	}
	r.Bytes = n
	if n > MaxResponse+int64(scrub.Hold()) {
		r.Truncated, err = true, w.Cut()
	} else {
		err = w.Close()
	}
	if err != nil {
		return err
	}
	text := clean.Bytes()
	if len(text) > MaxResponse {
		r.Truncated, text = true, text[:MaxResponse]
		for i := 1; i < 4 && len(text) > 0 && text[len(text)-1]&0xc0 == 0x80; i++ { // no character is split
			text = text[:len(text)-1]
		}
		if len(text) > 0 && text[len(text)-1] >= 0xc0 {
			text = text[:len(text)-1]
		}
	}
	r.Body = strings.ToValidUTF8(string(text), "\uFFFD")
	return nil
}

// replaced are headers of a response that are not handed on, whatever is in them.
var replaced = []string{"Authorization", "X-Api-Key", "Cookie", "Set-Cookie", "Set-Cookie2", "Proxy-Authorization", "Www-Authenticate", "Proxy-Authenticate"}

func headers(h http.Header, own string, scrub *redact.Scrubber) []Header {
	list := []Header{}
	for name, values := range h {
		for _, v := range values {
			if slices.Contains(replaced, textproto.CanonicalMIMEHeaderKey(name)) || strings.EqualFold(name, own) {
				v = scrub.Marker()
			}
			h := Header{strings.ToValidUTF8(scrub.Name(name), "\uFFFD"), clean(scrub, v)}
			if scrub.Name(name+":"+v) != scrub.Name(name)+":"+scrub.Name(v) { // a secret with a colon, at which the line was parted
				h = Header{scrub.Marker(), scrub.Marker()}
			}
			list = append(list, h)
		}
	}
	slices.SortStableFunc(list, func(a, b Header) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func clean(scrub *redact.Scrubber, s string) string {
	return strings.ToValidUTF8(scrub.String(s), "\uFFFD")
}

// Clean takes a key's secret out of texts that are about to be logged. Where that cannot be done, the texts are dropped.
func (f *Fetcher) Clean(key string, texts ...*string) {
	var needles [][]byte
	var scrub *redact.Scrubber
	e, err := f.Vault.entry(key)
	defer clear(e.Secret)
	if err == nil {
		needles, err = spelled(e.Secret)
	}
	if err == nil {
		scrub, err = redact.New(needles...)
	}
	for _, t := range texts {
		if err != nil {
			*t = ""
		} else {
			*t = scrub.String(*t)
		}
	}
	if err == nil {
		scrub.Wipe()
	}
}
