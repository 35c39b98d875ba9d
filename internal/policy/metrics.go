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

// Metrics says where figures are read.
type Metrics struct {
	Listen string // MetricsUnix, MetricsOff, or an address and port on loopback
}

func (p *parser) metricsListen(into *string) func(*yaml.Node) {
	const accepted = "accepted are unix, off, and an address and port on loopback such as 127.0.0.1:9464"
	return func(n *yaml.Node) {
		s, ok := yamlText(n)
		if !ok {
			p.Fail(at(n), "metrics.listen is %s: %s", yamlKind(n), accepted)
			return
		}
		if s == MetricsUnix || s == MetricsOff {
			*into = s
			return
		}
		addr, err := netip.ParseAddrPort(s)
		switch {
		case err != nil || addr.Addr().Zone() != "":
			p.Fail(at(n), "metrics.listen is %s: %s", yamlQuote(s), accepted)
		case !addr.Addr().Unmap().IsLoopback():
			p.Fail(at(n), "metrics.listen is %s: containers can reach an address that is not loopback: name 127.0.0.1 or [::1], or unix", yamlQuote(s))
		case addr.Port() == 0:
			p.Fail(at(n), "metrics.listen is %s: name a port", yamlQuote(s))
		default:
			*into = s
		}
	}
}
