package metrics

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"weir/internal/control"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

const (
	maxConns   = 16
	maxScrapes = 2               // at once; more get 503
	collecting = 5 * time.Second // for one
	minToken   = 16              // bytes
)

// Options are what a Server needs.
type Options struct {
	Listen string // address and port, or the absolute path of a Unix socket
	Source Source
	Token  func() (string, error)          // what each request has to bear, read for each anew; nil: nothing
	Cert   func() (tls.Certificate, error) // for HTTPS, read for each connection anew; nil: HTTP

	Peers control.PeerRules // who is refused
}

// Server answers GET of /metrics, /healthz and /readyz.
type Server struct {
	o        Options
	listener net.Listener
	handler  http.Handler
}

// Listen listens; it serves nothing yet. A Unix socket is for root alone. The caller calls Serve, which closes it.
func Listen(o Options) (*Server, error) {
	s := &Server{o: o}
	registry, err := newRegistry(o.Source)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		DisableCompression: true, MaxRequestsInFlight: maxScrapes, Timeout: collecting, ErrorHandling: promhttp.HTTPErrorOnError,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { s.tell(w, false) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { s.tell(w, true) })
	s.handler = mux
	if err := s.protect(); err != nil {
		return nil, err
	}
	if s.listener, err = control.ListenUnix(o.Listen, 0o600); err != nil {
		return nil, fmt.Errorf("listen for metrics: %w", err)
	}
	return s, nil
}

func newRegistry(source Source) (*prometheus.Registry, error) {
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(&collector{source, newSeries()}); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return registry, nil
}

// Text is what /metrics answers.
func Text(source Source) (string, error) {
	registry, err := newRegistry(source)
	if err != nil {
		return "", err
	}
	families, err := registry.Gather()
	if err != nil {
		return "", fmt.Errorf("collect metrics: %w", err)
	}
	var b strings.Builder
	encoder := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			return "", fmt.Errorf("write metrics: %w", err)
		}
	}
	return b.String(), nil
}

// protect asks each request for the token. What cannot be read is told at once, and later refuses all.
func (s *Server) protect() error {
	if s.o.Cert != nil {
		if _, err := s.o.Cert(); err != nil {
			return fmt.Errorf("read the certificate for metrics: %w", err)
		}
	}
	if s.o.Token == nil {
		return nil
	}
	token, err := s.o.Token()
	if err != nil {
		return fmt.Errorf("read the token for metrics: %w", err)
	}
	if len(token) < minToken {
		return fmt.Errorf("the token for metrics has %d bytes: write at least %d, such as openssl rand -hex 32 prints", len(token), minToken)
	}
	next := s.handler
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := s.o.Token()
		given := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		wanted := sha256.Sum256([]byte("Bearer " + token))
		if err != nil || len(token) < minToken || subtle.ConstantTimeCompare(given[:], wanted[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "this needs the token of metrics.token_file: Authorization: Bearer TOKEN", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
	return nil
}

// Addr is where it listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve answers until ctx ends.
func (s *Server) Serve(ctx context.Context) error {
	l := control.LimitListener(s.listener, maxConns, s.o.Peers)
	if s.o.Cert != nil {
		l = tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			c, err := s.o.Cert()
			return &c, err
		}})
	}
	err := control.ServeHTTP(ctx, l, s.handler, 2*time.Minute)
	if err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}

// Close stops listening, if Serve was never called.
func (s *Server) Close() error { return s.listener.Close() }

// tell answers a probe. Being alive is answering at all; being ready is enforcing.
func (s *Server) tell(w http.ResponseWriter, ready bool) {
	h := s.o.Source.Health()
	h.Faults, h.Degraded = append([]string{}, h.Faults...), append([]string{}, h.Degraded...) // lists, also when empty
	code := http.StatusOK
	if ready && !h.Ready {
		code = http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(h) // who has gone needs no answer
}
