package vault

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// awkward has characters that every encoding changes, and that a header can carry.
const awkward = `p@ss/w+rd="é\%41&<k> ñ'x~`

// rig is a server of the test's own, a vault bound to it, and a fetcher.
type rig struct {
	*httptest.Server
	t     testing.TB
	fetch *Fetcher
	vault *Vault
	port  string
	hits  atomic.Int64
	other atomic.Int64 // hits on the place that redirects lead to

	mu   sync.Mutex
	seen []http.Header
	raw  string // the answer of /raw, as it goes over the wire
}

// names resolves as it is told, in order; the last answer stays.
type names struct {
	mu      sync.Mutex
	answers [][]netip.Addr
	asked   int
}

func (n *names) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	a := n.answers[0]
	if len(n.answers) > 1 {
		n.answers = n.answers[1:]
	}
	return a, nil
}

func at(list ...string) [][]netip.Addr {
	all := [][]netip.Addr{}
	for _, s := range list {
		all = append(all, []netip.Addr{netip.MustParseAddr(s)})
	}
	return all
}

func newRig(t testing.TB, h2 bool) *rig {
	t.Helper()
	r := &rig{t: t, vault: newVault(t)}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(r.serve))
	r.Config.ErrorLog = nil
	r.EnableHTTP2 = h2
	r.Config.ErrorLog = quiet()
	r.StartTLS()
	t.Cleanup(r.Close)
	_, r.port, _ = net.SplitHostPort(r.Listener.Addr().String())
	r.fetch = &Fetcher{Vault: r.vault, Resolver: &names{answers: at("127.0.0.1")}, Time: time.Minute}
	return r
}

// binding lets a key go to the server.
func (r *rig) binding() Binding {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})
	return Binding{Hosts: []string{"example.com:" + r.port}, Networks: []string{"127.0.0.1"}, CA: string(ca)}
}

func (r *rig) request(path, scheme string) Request {
	r.t.Helper()
	input := map[string]string{"url": "https://example.com:" + r.port + path, "vault_auth_key": "gh", "auth_scheme": scheme, "reason": "a test"}
	if scheme == Custom {
		input["auth_header_name"] = "X-Secret"
	}
	data, err := json.Marshal(input)
	if err != nil {
		r.t.Fatal(err)
	}
	req, err := ParseRequest(data)
	if err != nil {
		r.t.Fatal(err)
	}
	return req
}

