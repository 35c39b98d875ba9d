package otlp

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	collogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"golang.org/x/net/http/httpguts"
	"google.golang.org/protobuf/proto"

	"weir/internal/linux"
	"weir/internal/policy"
)

const maxAnswer = 4 << 20 // bytes, as the exporters have it

// door is the way to one path of the endpoint, for one request after another. It remembers what the last one was answered.
type door struct {
	headers string // a file
	to      http.RoundTripper

	status   int   // 0: no answer came
	rejected int64 // of the records of a request that was taken
}

func newDoor(p policy.OTLP) (*door, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if p.CAFile != "" {
		data, err := os.ReadFile(p.CAFile)
		if err != nil {
			return nil, fmt.Errorf("otlp.ca_file: %w", err)
		}
		if t.RootCAs = x509.NewCertPool(); !t.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("otlp.ca_file: %s has no certificate: write it in PEM, as BEGIN CERTIFICATE", p.CAFile)
		}
	}
	if p.CertFile != "" {
		load := func() (*tls.Certificate, error) {
			c, err := tls.LoadX509KeyPair(p.CertFile, p.KeyFile)
			if err != nil {
				return nil, fmt.Errorf("otlp.cert_file, otlp.key_file: %w", err)
			}
			return &c, nil
		}
		if _, err := load(); err != nil {
			return nil, err
		}
		t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() } // it may have been renewed
	}
	return &door{headers: p.HeadersFile, to: &http.Transport{
		DialContext: (&net.Dialer{Timeout: callTime}).DialContext, TLSClientConfig: t, ForceAttemptHTTP2: true, TLSHandshakeTimeout: callTime, IdleConnTimeout: 90 * time.Second,
	}}, nil
}

func (d *door) client() *http.Client {
	return &http.Client{Transport: d, Timeout: callTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// RoundTrip implements http.RoundTripper.
func (d *door) RoundTrip(r *http.Request) (*http.Response, error) {
	d.status, d.rejected = 0, 0
	headers, err := headersIn(d.headers) // they may have been renewed
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	for name, values := range headers {
		r.Header[name] = values
	}
	answer, err := d.to.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	answer.Body.Close()
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	d.status = answer.StatusCode
	var taken collogs.ExportLogsServiceResponse
	if d.taken() && strings.HasSuffix(r.URL.Path, "/v1/logs") && proto.Unmarshal(body, &taken) == nil {
		d.rejected = max(taken.GetPartialSuccess().GetRejectedLogRecords(), 0)
	}
	return answer, nil
}

// taken says whether the last request was, perhaps in part.
func (d *door) taken() bool { return d.status/100 == 2 }

// refused says whether the last request was for what is in it: it would be again.
func (d *door) refused() bool {
	return d.status == http.StatusBadRequest || d.status == http.StatusRequestEntityTooLarge || d.status == http.StatusUnprocessableEntity
}

// headersIn reads lines NAME: VALUE; no file has none. No error repeats what was read.
func headersIn(file string) (http.Header, error) {
	if file == "" {
		return nil, nil
	}
	text, err := linux.ReadSecret(file)
	if err != nil {
		return nil, fmt.Errorf("otlp.headers_file: %w", err)
	}
	all, n := http.Header{}, 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		if value = strings.TrimSpace(value); value == "" || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("otlp.headers_file: line %d of %s is no header: write NAME: VALUE", n, file)
		}
		all.Add(name, value)
	}
	return all, nil
}
