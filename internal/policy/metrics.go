package policy

import (
	"net/netip"

	"go.yaml.in/yaml/v3"
)

// What Metrics.Listen is, where it is no address.
const (
	MetricsUnix = "unix" // the socket metrics.sock in the run directory
	MetricsOff  = "off"
)

// Metrics says where figures are read. A port is beside the socket.
type Metrics struct {
	// MetricsUnix, MetricsOff, or an address and port; one that is not loopback needs TokenFile.
	Listen    string `key:"listen" text:"accepted are unix, off, and an IP address and port such as 127.0.0.1:9464 or, in quotes, [::1]:9464" check:"metrics"`
	TokenFile string `key:"token_file" word:"the absolute path of a file"` // with the bearer token that each request over the port needs; empty: none
	CertFile  string `key:"cert_file" word:"the absolute path of a file"`  // of the certificate for HTTPS, and
	KeyFile   string `key:"key_file" word:"the absolute path of a file"`   // of its key; empty: HTTP
}

func (out *Metrics) check(p *parser, _ *yaml.Node, lines map[string]place) {
	before := p.Mistakes()
	addr, _ := netip.ParseAddrPort(out.Listen) // not valid: no port
	for key, file := range map[string]string{"token_file": out.TokenFile, "cert_file": out.CertFile, "key_file": out.KeyFile} {
		switch line, ok := lines[key]; {
		case !ok:
		case !addr.IsValid():
			p.Fail(line, "metrics.%s is not used without a port: write one in metrics.listen, such as 0.0.0.0:9464, or leave this out", key)
		default:
			p.secretFile(line, "metrics."+key, file)
		}
	}
	switch {
	case p.Mistakes() > before || !addr.IsValid():
	case out.CertFile != "" && out.KeyFile == "":
		p.Fail(lines["cert_file"], "metrics.cert_file needs metrics.key_file, the file of its key")
	case out.KeyFile != "" && out.CertFile == "":
		p.Fail(lines["key_file"], "metrics.key_file needs metrics.cert_file, the file of its certificate")
	case addr.Addr().Unmap().IsLoopback():
	case out.TokenFile == "":
		p.Fail(lines["listen"], "metrics.listen is %s: others can reach an address that is not loopback: add metrics.token_file: /etc/weir/metrics.token, the file of a token that each request needs, or listen on 127.0.0.1", yamlQuote(out.Listen))
	case out.CertFile == "":
		p.Note(lines["listen"], "metrics.listen is %s without HTTPS: the token and the figures go over the network in the clear: add metrics.cert_file and metrics.key_file", yamlQuote(out.Listen))
	}
}

func metricsListen(s string) (string, string) {
	a, err := netip.ParseAddrPort(s)
	switch {
	case s == MetricsUnix, s == MetricsOff:
	case err != nil || a.Addr().Zone() != "":
		return s, unaccepted
	case a.Port() == 0:
		return s, "name a port"
	}
	return s, ""
}