func (r *rig) serve(w http.ResponseWriter, req *http.Request) {
	r.hits.Add(1)
	r.mu.Lock()
	r.seen = append(r.seen, req.Header.Clone())
	r.mu.Unlock()
	sent := req.Header.Get("Authorization") + req.Header.Get("X-Api-Key") + req.Header.Get("X-Secret")
	raw := strings.TrimPrefix(sent, "Bearer ")
	if b, ok := strings.CutPrefix(sent, "Basic "); ok {
		data, _ := base64.StdEncoding.DecodeString(b)
		_, raw, _ = strings.Cut(string(data), ":")
	}
	switch req.URL.Path {
	case "/raw":
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			r.t.Error(err)
			return
		}
		io.WriteString(conn, r.raw)
		conn.Close()
	case "/echo":
		fmt.Fprintf(w, "you sent %s, that is %s", sent, raw)
	case "/401":
		w.Header().Set("WWW-Authenticate", "Bearer realm="+raw)
		w.WriteHeader(http.StatusUnauthorized)
		json.NewEncoder(w).Encode(map[string]string{"error": "bad credentials: " + sent, "token": raw})
	case "/header":
		w.Header().Set("X-Echo", sent)
		w.Header().Set("X-Url", url.QueryEscape(sent))
		w.Header().Set("Set-Cookie", "session=1")
		w.Header()["Authorization"] = []string{sent}
		w.Header()["X-Secret"] = []string{"whatever it is"}
		for _, name := range []string{"X-Api-Key", "Cookie", "Proxy-Authorization", "Www-Authenticate"} {
			w.Header().Set(name, "of the server's own")
		}
		w.Header()["X-"+strings.ToUpper(hex.EncodeToString([]byte(raw)))] = []string{"its name has it"}
	case "/forms":
		quoted, _ := json.Marshal(raw)
		fmt.Fprintf(w, "%s\n%s\n%s\n%s\n%s\n", quoted, url.QueryEscape(raw), url.PathEscape(raw), hex.EncodeToString([]byte(raw)), strings.ToUpper(hex.EncodeToString([]byte(raw))))
		for shift := range 3 {
			text := []byte("abc"[:shift] + raw + "xy")
			fmt.Fprintf(w, "%s\n%s\n", base64.StdEncoding.EncodeToString(text), base64.RawURLEncoding.EncodeToString(text))
		}
	case "/changed": // the case of letters, white space, names of headers, trailers (F33)
		upper, lower := strings.ToUpper(raw), strings.ToLower(raw)
		for _, name := range []string{raw, "X-" + raw, "x-" + upper, base64.RawURLEncoding.EncodeToString([]byte(raw)), "Warning"} {
			w.Header()[name] = []string{"changed", upper, lower}
		}
		w.Header().Set("Trailer", "X-Late, "+http.CanonicalHeaderKey("Y-"+raw))
		fmt.Fprintf(w, "changed %s %s %s\n%s\n", upper, lower, url.QueryEscape(upper), base64.StdEncoding.EncodeToString([]byte(raw))[:9]+"\r\n "+base64.StdEncoding.EncodeToString([]byte(raw))[9:])
		fmt.Fprintf(w, "%s %s\n\t%s\n", raw[:len(raw)/2], raw[len(raw)/2:], hex.EncodeToString([]byte(upper)))
		w.Header().Set("X-Late", upper)
		w.Header().Set(http.TrailerPrefix+"Y-"+raw, lower)
	case "/bare": // what the server's own library would not write: a status text, a folded header
		c, out, err := http.NewResponseController(w).Hijack()
		if err != nil { // HTTP/2 has neither
			http.Error(w, "bare "+raw, http.StatusTeapot)
			return
		}
		fmt.Fprintf(out, "HTTP/1.1 418 %s bare\r\n%s: %s\r\nX-Folded: %s\r\n\t%s\r\nConnection: close\r\n\r\n%s", raw, raw, raw, raw[:len(raw)/2], raw[len(raw)/2:], strings.ToUpper(raw))
		out.Flush()
		c.Close()
	case "/worse": // no response at all: the error has what was read
		c, out, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprintf(out, "%s %s\r\n\r\n", raw, strings.ToUpper(raw))
		out.Flush()
		c.Close()
	case "/split":
		for _, b := range []byte(sent) {
			w.Write([]byte{b})
			w.(http.Flusher).Flush()
		}
	case "/redirect":
		http.Redirect(w, req, "https://other.example.com:"+r.port+"/elsewhere?was="+url.QueryEscape(sent), http.StatusFound)
	case "/elsewhere":
		r.other.Add(1)
	case "/stall":
		w.(http.Flusher).Flush()
		<-req.Context().Done()
	case "/never":
		<-req.Context().Done()
	case "/huge":
		block := bytes.Repeat([]byte("0123456789abcdef"), 4096)
		for range 1 << 30 / len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	case "/limit": // the secret lies across the limit
		fmt.Fprint(w, strings.Repeat("x", MaxResponse-len(raw)/2), raw, strings.Repeat("y", 1<<20))
	case "/bomb":
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		block := make([]byte, 1<<16)
		for range 1 << 30 / len(block) {
			if _, err := z.Write(block); err != nil {
				return
			}
		}
		z.Close()
	case "/gzip":
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		fmt.Fprintf(z, "packed: %s", sent)
		z.Close()
	case "/br":
		w.Header().Set("Content-Encoding", "br")
		fmt.Fprint(w, sent)
	case "/reset":
		fmt.Fprintf(w, "a part with %s", sent)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	case "/odd":
		w.Write([]byte("\xff\xfe" + raw + "\x80"))
	case "/body":
		fmt.Fprintf(w, "%s %s", req.Method, req.Header.Get("Content-Type"))
	default:
		fmt.Fprint(w, req.Proto)
	}
}
