package dns

import (
	"io"
	"net/netip"
	"strings"

	"github.com/miekg/dns"
)

// Config is what a resolv.conf says.
type Config struct {
	Servers []netip.Addr // with zone, where one is written
	Search  []string     // in lower case, without dots at the ends
}

const (
	maxServers = 8
	maxSearch  = 32
	maxConf    = 64 << 10 // bytes of a resolv.conf
)

// ReadConfig reads a resolv.conf. What it does not understand is left out.
func ReadConfig(r io.Reader) Config {
	var c Config
	read, err := dns.ClientConfigFromReader(io.LimitReader(r, maxConf))
	if err != nil {
		return c
	}
	for _, s := range read.Servers {
		if a, err := netip.ParseAddr(s); err == nil && len(c.Servers) < maxServers && !a.IsUnspecified() && !a.IsMulticast() {
			c.Servers = append(c.Servers, a)
		}
	}
	for _, s := range read.Search {
		if s = strings.ToLower(strings.Trim(s, ".")); s != "" && len(c.Search) < maxSearch {
			c.Search = append(c.Search, s)
		}
	}
	return c
}
