//go:build vmguest

package clients

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go/http3"

	"weir/test/vm/guest/rig"
)

const (
	caFile = "/etc/ssl/certs/ca-certificates.crt"
	zone   = "weir.test."
	answer = "answer"
	// slowWorld is an address whose packets take a while to come back.
	slowWorld = "10.77.1.2"
	slowness  = "300ms"
	// namedWorld is where names lead: it is public, since a name does not lead to a private address (B25).
	namedWorld = "203.0.113.2"
)

// servers are what the world offers; they remember who came.
type servers struct {
	tls  *tls.Config
	http *http.Server
	mu   sync.Mutex
	seen strings.Builder // requests and questions, a line each
}

// serve starts what all clients share: trust in our certificates, DNS, and a slow way back.
func serve(t *testing.T) *servers {
	t.Helper()
	s := &servers{tls: certify(t)}
	s.http = &http.Server{Handler: s.handler(t), TLSConfig: s.tls}
	t.Cleanup(func() { _ = s.http.Close() })
	if err := os.WriteFile("/etc/resolv.conf", []byte("nameserver "+rig.World4+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	rig.Must(t, "ip addr add 203.0.113.1/24 dev "+rig.Dev+" && ip -n world addr add "+namedWorld+"/24 dev wv1")
	for _, network := range []string{"udp", "tcp"} {
		server := &dns.Server{Handler: dns.HandlerFunc(s.resolve)}
		if network == "udp" {
			server.PacketConn = inWorld(t, func() (net.PacketConn, error) { return net.ListenPacket("udp", rig.World4+":53") })
		} else {
			server.Listener = inWorld(t, func() (net.Listener, error) { return net.Listen("tcp", rig.World4+":53") })
		}
		go func() { _ = server.ActivateAndServe() }() // until it is shut down
		t.Cleanup(func() { _ = server.ShutdownContext(context.Background()) })
	}
	rig.Must(t, `tc -n world qdisc add dev wv1 root handle 1: prio bands 3 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
		tc -n world qdisc add dev wv1 parent 1:3 handle 30: netem delay `+slowness+`
		tc -n world filter add dev wv1 parent 1: protocol ip u32 match ip src `+slowWorld+`/32 flowid 1:3`)
	return s
}

// inWorld listens in the world's network namespace: a socket stays where it was made.
func inWorld[L any](t *testing.T, listen func() (L, error)) L {
	t.Helper()
	var made L
	err := rig.Within("world", func() (err error) {
		made, err = listen()
		return err
	})
	if err != nil {
		t.Fatalf("listen in the world: %v", err)
	}
	return made
}

// listen offers HTTP at a port, with TLS or without.
func (s *servers) listen(t *testing.T, port int, secure bool) {
	t.Helper()
	l := inWorld(t, func() (net.Listener, error) { return net.Listen("tcp", fmt.Sprintf("0.0.0.0:%d", port)) })
	go func() { // until the server is closed
		if secure {
			_ = s.http.ServeTLS(l, "", "")
		} else {
			_ = s.http.Serve(l)
		}
	}()
}

// quic offers HTTP/3 at a port.
func (s *servers) quic(t *testing.T, port int) {
	t.Helper()
	conn := inWorld(t, func() (net.PacketConn, error) { return net.ListenPacket("udp", fmt.Sprintf("0.0.0.0:%d", port)) })
	server := &http3.Server{Handler: s.http.Handler, TLSConfig: http3.ConfigureTLSConfig(s.tls)}
	go func() { _ = server.Serve(conn) }() // until it is closed
	t.Cleanup(func() { _ = server.Close() })
}

func (s *servers) note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(&s.seen, line)
}

// came counts the requests and questions that name a text.
func (s *servers) came(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for line := range strings.Lines(s.seen.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func (s *servers) handler(t *testing.T) http.Handler {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			fmt.Fprintln(w, answer, r.Proto)
		}
	})
	mux.Handle("/git/", gitRepository(t))
	mux.Handle("/apt/", aptRepository(t))
	mux.Handle("/npm/", npmRegistry(t))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.note(r.Proto + " " + r.Host + r.URL.Path)
		// who asks for /TEXT/git/… is known by the text
		text, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if _, pattern := mux.Handler(&http.Request{Method: r.Method, Host: r.Host, URL: &url.URL{Path: "/" + rest}}); pattern != "/" {
			r.URL.Path = "/" + rest
			r.Header.Set("Text", text)
		}
		mux.ServeHTTP(w, r)
	})
}

// resolve knows every name below the zone; all have the same address.
func (s *servers) resolve(w dns.ResponseWriter, r *dns.Msg) {
	m := new(dns.Msg).SetReply(r)
	for _, q := range r.Question {
		s.note("DNS " + q.Name)
		switch {
		case !strings.HasSuffix(q.Name, "."+zone):
			m.Rcode = dns.RcodeNameError
		case q.Qtype == dns.TypeA:
			m.Answer = append(m.Answer, &dns.A{
				Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: net.ParseIP(namedWorld),
			})
		}
	}
	_ = w.WriteMsg(m) // who asked may be gone
}

// certify makes an authority of our own, the only one that programs here trust, and a certificate for the world.
func certify(t *testing.T) *tls.Config {
	t.Helper()
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	world := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "world"}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		IPAddresses: []net.IP{net.ParseIP(rig.World4), net.ParseIP(slowWorld)}, DNSNames: []string{"*." + strings.TrimSuffix(zone, ".")},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	caKey, worldKey := key(), key()
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, world, ca, &worldKey.PublicKey, caKey)
	if err != nil {
		t.Fatal(err)
	}
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	if err := os.WriteFile(caFile, bundle, 0o644); err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: worldKey}}}
}

// sshd listens in the world at the ports given.
func sshd(t *testing.T, ports []int) {
	t.Helper()
	rig.Must(t, `mkdir -p /run/sshd /root/.ssh && chmod 700 /root/.ssh
		ssh-keygen -q -t ed25519 -N '' -f /run/sshd/host && ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519
		cp /root/.ssh/id_ed25519.pub /root/.ssh/authorized_keys`)
	config := "HostKey /run/sshd/host\nLogLevel ERROR\nPidFile none\nUsePAM no\nAddressFamily inet\nStrictModes no\n"
	for _, p := range ports {
		config += fmt.Sprintf("Port %d\n", p)
	}
	if err := os.WriteFile("/run/sshd/config", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("ip", "netns", "exec", "world", "/usr/sbin/sshd", "-D", "-e", "-f", "/run/sshd/config")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
}
