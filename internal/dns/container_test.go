package dns

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/policy"
)

// listing is a host whose policy lists name servers.
type listing struct {
	clean
	servers []netip.Addr
}

func (l *listing) NamePolicy(uint64) policy.Policy { return policy.Policy{Resolvers: l.servers} }

// A resolver that runs asks those that the policy lists now, and these for no name that a resolv.conf has made (B24).
func TestServersOfReloadB149(t *testing.T) {
	listed := &listing{}
	s := &Redirect{opts: RedirectOptions{Host: listed}, containers: map[uint64]*containerDNS{}}
	b := s.newContainer(7, nil)
	var asked []string
	up := &Upstream{Config: b.asks(Config{[]netip.Addr{netip.MustParseAddr("192.0.2.1")}, []string{"evil.example"}}), Dial: func(_ context.Context, network string, to netip.AddrPort) (net.Conn, error) {
		if network == "udp" {
			asked = append(asked, to.Addr().String())
		}
		return nil, errors.New("nobody is asked")
	}}
	s.containers[7], b.open[1] = b, &resolver{up: up, Resolver: New(Options{Up: up, Host: host{s, b}, Counts: &s.Counts})}
	for _, c := range []struct{ listed, want []string }{
		{nil, []string{"192.0.2.1", "192.0.2.1"}}, // for the name with the suffix, too
		{[]string{"192.0.2.2"}, []string{"192.0.2.2"}},
		{[]string{"192.0.2.3", "192.0.2.4"}, []string{"192.0.2.3", "192.0.2.4"}},
		{nil, []string{"192.0.2.1", "192.0.2.1"}},
	} {
		asked, listed.servers = nil, nil
		for _, a := range c.listed {
			listed.servers = append(listed.servers, netip.MustParseAddr(a))
		}
		if err := s.PolicyChanged(); err != nil {
			t.Fatal(err)
		}
		_, _ = b.open[1].Resolve(t.Context(), "artifactory", false)
		if diff := cmp.Diff(c.want, asked); diff != "" {
			t.Errorf("listed %v: - want + asked\n%s", c.listed, diff)
		}
	}
}
