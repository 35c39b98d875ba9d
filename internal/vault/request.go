package vault

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"weir/internal/permission"
	"weir/internal/redact"
	"weir/internal/strict"
)

// Limits on a request.
const (
	maxURL    = 8 << 10
	maxBody   = 1 << 20
	maxReason = 500 // characters
	maxHeader = 64
	maxPage   = 1000
)

// The schemes by which a secret goes into a header.
const (
	Bearer  = "bearer"
	Basic   = "basic"
	XAPIKey = "header_x_api_key"
	Custom  = "custom"
)

// Schemes lists them.
func Schemes() []string { return []string{Bearer, Basic, XAPIKey, Custom} }

// Methods lists the methods that a request may have.
func Methods() []string { return slices.Clone(methods) }

// Request is what an agent asks for (V1). A Request of ParseRequest is checked.
type Request struct {
	URL         string `json:"url"`
	Method      string `json:"method,omitempty"`
	Key         string `json:"vault_auth_key"`
	Scheme      string `json:"auth_scheme,omitempty"` // empty: the key's own, or Bearer
	HeaderName  string `json:"auth_header_name,omitempty"`
	Body        string `json:"body,omitempty"`
	ContentType string `json:"body_content_type,omitempty"`
	Reason      string `json:"reason"`
	Page        int    `json:"page,omitempty"` // of an answer that is there already; 0: a new request

	url *url.URL
}

// ParseRequest reads and checks the input of the tool: unknown fields are errors. Its errors are *Error of class Invalid.
func ParseRequest(data []byte) (Request, error) {
	var r Request
	if err := strict.Decode(data, &r); err != nil {
		return Request{}, refuse(Invalid, err.Error())
	}
	if err := r.check(); err != nil {
		return Request{}, err
	}
	return r, nil
}

func (r *Request) check() error {
	bad := func(format string, args ...any) error { return refuse(Invalid, fmt.Sprintf(format, args...)) }
	for _, f := range []struct{ name, value string }{
		{"url", r.URL}, {"vault_auth_key", r.Key}, {"reason", r.Reason},
	} {
		if f.value == "" {
			return bad("the field %s is missing", f.name)
		}
	}
	r.Method = cmp.Or(r.Method, "GET")
	if err := permission.CheckKey(r.Key); err != nil {
		return bad("vault_auth_key: %v", err)
	}
	u, err := url.Parse(r.URL)
	switch {
	case len(r.URL) > maxURL:
		return bad("url has more than %d bytes", maxURL)
	case err != nil || strings.ContainsFunc(r.URL, func(c rune) bool { return c <= ' ' || c == 0x7f || c == utf8.RuneError }):
		return bad("url is none: write it as https://host/path, with %%-escapes where they are needed")
	case u.Scheme != "https":
		return bad("url is not https: secrets go over https only")
	case u.User != nil:
		return bad("url has a user or password in it: the vault adds what authorizes the request")
	case permission.Host(u.Host) == "" || u.Opaque != "":
		return bad("url names no host in ASCII")
	}
	u.Fragment, u.RawFragment = "", ""
	r.url = u
	switch {
	case !slices.Contains(methods, r.Method):
		return bad("method %s is not accepted: use one of %s", strict.Quote(r.Method), strings.Join(methods, ", "))
	case r.Scheme != "" && !slices.Contains(Schemes(), r.Scheme):
		return bad("auth_scheme %s is not accepted: use one of %s", strict.Quote(r.Scheme), strings.Join(Schemes(), ", "))
	case (r.Scheme == Custom) != (r.HeaderName != ""):
		return bad("auth_header_name goes with auth_scheme custom, and only with it")
	case r.Scheme == Custom && !headerName(r.HeaderName):
		return bad("auth_header_name %s is not accepted: %s", strict.Quote(r.HeaderName), whatHeader)
	case len(r.Body) > maxBody:
		return bad("body has more than %d bytes", maxBody)
	case r.Body != "" && r.Method == "GET":
		return bad("GET takes no body")
	case len(r.ContentType) > 200 || strings.ContainsFunc(r.ContentType, func(c rune) bool { return c < ' ' || c > '~' }):
		return bad("body_content_type is no media type")
	case r.Page < 0 || r.Page > maxPage:
		return bad("page is a number from 2 to %d, or left out", maxPage)
	case utf8.RuneCountInString(r.Reason) > maxReason:
		return bad("reason has more than %d characters", maxReason)
	}
	return nil
}

