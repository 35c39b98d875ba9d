package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// ErrNoName says that nobody knows a name.
var ErrNoName = errors.New("the name does not exist")

const (
	askFor    = 2 * time.Second // one server, once
	maxChain  = 8               // links of a chain of aliases
	maxAddrs  = 16              // of one answer
	portDNS   = 53
	udpAnswer = 1232 // bytes
)

// Upstream asks name servers. Its methods may be called at the same time.
type Upstream struct {
	Config func() Config // whom to ask now, and the suffixes for names without a dot
	// Dial connects to a server, by udp or tcp, from where the container stands.
	Dial func(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error)
}

// Found is what a name leads to.
type Found struct {
	Chain []string     // the names on the way, the asked one not among them
	Addrs []netip.Addr // of one family; none: the name has no such address
	TTL   time.Duration
}

// Lookup asks for the addresses of a name, of IPv6 if six. A name without a dot is
// looked for below the suffixes first. ErrNoName: see there.
func (u *Upstream) Lookup(ctx context.Context, name string, six bool) (Found, error) {
	if !strings.Contains(name, ".") {
		for _, suffix := range u.Config().Search {
			if f, err := u.follow(ctx, name+"."+suffix, six); err == nil && len(f.Addrs) > 0 {
				return f, nil
			}
		}
	}
	return u.follow(ctx, name, six)
}

// follow goes along a chain of aliases, also where a server does not.
func (u *Upstream) follow(ctx context.Context, name string, six bool) (Found, error) {
	var f Found
	f.TTL = maxTTL
	for len(f.Chain) <= maxChain {
		m, err := u.ask(ctx, name, six)
		if err != nil {
			return Found{}, err
		}
		last := f.take(m, name)
		if len(f.Addrs) > 0 || last == name {
			return f, nil
		}
		name = last
	}
	return Found{}, fmt.Errorf("look up %s: more than %d aliases", name, maxChain)
}

// take reads one answer, and returns the name at which the chain ends in it.
func (f *Found) take(m *dns.Msg, name string) string {
	for len(f.Chain) <= maxChain {
		next := ""
		for _, rr := range m.Answer {
			if canonical(rr.Header().Name) != name || rr.Header().Class != dns.ClassINET {
				continue
			}
			ttl := time.Duration(rr.Header().Ttl) * time.Second
			switch rr := rr.(type) {
			case *dns.CNAME:
				next = canonical(rr.Target)
			case *dns.A:
				f.add(rr.A)
			case *dns.AAAA:
				f.add(rr.AAAA)
			default:
				continue
			}
			f.TTL = min(f.TTL, ttl)
		}
		if len(f.Addrs) > 0 || next == "" || next == name || slices.Contains(f.Chain, next) {
			return name
		}
		f.Chain, name = append(f.Chain, next), next
	}
	return name
}

func (f *Found) add(ip net.IP) {
	a, ok := netip.AddrFromSlice(ip)
	if a = a.Unmap(); ok && len(f.Addrs) < maxAddrs && !slices.Contains(f.Addrs, a) {
		f.Addrs = append(f.Addrs, a)
	}
}

// ask asks one server after the other, until one knows.
func (u *Upstream) ask(ctx context.Context, name string, six bool) (*dns.Msg, error) {
	servers := u.Config().Servers
	if len(servers) == 0 {
		return nil, errors.New("look up a name: no name server is known")
	}
	q := new(dns.Msg)
	q.SetQuestion(dns.Fqdn(name), dns.TypeA)
	if six {
		q.Question[0].Qtype = dns.TypeAAAA
	}
	q.SetEdns0(udpAnswer, false)
	var failed error
	for _, server := range servers {
		m, err := u.exchange(ctx, q, netip.AddrPortFrom(server, portDNS))
		switch {
		case err != nil:
			failed = fmt.Errorf("ask %s for %s: %w", server, name, err)
		case m.Rcode == dns.RcodeNameError:
			return nil, fmt.Errorf("look up %s: %w", name, ErrNoName)
		case m.Rcode != dns.RcodeSuccess:
			failed = fmt.Errorf("ask %s for %s: it answers %s", server, name, dns.RcodeToString[m.Rcode])
		default:
			return m, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return nil, failed
}

func (u *Upstream) exchange(ctx context.Context, q *dns.Msg, server netip.AddrPort) (*dns.Msg, error) {
	m, err := u.over(ctx, "udp", q, server)
	if err == nil && !m.Truncated {
		return m, nil
	}
	if long, failed := u.over(ctx, "tcp", q, server); failed == nil {
		return long, nil
	}
	return m, err
}

func (u *Upstream) over(ctx context.Context, network string, q *dns.Msg, server netip.AddrPort) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	conn, err := u.Dial(ctx, network, server)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	q = q.Copy()
	q.Id = dns.Id()
	client := dns.Client{Net: network, Timeout: askFor}
	m, _, err := client.ExchangeWithConnContext(ctx, q, &dns.Conn{Conn: conn, UDPSize: udpAnswer})
	if err != nil {
		return nil, err
	}
	if len(m.Question) != 1 || canonical(m.Question[0].Name) != canonical(q.Question[0].Name) || m.Question[0].Qtype != q.Question[0].Qtype {
		return nil, errors.New("the answer is to another question")
	}
	return m, nil
}

// canonical is a name in lower case without its last dot.
func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }
