package vault

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/permission"
	"weir/internal/redact"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// clean fails when any form of a secret stands in what is handed on.
func noSecret(t testing.TB, s string, things ...any) {
	t.Helper()
	scrub, err := redact.New([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	for _, thing := range things {
		var text strings.Builder
		fmt.Fprintf(&text, "%+v\n%#v\n", thing, thing)
		if data, err := json.Marshal(thing); err == nil {
			text.Write(data)
		}
		if out := scrub.String(text.String()); out != text.String() {
			t.Errorf("the secret is in %.300q", text.String())
		}
	}
}

func TestPlainFetchV3(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		r := newRig(t, h2)
		set(t, r.vault, "gh", "me", secret, r.binding())
		for scheme, want := range map[string][2]string{
			Bearer: {"Authorization", "Bearer " + secret}, Basic: {"Authorization", "Basic bWU6Z2hwXzAxMjM0NTY3ODlhYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5eg=="},
			XAPIKey: {"X-Api-Key", secret}, Custom: {"X-Secret", secret},
		} {
			r.seen = nil
			got, err := r.fetch.Fetch(t.Context(), "c", nil, r.request("/proto?q=1", scheme))
			if err != nil {
				t.Fatal(scheme, err)
			}
			if wantProto := map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[h2]; got.Status != 200 || got.Body != wantProto || got.Proto != wantProto {
				t.Errorf("%+v", got)
			}
			if got.Address != netip.MustParseAddrPort("127.0.0.1:"+r.port) {
				t.Error(got.Address)
			}
			found := 0
			for name, values := range r.seen[0] {
				if strings.Contains(strings.Join(values, " "), strings.TrimPrefix(want[1], "Bearer ")) {
					found++
					if name != want[0] || values[0] != want[1] {
						t.Errorf("%s: %s: %q", scheme, name, values)
					}
				}
			}
			if found != 1 || len(r.seen) != 1 {
				t.Errorf("%s: the secret stands in %d headers of %d requests", scheme, found, len(r.seen))
			}
		}
	}
}

// V12: the secret greps to zero in what comes back, in each of these.
func TestNothingComesBackV12(t *testing.T) {
	for name, value := range map[string]string{
		"plain": secret, "awkward": awkward, "with a user": "someone:" + secret,
		"white space around it": " " + secret + "  ", "with a user, white space": "someone:" + secret + " ", "words": "ab cd ef " + secret + " ",
	} {
		for _, h2 := range []bool{false, true} {
			for _, scheme := range Schemes() {
				r := newRig(t, h2)
				setOld(t, r.vault, "gh", value, r.binding())
				for path, want := range map[string]string{
					"/echo":     "200 that is",
					"/401":      "401 bad credentials",
					"/header":   "200 X-Echo",
					"/forms":    "200 ",
					"/split":    "200 ",
					"/gzip":     "200 packed",
					"/odd":      "200 ",
					"/redirect": "302 Location",
					"/reset":    "connection_broken ",
					"/br":       "unknown_encoding ",
				} {
					t.Run(fmt.Sprintf("%s, %s, h2 %v%s", name, scheme, h2, path), func(t *testing.T) {
						got, err := r.fetch.Fetch(t.Context(), "c", nil, r.request(path, scheme))
						code, part, _ := strings.Cut(want, " ")
						if err != nil {
							if h2 && path == "/reset" && ClassOf(err) == Protocol {
								code = string(Protocol) // a stream that was reset
							}
							if string(ClassOf(err)) != code {
								t.Errorf("%v, want %s", err, want)
							}
						} else if fmt.Sprint(got.Status) != code || !strings.Contains(fmt.Sprintf("%+v", got), part) {
							t.Errorf("%+v, want %s", got, want)
						}
						needle := value
						if _, password, ok := strings.Cut(value, ":"); ok {
							needle = password
						}
						noSecret(t, strings.TrimSpace(needle), got, err)
						noSecret(t, secretIn(needle), got, err)
					})
				}
				if r.other.Load() > 0 {
					t.Error("a redirect was followed (V4)")
				}
			}
		}
	}
}

// F33, V5: whatever the server makes of letters and lines, and wherever it puts the secret: names of headers, trailers, the status line, a
// redirect, a response that is none.
func TestF33NothingChangedComesBackV5(t *testing.T) {
	for name, value := range map[string]string{"token": secret, "mixed": "sk-Ant-Api03.ZyXw9_8b", "awkward": awkward, "with a user": "someone:" + secret} {
		for _, h2 := range []bool{false, true} {
			for _, scheme := range Schemes() {
				r := newRig(t, h2)
				setOld(t, r.vault, "gh", value, r.binding())
				for _, path := range []string{"/changed", "/bare", "/worse", "/redirect", "/echo", "/401", "/header", "/forms"} {
					got, err := r.fetch.Fetch(t.Context(), "c", nil, r.request(path, scheme))
					if path == "/changed" && (err != nil || !strings.Contains(got.Body, "changed")) {
						t.Fatalf("%+v, %v", got, err)
					}
					needle := value
					if _, password, ok := strings.Cut(value, ":"); ok {
						needle = password
					}
					data, jsonErr := json.Marshal(got)
					if jsonErr != nil {
						t.Fatal(jsonErr)
					}
					all := strings.ToLower(fmt.Sprintf("%s %+v %v", data, got, err))
					bare := strings.Join(strings.Fields(strings.NewReplacer(`\r`, "", `\n`, "", `\t`, "").Replace(all)), "")
					b64 := strings.ToLower(base64.RawURLEncoding.EncodeToString([]byte(needle)))
					for _, part := range []string{needle, b64[:len(b64)-1], hex.EncodeToString([]byte(needle)), url.QueryEscape(needle)} {
						if strings.Contains(bare, strings.ToLower(part)) {
							t.Errorf("%s, %s, h2 %v%s: %q is in %q", name, scheme, h2, path, part, all)
						}
					}
				}
			}
		}
	}
}

// secretIn is the part of a value that must not stand alone either.
func secretIn(value string) string {
	if strings.Contains(value, secret) {
		return secret
	}
	return value
}

// setOld sets a secret as versions did that took any.
func setOld(t testing.TB, v *Vault, key, value string, b Binding) {
	t.Helper()
	b, err := b.clean()
	if err != nil {
		t.Fatal(err)
	}
	if err := v.change("set", func(c *content) error {
		c.Entries[key] = entry{Info{Key: key, Binding: b}, []byte(value)}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// V5: what an older vault holds is not sent where it could not be taken out as it is without the white space around it, and the key is named.
func TestTooShortWithoutWhiteSpaceV5(t *testing.T) {
	for value, schemes := range map[string][]string{
		"abc123 \n":          Schemes(),
		"abc123  ":           Schemes(),
		"\t\tabc123":         Schemes(),
		"aaaaaaaa ":          Schemes(),
		"         ":          Schemes(),
		"someone:abc123 \n":  {Basic},
		"someone:  abc123":   {Basic},
		"someone:abc123":     {Basic},
		"someone:aaaaaaaa\n": {Basic},
	} {
		for _, scheme := range schemes {
			r := newRig(t, false)
			setOld(t, r.vault, "gh", value, r.binding())
			_, err := r.fetch.Fetch(t.Context(), "c", nil, r.request("/echo", scheme))
			if ClassOf(err) != Unusable || !strings.Contains(err.Error(), "weir vault rotate gh") || len(r.seen) > 0 {
				t.Errorf("%q, %s: %v after %d requests", value, scheme, err, len(r.seen))
			}
		}
		if path := "/x/abc123"; !strings.Contains(value, ":") {
			r := newRig(t, false)
			setOld(t, r.vault, "gh", value, r.binding())
			r.fetch.Clean("gh", &path)
			if path != "" {
				t.Errorf("%q: %s is logged", value, path)
			}
		}
	}
}

// V12: what is logged of a request is cleaned of such a secret too.
func TestCleanTakesOutWhatHeadersCarryV12(t *testing.T) {
	r := newRig(t, false)
	setOld(t, r.vault, "gh", secret+" ", r.binding())
	path := "/x/" + secret
	r.fetch.Clean("gh", &path)
	noSecret(t, secret, path)
}

// V5: these headers are replaced whole, whatever is in them.
func TestHeadersThatAreReplacedV5(t *testing.T) {
	r := newRig(t, false)
	set(t, r.vault, "gh", "", secret, r.binding())
	got, err := r.fetch.Fetch(t.Context(), "c", nil, r.request("/header", Custom))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, h := range got.Headers {
		seen[h.Name] += h.Value
	}
	for _, name := range []string{"Authorization", "X-Api-Key", "Cookie", "Set-Cookie", "Proxy-Authorization", "Www-Authenticate", "X-Secret"} { // the last has the request's secret
		if seen[name] != "[removed]" {
			t.Errorf("%s: %q", name, seen[name])
		}
	}
	if seen["Date"] == "" || seen["Date"] == "[removed]" {
		t.Errorf("%+v", got.Headers)
	}
}

func TestLimitsV4(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		r := newRig(t, h2)
		set(t, r.vault, "gh", "", secret, r.binding())
		for _, path := range []string{"/huge", "/bomb", "/limit"} {
			got, err := r.fetch.Fetch(t.Context(), "c", nil, r.request(path, Bearer))
			if err != nil || !got.Truncated || len(got.Body) > MaxResponse || len(got.Body) < MaxResponse-100 || got.Bytes > 2<<20 {
				t.Errorf("%s: %d bytes of %d, %v, %v", path, len(got.Body), got.Bytes, got.Truncated, err)
			}
			if path == "/limit" && (strings.Contains(got.Body, "ghp") || !strings.HasPrefix(got.Body, "xxx")) {
				t.Errorf("at the limit a part of the secret is left: %q", got.Body[MaxResponse-100:])
			}
		}
		r.fetch.Time = 300 * time.Millisecond
		for _, path := range []string{"/stall", "/never"} {
			if _, err := r.fetch.Fetch(t.Context(), "c", nil, r.request(path, Bearer)); ClassOf(err) != Timeout {
				t.Errorf("%s: %v", path, err)
			}
		}
		r.fetch.Time = 0
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		if _, err := r.fetch.Fetch(ctx, "c", nil, r.request("/never", Bearer)); ClassOf(err) != Cancelled {
			t.Error(err)
		}
	}
}

// V12: a transport failure, of each kind, says nothing of what was sent.
func TestTransportFailuresV6V12(t *testing.T) {
	r := newRig(t, false)
	set(t, r.vault, "gh", "", secret, r.binding())
	dead := r.binding()
	dead.Hosts = nil
	set(t, r.vault, "unbound", "", secret, dead)
	noCA := dead
	noCA.CA = ""
	set(t, r.vault, "untrusted", "", secret, noCA)
	req := func(key, url string) Request {
		data, _ := json.Marshal(map[string]string{"url": url, "vault_auth_key": key, "auth_scheme": Bearer, "reason": "r"})
		q, err := ParseRequest(data)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	for _, tt := range []struct {
		req  Request
		want Class
	}{
		{req("unbound", "https://example.com:1/"), Connecting},
		{req("untrusted", "https://example.com:"+r.port+"/"), Untrusted},
		{req("unbound", "https://wrong.invalid:"+r.port+"/"), Untrusted},
		{req("gh", "https://other.example.com/"), NotBound},
		{req("none", "https://example.com/"), NoSuchKey},
	} {
		_, err := r.fetch.Fetch(t.Context(), "c", nil, tt.req)
		if ClassOf(err) != tt.want || errors.Unwrap(err) != nil {
			t.Errorf("%v, want %s", err, tt.want)
		}
		noSecret(t, secret, err)
	}
	before := r.hits.Load()
	if r.Close(); before != 0 {
		t.Errorf("%d requests arrived", before)
	}
	if _, err := r.fetch.Fetch(t.Context(), "c", nil, req("gh", "https://example.com:"+r.port+"/")); ClassOf(err) != Connecting {
		t.Error(err)
	}
}

// F36, V5: the status line's text comes back, without the secret in it.
func TestF36StatusTextV5(t *testing.T) {
	r := newRig(t, false)
	set(t, r.vault, "gh", "", secret, r.binding())
	for line, want := range map[string]string{
		"200 OK": "OK", "404 Not here": "Not here", "299": "", "299 ": "", "401 you sent " + secret + ", " + strings.ToUpper(secret): "you sent [removed], [removed]",
		"500 " + base64.StdEncoding.EncodeToString([]byte(secret)): "[removed]==", "503 200 \x80": "200 \uFFFD",
	} {
		r.raw = "HTTP/1.1 " + line + "\r\nContent-Length: 0\r\n\r\n"
		got, err := r.fetch.Fetch(t.Context(), "c", nil, r.request("/raw", Bearer))
		if err != nil || got.Text != want {
			t.Errorf("%q: got %q, want %q, %v", line, got.Text, want, err)
		}
		noSecret(t, secret, got)
	}
}

// V12: http, file and ftp URLs are refused, and all else that V1 does not accept.
func TestRequestsV1V12(t *testing.T) {
	good := `"vault_auth_key":"gh","auth_scheme":"bearer","reason":"r"`
	for _, url := range []string{"http://example.com/", "file:///etc/passwd", "ftp://example.com/", "HTTP://example.com", "//example.com/", "/x", "example.com",
		"https://u:p@example.com/", "https://", "https:///x", "https:example.com", "https://exämple.com/", "https://example.com:x/", "https://[fe80::1%25eth0]/",
		"https://a b/", "https://example.com/\\n", "https://example.com/ x", "gopher://x/", "javascript:alert(1)", "data:text/plain,x", "https://" + strings.Repeat("a", 9000)} {
		data, _ := json.Marshal(url)
		if _, err := ParseRequest([]byte(`{"url":` + string(data) + `,` + good + `}`)); ClassOf(err) != Invalid {
			if url != "https://example.com/\\n" { // a backslash is a character of a path
				t.Errorf("%.60s: %v", url, err)
			}
		}
	}
	for _, bad := range []string{
		`{}`, `[]`, `{"url":"https://x"}`, `{"url":"https://x",` + good + `,"extra":1}`, `{"URL":"https://x",` + good + `}`,
		`{"url":"https://x","url":"https://y",` + good + `}`,
		`{"url":"https://x",` + good + `,"method":"TRACE"}`, `{"url":"https://x",` + good + `,"method":"get"}`,
		`{"url":"https://x",` + good + `,"body":"x"}`, `{"url":"https://x",` + good + `,"auth_header_name":"X"}`,
		`{"url":"https://x","vault_auth_key":"a/b","auth_scheme":"bearer","reason":"r"}`,
		`{"url":"https://x","vault_auth_key":"gh","auth_scheme":"digest","reason":"r"}`,
		`{"url":"https://x","vault_auth_key":"gh","auth_scheme":"custom","reason":"r"}`,
		`{"url":"https://x","vault_auth_key":"gh","auth_scheme":"custom","auth_header_name":"Host","reason":"r"}`,
		`{"url":"https://x","vault_auth_key":"gh","auth_scheme":"custom","auth_header_name":"a b","reason":"r"}`,
		`{"url":"https://x","vault_auth_key":"gh","auth_scheme":"custom","auth_header_name":"` + strings.Repeat("x", 65) + `","reason":"r"}`,
		`{"url":"https://x","vault_auth_key":"gh","auth_scheme":"bearer","reason":""}`,
		`{"url":"https://x","vault_auth_key":"gh","auth_scheme":"bearer","reason":"` + strings.Repeat("x", 501) + `"}`,
		`{"url":"https://x",` + good + `,"method":"POST","body_content_type":"a\nb"}`,
	} {
		if _, err := ParseRequest([]byte(bad)); ClassOf(err) != Invalid {
			t.Errorf("%.80s: %v", bad, err)
		}
	}
	r, err := ParseRequest([]byte(`{"url":"https://API.example.com./v1/x?q=1#f","vault_auth_key":"gh","auth_scheme":"bearer","reason":"` + strings.Repeat("ä", 500) + `"}`))
	if err != nil || r.Method != "GET" || r.Host() != "api.example.com" || r.Path() != "/v1/x" {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := (&Fetcher{Vault: newVault(t)}).Fetch(t.Context(), "c", nil, Request{URL: "http://x", Key: "gh"}); ClassOf(err) != Invalid {
		t.Error("a request that was not checked is made:", err)
	}
}

func TestBindingV7(t *testing.T) {
	b := Binding{Hosts: []string{"api.example.com"}, Methods: []string{"GET"}, Paths: []string{"/v1", "/x/"}}
	for _, tt := range []struct {
		host, method, path string
		want               bool
	}{
		{"api.example.com", "GET", "/v1", true},
		{"api.example.com", "GET", "/v1/a/b", true},
		{"api.example.com", "GET", "/x/a", true},
		{"api.example.com", "GET", "/v10", false},
		{"api.example.com", "GET", "/", false},
		{"api.example.com", "GET", "", false},
		{"api.example.com", "GET", "/v1/../v2", false},
		{"api.example.com", "GET", "/v1/%2e%2e/v2", false},
		{"api.example.com", "GET", "/v1//x", false},
		{"api.example.com", "GET", "/v1/..;/x", false},
		{"api.example.com", "POST", "/v1", false},
		{"api.example.com:8443", "GET", "/v1", false},
		{"evil.example.com", "GET", "/v1", false},
		{"api.example.com.evil", "GET", "/v1", false},
	} {
		if err := b.permits(tt.host, tt.method, tt.path); (err == nil) != tt.want {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	if err := (Binding{}).permits("any", "PUT", "/%2e"); err != nil {
		t.Error("nothing is bound:", err)
	}
}

func TestDestinationsV8(t *testing.T) {
	for _, a := range []string{"127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.100.100.200",
		"168.63.129.16", "0.0.0.0", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "192.0.0.192", "198.18.0.1", "::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254",
		"ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:db8::1", "2001::1", "4000::1", "fe80::1%eth0"} {
		if (Binding{}).reaches(netip.MustParseAddr(a)) {
			t.Errorf("%s is reached", a)
		}
	}
	for _, a := range []string{"8.8.8.8", "93.184.216.34", "2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8", "172.32.0.1", "100.128.0.1"} {
		if !(Binding{}).reaches(netip.MustParseAddr(a)) {
			t.Errorf("%s is not reached", a)
		}
	}
	b := Binding{Networks: []string{"10.1.0.0/16", "127.0.0.1"}}
	for a, want := range map[string]bool{"10.1.2.3": true, "::ffff:10.1.2.3": true, "127.0.0.1": true, "10.2.0.1": false, "127.0.0.2": false, "8.8.8.8": true} {
		if b.reaches(netip.MustParseAddr(a)) != want {
			t.Error(a)
		}
	}
}

func TestPrivateAndRebindingV8(t *testing.T) {
	r := newRig(t, false)
	open := r.binding()
	open.Networks = nil
	set(t, r.vault, "gh", "", secret, open)
	for _, answers := range [][][]netip.Addr{
		at("127.0.0.1"), at("10.0.0.1"), at("169.254.169.254"), at("::1"), at("::ffff:127.0.0.1"),
		{{netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("127.0.0.1")}}, {{}},
	} {
		resolver := &names{answers: answers}
		r.fetch.Resolver = resolver
		if _, err := r.fetch.Fetch(t.Context(), "c", nil, r.request("/echo", Bearer)); ClassOf(err) != Refused && ClassOf(err) != Resolving {
			t.Errorf("%v: %v", answers, err)
		}
	}
	// It rebinds between check and dial: there is one look-up, so what was checked is what is dialled.
	named := r.binding()
	named.Networks = []string{"127.0.0.1"}
	if err := r.vault.Bind("gh", named); err != nil {
		t.Fatal(err)
	}
	resolver := &names{answers: at("127.0.0.1", "127.0.0.2")}
	r.fetch.Resolver = resolver
	got, err := r.fetch.Fetch(t.Context(), "c", nil, r.request("/proto", Bearer))
	if err != nil || resolver.asked != 1 || got.Address.Addr().String() != "127.0.0.1" {
		t.Errorf("%v, %d look-ups, %v", got.Address, resolver.asked, err)
	}
	if _, err := r.fetch.Fetch(t.Context(), "c", nil, r.request("/proto", Bearer)); ClassOf(err) != Refused {
		t.Errorf("the address that came second: %v", err)
	}
	if n := r.hits.Load(); n != 1 {
		t.Errorf("%d requests arrived", n)
	}
	w := &way{}
	if err := w.control("tcp", "127.0.0.1:443", nil); ClassOf(err) != Refused {
		t.Error("the last look does not refuse:", err)
	}
}

func TestProxiesOfTheEnvironmentAreIgnored(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	t.Setenv("https_proxy", "http://127.0.0.1:1")
	r := newRig(t, false)
	set(t, r.vault, "gh", "", secret, r.binding())
	if _, err := r.fetch.Fetch(t.Context(), "c", nil, r.request("/proto", Bearer)); err != nil {
		t.Error(err)
	}
	if tr, err := (&way{}).transport(); err != nil || tr.Proxy != nil {
		t.Error("a proxy is asked for", err)
	}
}

func TestOneCallAtATimeM2(t *testing.T) {
	r := newRig(t, false)
	set(t, r.vault, "gh", "", secret, r.binding())
	var mu sync.Mutex
	now, most := 0, 0
	r.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		time.Sleep(5 * time.Millisecond)
		mu.Lock()
		now--
		mu.Unlock()
	})
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if _, err := r.fetch.Fetch(t.Context(), "c", nil, r.request("/", Bearer)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if most != 1 || len(r.fetch.busy) != 0 {
		t.Errorf("%d at once, %d keys are remembered", most, len(r.fetch.busy))
	}
}

func TestSecretsOfAnyBytes(t *testing.T) {
	r := newRig(t, false)
	random := make([]byte, 40)
	for i := range random {
		random[i] = byte(i*37 + 11)
	}
	random[5] = 0
	set(t, r.vault, "gh", "u", string(random), r.binding())
	if _, err := r.fetch.Fetch(t.Context(), "c", nil, r.request("/echo", Bearer)); ClassOf(err) != Unusable {
		t.Error(err)
	}
	got, err := r.fetch.Fetch(t.Context(), "c", nil, r.request("/forms", Basic))
	if err != nil || got.Status != 200 {
		t.Error(got, err)
	}
	noSecret(t, string(random), got)
}

func TestMethodsAndBodies(t *testing.T) {
	r := newRig(t, true)
	set(t, r.vault, "gh", "", secret, r.binding())
	for _, m := range Methods() {
		q := r.request("/body", Bearer)
		q.Method = m
		want := m + " "
		if m != "GET" {
			q.Body, want = `{"a":1}`, m+" application/json"
		}
		if got, err := r.fetch.Fetch(t.Context(), "c", nil, q); err != nil || got.Body != want {
			t.Errorf("%s: %q %v", m, got.Body, err)
		}
	}
}

// BenchmarkFetch against the same request made directly, each on a new connection.
func BenchmarkFetch(b *testing.B) {
	r := newRig(b, false)
	set(b, r.vault, "gh", "", secret, r.binding())
	q := r.request("/proto", Bearer)
	b.Run("vault", func(b *testing.B) {
		for b.Loop() {
			if _, err := r.fetch.Fetch(b.Context(), "c", nil, q); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("direct", func(b *testing.B) {
		client := r.Client()
		tr := client.Transport.(*http.Transport).Clone()
		tr.DisableKeepAlives = true
		client = &http.Client{Transport: tr}
		for b.Loop() {
			resp, err := client.Get(r.URL + "/proto")
			if err != nil {
				b.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	})
}

// FuzzRequest: what is accepted names one https host in ASCII, one key and one method, and nothing that steers the connection; every error is one of ours,
// on one line.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		`{"url":"https://example.com/a?b#c","vault_auth_key":"gh","auth_scheme":"bearer","reason":"x"}`, `{"url":"https://u:p@example.com:8443/","vault_auth_key":"a/b","auth_scheme":"basic","reason":""}`,
		`{"url":"https://[::1]:443/..%2f","vault_auth_key":"gh","auth_scheme":"custom","auth_header_name":"Host","reason":"x"}`, `{"url":"https://example.com","url":"http://x","method":"get","body":"x","page":2}`, `[]`, `{"url":`,
	} {
		f.Add([]byte(s))
	}
	b := Binding{Hosts: []string{"example.com"}, Paths: []string{"/a"}}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseRequest(data)
		if err != nil {
			if ClassOf(err) != Invalid || strings.ContainsAny(err.Error(), "\n\r\x00") {
				t.Errorf("%q: %q", data, err)
			}
			return
		}
		host := r.Host()
		if r.url.Scheme != "https" || r.url.User != nil || host == "" || strings.ContainsFunc(host, func(c rune) bool { return c <= ' ' || c > '~' }) || permission.CheckKey(r.Key) != nil || !slices.Contains(Methods(), r.Method) {
			t.Errorf("%q: %+v", data, r)
		}
		if b.permits(host, r.Method, r.Path()) == nil && (host != "example.com" || r.Path() != "/a" && !strings.HasPrefix(r.Path(), "/a/") || strings.Contains(r.Path(), "..")) {
			t.Errorf("%q: let go to %s%s", data, host, r.Path())
		}
	})
}

// B161: where a key says how it is sent, nothing else is; a request that names nothing gets that, also without it bearer.
func TestB161HeaderOfTheKey(t *testing.T) {
	for name, c := range map[string]struct {
		scheme, header string // of the key
		asks           string
		sent           string // the header
	}{
		"nothing": {"", "", "", "Authorization"}, "as asked": {"", "", Custom, "X-Secret"},
		"its own": {Custom, "x-secret", "", "X-Secret"}, "its own, named": {"", "X-SECRET", Custom, "X-Secret"}, "another header": {Custom, "X-Title", Custom, ""},
		"not custom": {Bearer, "", Custom, ""}, "another scheme": {Custom, "X-Secret", Bearer, ""}, "basic": {Basic, "", "", "Authorization"},
	} {
		r := newRig(t, false)
		b := r.binding()
		b.Scheme, b.Header = c.scheme, c.header
		set(t, r.vault, "gh", "me", secret, b)
		_, err := r.fetch.Fetch(t.Context(), "c", nil, r.request("/", c.asks))
		if c.sent == "" {
			if ClassOf(err) != NotBound || len(r.seen) != 0 {
				t.Errorf("%s: %v, sent %v", name, err, r.seen)
			}
			continue
		}
		if err != nil || len(r.seen) != 1 || r.seen[0].Get(c.sent) == "" {
			t.Errorf("%s: %v, sent %v", name, err, r.seen)
		}
	}
	for _, b := range []Binding{{Scheme: "digest"}, {Scheme: Custom}, {Scheme: Bearer, Header: "X-Key"}, {Header: "Host"}, {Header: "a b"}} {
		if c, err := b.clean(); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %+v, %v", b, c, err)
		}
	}
}

// lookup is a resolver that finds nothing.
type lookup func(host string)

func (l lookup) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	l(host)
	return nil, &net.DNSError{}
}

// B163: of one container's calls with a key one is before another container's, whose time begins with its turn. Whether it may still be made is
// asked then, and a turn that does not come ends the call.
func TestB163FairTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Fetcher{Vault: newVault(t)}
		set(t, f.Vault, "gh", "", secret, Binding{})
		var all sync.WaitGroup
		call := func(container string, still func() error, want func(error) bool) {
			r, err := ParseRequest(fmt.Appendf(nil, `{"url":"https://%s.example.com/","vault_auth_key":"gh","reason":"r"}`, container))
			if err != nil {
				t.Error(err)
			}
			all.Go(func() {
				if _, err := f.Fetch(t.Context(), container, still, r); !want(err) {
					t.Errorf("%s: %v", container, err)
				}
			})
			synctest.Wait()
		}
		class := func(c Class) func(error) bool { return func(err error) bool { return ClassOf(err) == c } }
		var order []string
		f.Resolver = lookup(func(host string) {
			order = append(order, strings.TrimSuffix(host, ".example.com"))
			time.Sleep(time.Second)
		})
		for range 3 {
			call("greedy", nil, class(Resolving))
		}
		sealed := false
		refusal := errors.New("sealed")
		call("calm", nil, class(Resolving))
		call("late", func() error {
			if sealed {
				return refusal
			}
			return nil
		}, func(err error) bool { return err == refusal })
		sealed = true
		all.Wait()
		if want := []string{"greedy", "calm", "greedy", "greedy"}; !slices.Equal(order, want) {
			t.Errorf("in the order %v", order)
		}

		f.Resolver = lookup(func(host string) {
			if strings.HasPrefix(host, "slow") {
				time.Sleep(time.Hour)
			}
			time.Sleep(MaxTime - time.Second)
		})
		for _, container := range []string{"slow", "slower"} {
			call(container, nil, class(Timeout))
		}
		for _, container := range []string{"a", "b", "c"} { // of which c begins after 118 s
			call(container, nil, class(Resolving))
		}
		begun := time.Now()
		call("never", nil, func(err error) bool {
			return ClassOf(err) == Timeout && strings.Contains(err.Error(), "it was not sent") && time.Since(begun) == maxWait
		})
		all.Wait()
		if len(f.busy) != 0 {
			t.Errorf("%d turns are remembered", len(f.busy))
		}
		time.Sleep(2 * time.Hour) // until the slow have ended too
	})
}
