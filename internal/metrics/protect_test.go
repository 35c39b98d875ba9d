package metrics

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weir/internal/control"
)

const token = "0123456789abcdef-token"

func ask(t *testing.T, c *http.Client, url, authorization string) (int, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	answer, err := c.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	return answer.StatusCode, nil
}

// TestF41Token: without the token nothing is answered, and a new one counts from the next request on (F41).
func TestF41Token(t *testing.T) {
	now, broken := token, error(nil)
	c := served(t, Options{Listen: "127.0.0.1:0", Source: full(), Token: func() (string, error) { return now, broken }})
	for authorization, want := range map[string]int{
		"Bearer " + token: http.StatusOK, "": http.StatusUnauthorized, "Bearer": http.StatusUnauthorized, "Bearer ": http.StatusUnauthorized, token: http.StatusUnauthorized,
		"Basic " + token: http.StatusUnauthorized, "Bearer " + token + "x": http.StatusUnauthorized, "Bearer " + token[1:]: http.StatusUnauthorized, "bearer " + strings.ToUpper(token): http.StatusUnauthorized,
	} {
		for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
			if code, err := ask(t, c, "http://weir"+path, authorization); err != nil || code != want {
				t.Errorf("%s with %q: %d, %v", path, authorization, code, err)
			}
		}
	}
	now = "another-token-of-some-length"
	if code, err := ask(t, c, "http://weir/metrics", "Bearer "+token); err != nil || code != http.StatusUnauthorized {
		t.Errorf("the old token: %d, %v", code, err)
	}
	if code, err := ask(t, c, "http://weir/metrics", "Bearer "+now); err != nil || code != http.StatusOK {
		t.Errorf("the new token: %d, %v", code, err)
	}
	for _, now = range []string{"", "short"} {
		if code, err := ask(t, c, "http://weir/metrics", "Bearer "+now); err != nil || code != http.StatusUnauthorized {
			t.Errorf("the token %q: %d, %v", now, code, err)
		}
	}
	now, broken = token, errors.New("gone")
	if code, err := ask(t, c, "http://weir/metrics", "Bearer "+token); err != nil || code != http.StatusUnauthorized {
		t.Errorf("a token that cannot be read: %d, %v", code, err)
	}
	for name, o := range map[string]Options{
		"no file": {Token: func() (string, error) { return "", errors.New("no file") }},
		"short":   {Token: func() (string, error) { return "short", nil }},
		"no cert": {Cert: func() (tls.Certificate, error) { return tls.Certificate{}, errors.New("no cert") }},
	} {
		o.Listen, o.Source = "127.0.0.1:0", full()
		if s, err := Listen(o); err == nil || strings.Contains(err.Error(), "\"short\"") {
			t.Errorf("%s: %v", name, err)
			s.Close()
		}
	}
}

// TestF41TLS: over HTTPS with the token; never in the clear, and a guarded peer gets no answer even with the token (F41).
func TestF41TLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	root, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	guarded := false
	c := served(t, Options{
		Listen: "127.0.0.1:0", Source: full(), Token: func() (string, error) { return token, nil },
		Cert: func() (tls.Certificate, error) {
			return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
		},
		Peers: control.PeerRules{Socket: func(_, _ netip.AddrPort) error {
			if guarded {
				return errors.New("guarded")
			}
			return nil
		}},
	})
	transport := c.Transport.(*http.Transport)
	transport.DisableKeepAlives = true
	transport.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1"}
	transport.TLSClientConfig.RootCAs.AddCert(root)
	if code, err := ask(t, c, "https://weir/metrics", "Bearer "+token); err != nil || code != http.StatusOK {
		t.Errorf("with the token: %d, %v", code, err)
	}
	if code, err := ask(t, c, "https://weir/metrics", ""); err != nil || code != http.StatusUnauthorized {
		t.Errorf("without: %d, %v", code, err)
	}
	if code, err := ask(t, c, "http://weir/metrics", "Bearer "+token); err == nil && code == http.StatusOK {
		t.Errorf("in the clear: %d", code)
	}
	guarded = true
	if code, err := ask(t, c, "https://weir/metrics", "Bearer "+token); err == nil {
		t.Errorf("a guarded peer with the token: %d", code)
	}
}
