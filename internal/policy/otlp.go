package policy

import (
	"net/netip"
	"net/url"

	"go.yaml.in/yaml/v3"
)

// OTLP says where weir-otel sends events and figures by OpenTelemetry's protocol over HTTP. The sensor itself sends nothing.
type OTLP struct {
	Endpoint       string   `key:"endpoint" text:"accepted is the URL of a collector such as https://otel.example.org:4318, or \"\" for none" check:"endpoint"` // without /v1/logs and /v1/metrics
	HeadersFile    string   `key:"headers_file" word:"an absolute path"`                                                                                        // lines NAME: VALUE that each request bears
	CAFile         string   `key:"ca_file" word:"an absolute path"`                                                                                             // of certificates that vouch for the endpoint; empty: the host's own
	CertFile       string   `key:"cert_file" word:"an absolute path"`                                                                                           // of the certificate that is shown to it, and
	KeyFile        string   `key:"key_file" word:"an absolute path"`                                                                                            // of its key; empty: none
	Without        []string `key:"without" list:"kinds of events such as exec and connect" most:"64" each:"kind"`                                               // that are not sent
	MetricsSeconds int      `key:"metrics_seconds" number:"seconds 0 3600"`                                                                                     // between two times that figures are sent; 0: never
}

// endpoint checks the URL of a collector.
func endpoint(s string) (string, string) {
	u, err := url.Parse(s)
	switch {
	case s == "":
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery+u.Fragment != "":
		return s, unaccepted
	case u.User != nil:
		return u.Redacted(), "it holds a user: write Authorization: Basic … into the file of otlp.headers_file"
	}
	return s, ""
}

func (o *OTLP) check(p *parser, _ *yaml.Node, lines map[string]place) {
	before := p.Mistakes()
	for key, file := range map[string]string{"headers_file": o.HeadersFile, "ca_file": o.CAFile, "cert_file": o.CertFile, "key_file": o.KeyFile} {
		switch line, ok := lines[key]; {
		case !ok:
		case o.Endpoint == "":
			p.Fail(line, "otlp.%s is not used without otlp.endpoint: write one such as https://otel.example.org:4318, or leave this out", key)
		default:
			p.secretFile(line, "otlp."+key, file)
		}
	}
	u, err := url.Parse(o.Endpoint)
	if p.Mistakes() > before || err != nil || o.Endpoint == "" {
		return
	}
	a, err := netip.ParseAddr(u.Hostname())
	clear := u.Scheme == "http" && !(err == nil && a.IsLoopback()) && u.Hostname() != "localhost"
	switch {
	case o.CertFile != "" && o.KeyFile == "":
		p.Fail(lines["cert_file"], "otlp.cert_file needs otlp.key_file, the file of its key")
	case o.KeyFile != "" && o.CertFile == "":
		p.Fail(lines["key_file"], "otlp.key_file needs otlp.cert_file, the file of its certificate")
	case u.Scheme == "http" && o.CAFile+o.CertFile != "":
		p.Fail(lines["endpoint"], "otlp.endpoint is http, and files of certificates are set: write https://")
	case clear && o.HeadersFile != "":
		p.Fail(lines["endpoint"], "otlp.endpoint is http: the headers of otlp.headers_file would go in the clear: write https://")
	case clear:
		p.Note(lines["endpoint"], "otlp.endpoint is http: events, with their command lines, go over the network in the clear: write https://, or http to a collector on 127.0.0.1")
	}
}