const whatHeader = "1 to 64 letters, digits, _ and -, and none that steers the connection"

func headerName(s string) bool {
	if len(s) > maxHeader || strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	}) {
		return false
	}
	switch s = strings.ToLower(s); s {
	case "host", "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "content-length", "content-type", "content-encoding",
		"accept-encoding", "expect", "range", "user-agent", "http2-settings":
		return false
	}
	return !strings.HasPrefix(s, "proxy-")
}

// Host is where the request goes, as bindings and rules compare it.
func (r Request) Host() string { return permission.Host(r.url.Host) }

// Type is the media type of the body.
func (r Request) Type() string { return cmp.Or(r.ContentType, "application/json") }

// Path is where on the host, without its query, which may hold anything.
func (r Request) Path() string { return r.url.EscapedPath() }

// Way is the scheme by which a key with a binding goes, and into which header.
func (r Request) Way(b Binding) (scheme, header string) {
	scheme = cmp.Or(r.Scheme, b.Scheme, Bearer)
	switch scheme {
	case Custom:
		return scheme, http.CanonicalHeaderKey(cmp.Or(r.HeaderName, b.Header))
	case XAPIKey:
		return scheme, "X-Api-Key"
	}
	return scheme, "Authorization"
}

// header gives the one header with the secret.
func (r Request) header(e entry) (name string, value []byte, err error) {
	scheme, name := r.Way(e.Binding)
	switch scheme {
	case Basic:
		plain := e.Secret
		if e.User != "" || !strings.Contains(string(plain), ":") {
			plain = append([]byte(e.User+":"), plain...)
			defer clear(plain)
		}
		value = base64.StdEncoding.AppendEncode([]byte("Basic "), plain)
		return name, value, nil
	case Bearer:
		value = []byte("Bearer ")
	}
	value = append(value, e.Secret...)
	for _, c := range e.Secret {
		if c < ' ' || c == 0x7f {
			clear(value)
			return "", nil, refuse(Unusable, "the secret has characters that no header can carry: only auth_scheme basic can use it")
		}
	}
	return name, value, nil
}

// needles are what is taken out of the response: the secret, and the password alone where it is a part of it.
func (r Request) needles(e entry) ([][]byte, error) {
	all, err := spelled(e.Secret)
	scheme, _ := r.Way(e.Binding)
	if i := bytes.IndexByte(e.Secret, ':'); err == nil && scheme == Basic && e.User == "" && i >= 0 {
		var password [][]byte
		password, err = spelled(e.Secret[i+1:])
		all = append(all, password...)
	}
	if err != nil {
		return nil, refuse(Unusable, fmt.Sprintf("the secret of %s, or the password in it, could not be taken out of a response: without the white space around it, it is too short, too long or one character; "+
			"the operator stores another with weir vault rotate %s", r.Key, r.Key))
	}
	return all, nil
}

// spelled is a secret, and what is left of it on the way if it has white space at its ends: HTTP/1.1 takes that from headers, and servers split
// them at it. Spaces and line ends are accepted there no more, but older vaults have them. It fails if what is left could not be taken out.
func spelled(secret []byte) ([][]byte, error) {
	all, bare := [][]byte{secret}, bytes.TrimSpace(secret)
	if err := redact.Check(bare); err != nil || len(bare) == len(secret) {
		return all, err
	}
	for _, part := range append(bytes.Fields(secret), bare) {
		if redact.Check(part) == nil {
			all = append(all, part)
		}
	}
	return all, nil
}
