package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"weir/internal/policy"
)

// fake is the host of a resolver, and the name server that it asks.
type fake struct {
	mu      sync.Mutex
	policy  policy.Policy
	clean   bool
	zone    map[string][]string // addresses, or another name
	ttl     uint32
	asked   []string
	leased  map[string][]netip.Addr
	until   time.Time
	refused []string
	stored  map[netip.Addr]string
	search  []string // of whom it asks
	full    bool     // no lease finds room
	cut     bool     // answers by UDP are truncated
}

// set changes what a name leads to while questions may be under way.
func (f *fake) set(name, to string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.zone[name] = []string{to}
}

func (f *fake) Rules(name string) ([]policy.Rule, bool) {
	rules := f.policy.NameRules(name)
	return rules, len(rules) > 0
}
func (f *fake) Clean() bool                            { return f.clean }
func (f *fake) Listed(name string, a netip.Addr) bool  { return f.policy.Leads(name, a) }
func (f *fake) Refused(name string, a netip.Addr)      { f.refused = append(f.refused, name+" "+a.String()) }
func (f *fake) Put(addr netip.Addr, name string) error { f.stored[addr] = name; return nil }
func (f *fake) Lease(name string, addrs []netip.Addr, until time.Time) error {
	if f.full {
		return errors.New("no room")
	}
	f.leased[name], f.until = addrs, until
	return nil
}

func (f *fake) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := new(dns.Msg)
	m.SetReply(q)
	name := canonical(q.Question[0].Name)
	f.asked = append(f.asked, name)
	if _, tcp := w.RemoteAddr().(*net.TCPAddr); f.cut && !tcp {
		m.Truncated = true
		_ = w.WriteMsg(m)
		return
	}
	to, ok := f.zone[name]
	if !ok {
		m.Rcode = dns.RcodeNameError
	}
	if len(to) == 1 && to[0] == "servfail" {
		m.Rcode, to = dns.RcodeServerFailure, nil
	}
	for _, text := range to {
		head := dns.RR_Header{Name: q.Question[0].Name, Class: dns.ClassINET, Ttl: f.ttl}
		a, err := netip.ParseAddr(text)
		switch {
		case err != nil:
			head.Rrtype = dns.TypeCNAME
			m.Answer = append(m.Answer, &dns.CNAME{Hdr: head, Target: dns.Fqdn(text)})
		case a.Is4() && q.Question[0].Qtype == dns.TypeA:
			head.Rrtype = dns.TypeA
			m.Answer = append(m.Answer, &dns.A{Hdr: head, A: a.AsSlice()})
		case a.Is6() && q.Question[0].Qtype == dns.TypeAAAA:
			head.Rrtype = dns.TypeAAAA
			m.Answer = append(m.Answer, &dns.AAAA{Hdr: head, AAAA: a.AsSlice()})
		}
	}
	_ = w.WriteMsg(m)
}

const testPolicy = `version: 1
allow:
  - {name: registry.example.org, protocol: tcp, ports: 443}
  - {name: "*.cdn.example", protocol: tcp, ports: 443}
  - {name: rebind.example, protocol: tcp, ports: 443}
  - {name: git.corp.example, prefix: 10.0.0.0/8, protocol: tcp, ports: 22}
  - {name: in.corp.test, protocol: tcp, ports: 443}
`

func newFake(t testing.TB) *fake {
	t.Helper()
	p, err := policy.Parse("policy", []byte(testPolicy))
	if err != nil {
		t.Fatal(err)
	}
	return &fake{policy: p, ttl: 60, search: []string{"corp.test"}, leased: map[string][]netip.Addr{}, stored: map[netip.Addr]string{}, zone: map[string][]string{
		"registry.example.org": {"alias.cdn.example"},
		"alias.cdn.example":    {"203.0.113.7", "203.0.113.8", "2001:db8::7"},
		"git.corp.example":     {"10.1.2.3"},
		"rebind.example":       {"10.1.2.3", "169.254.169.254", "203.0.113.9", "::1"},
		"loop.cdn.example":     {"loop.cdn.example"},
		"six.cdn.example":      {"2001:db8::6"},
		"broken.cdn.example":   {"servfail"},
		"in.corp.test":         {"203.0.113.10"},
		"db.corp.test":         {"203.0.113.11"},
	}}
}

// listen takes one port for both protocols: of what is free for one, somebody else may have the other.
func listen(t testing.TB) (*net.UDPConn, net.Listener) {
	t.Helper()
	for range 20 {
		packets, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		if streams, err := net.Listen("tcp4", packets.LocalAddr().String()); err == nil {
			return packets, streams
		}
		packets.Close()
	}
	t.Fatal("no port is free for both")
	return nil, nil
}

// resolver starts the name server on loopback.
func (f *fake) resolver(t testing.TB, six bool) *Resolver {
	t.Helper()
	packets, streams := listen(t)
	for _, s := range []*dns.Server{{PacketConn: packets, Handler: f}, {Listener: streams, Handler: f}} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = s.ActivateAndServe()
		}()
		t.Cleanup(func() {
			packets.Close()
			streams.Close()
			<-done
		})
	}
	up := &Upstream{Config: func() Config { return Config{at("192.0.2.53")().Servers, f.search} }, Dial: func(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
		if to.String() != "192.0.2.53:53" {
			return nil, fmt.Errorf("dials %s", to)
		}
		return (&net.Dialer{}).DialContext(ctx, network, packets.LocalAddr().String())
	}}
	return New(Options{Pool: NewPool(f, nil), Up: up, Six: six, Host: f, Search: []string{"corp.test", "svc.cluster.local"}, Counts: new(Counts)})
}

// at are name servers.
func at(addrs ...string) func() Config {
	var c Config
	for _, a := range addrs {
		c.Servers = append(c.Servers, netip.MustParseAddr(a))
	}
	return func() Config { return c }
}

// answer asks, and tells the answer's code and what it holds.
func answer(t testing.TB, r *Resolver, name string, kind uint16) string {
	t.Helper()
	q := new(dns.Msg)
	q.SetQuestion(dns.Fqdn(name), kind)
	b, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	m := new(dns.Msg)
	if err := m.Unpack(r.Answer(t.Context(), b, true)); err != nil {
		t.Fatal(err)
	}
	if m.Id != q.Id || !m.Response || len(m.Question) != 1 || m.Question[0] != q.Question[0] {
		t.Errorf("not an answer to this question: %s", m)
	}
	words := []string{dns.RcodeToString[m.Rcode]}
	for _, rr := range m.Answer {
		switch rr := rr.(type) {
		case *dns.A:
			words = append(words, rr.A.String())
		case *dns.AAAA:
			words = append(words, rr.AAAA.String())
		case *dns.CNAME:
			words = append(words, rr.Target)
		}
	}
	return strings.Join(words, " ")
}

func TestAnswer(t *testing.T) { // B24, B25
	for _, c := range []struct {
		what, name string
		kind       uint16
		want       string
		asked      bool // a packet left for it
	}{
		{"another name stands", "evil.example", dns.TypeA, "NOERROR 198.18.0.1", false},
		{"capitals and the last dot are the same name", "EVIL.Example", dns.TypeA, "NOERROR 198.18.0.1", false},
		{"no IPv6 where there is IPv4", "evil.example", dns.TypeAAAA, "NOERROR", false},
		{"a name without a dot", "db", dns.TypeA, "NOERROR 198.18.0.1", false},
		{"HTTPS has no data", "evil.example", dns.TypeHTTPS, "NOERROR", false},
		{"SVCB has no data", "evil.example", dns.TypeSVCB, "NOERROR", false},
		{"nor has TXT", "data.evil.example", dns.TypeTXT, "NOERROR", false},
		{"allowed HTTPS has no data", "registry.example.org", dns.TypeHTTPS, "NOERROR", false},
		{"allowed, over a chain", "registry.example.org", dns.TypeA, "NOERROR alias.cdn.example. 203.0.113.7 203.0.113.8", true},
		{"allowed, IPv6", "registry.example.org", dns.TypeAAAA, "NOERROR alias.cdn.example. 2001:db8::7", true},
		{"allowed below", "alias.cdn.example", dns.TypeA, "NOERROR 203.0.113.7 203.0.113.8", true},
		{"not the top itself", "cdn.example", dns.TypeA, "NOERROR 198.18.0.1", false},
		{"allowed, IPv6 only", "six.cdn.example", dns.TypeA, "NOERROR", true},
		{"allowed and unknown", "none.cdn.example", dns.TypeA, "NXDOMAIN", true},
		{"a loop", "loop.cdn.example", dns.TypeA, "NOERROR", true},
		{"a server that fails", "broken.cdn.example", dns.TypeA, "SERVFAIL", true},
		{"private answers are left out", "rebind.example", dns.TypeA, "NOERROR 203.0.113.9", true},
		{"loopback too", "rebind.example", dns.TypeAAAA, "NOERROR", true},
		{"listed", "git.corp.example", dns.TypeA, "NOERROR 10.1.2.3", true},
		{"below a suffix nobody knows it", "evil.example.corp.test", dns.TypeA, "NXDOMAIN", false},
		{"below a suffix, allowed", "in.corp.test", dns.TypeA, "NOERROR 203.0.113.10", true},
		{"below a suffix of a cluster", "evil.example.svc.cluster.local", dns.TypeA, "NXDOMAIN", false},
		{"mDNS", "printer.local", dns.TypeA, "NXDOMAIN", false},
		{"reverse", "1.0.18.198.in-addr.arpa", dns.TypePTR, "NXDOMAIN", false},
		{"whether to use DoH", "use-application-dns.net", dns.TypeA, "NXDOMAIN", false},
		{"this machine", "localhost", dns.TypeA, "NOERROR 127.0.0.1", false},
		{"this machine, IPv6", "a.localhost", dns.TypeAAAA, "NOERROR ::1", false},
		{"B147: a name that stands for this machine elsewhere", "localhost.localdomain", dns.TypeA, "NXDOMAIN", false},
		{"B147: or for the one below", "Host.Docker.Internal.", dns.TypeA, "NXDOMAIN", false},
		{"B147: one without a dot, which a suffix would complete", "ip6-localhost", dns.TypeAAAA, "NXDOMAIN", false},
		{"B147: its neighbour", "ip6-loopback", dns.TypeA, "NXDOMAIN", false},
		{"B147: the suffix and it", "ip6-localhost.corp.test", dns.TypeA, "NXDOMAIN", false},
		{"B147: what reads as an address of this machine", "127.0.0.1", dns.TypeA, "NXDOMAIN", false},
		{"B147: or as another", "10.0.0.1.", dns.TypeA, "NXDOMAIN", false},
		{"B147: or so in short", "127.1", dns.TypeA, "NXDOMAIN", false},
		{"a name with digits at its end", "node7", dns.TypeA, "NOERROR 198.18.0.1", false},
		{"bytes that no host's name has", "a\\000b.evil.example", dns.TypeA, "NXDOMAIN", false},
		{"the root", ".", dns.TypeA, "NXDOMAIN", false},
		{"transfer", "registry.example.org", dns.TypeAXFR, "REFUSED", false},
		{"all types", "registry.example.org", dns.TypeANY, "REFUSED", false},
	} {
		t.Run(c.what, func(t *testing.T) {
			f := newFake(t)
			r := f.resolver(t, false)
			if got := answer(t, r, c.name, c.kind); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if (len(f.asked) > 0) != c.asked {
				t.Errorf("the name server was asked %v", f.asked)
			}
			if c.want == "NOERROR 203.0.113.9" && (len(f.refused) != 1 || !strings.HasPrefix(f.refused[0], "rebind.example ")) {
				t.Errorf("refused %v", f.refused)
			}
		})
	}
}

// Where the policy lists the name servers, a name is asked for as it is written: what a resolv.conf makes of it has a name of its own, which
// is judged.
func TestSuffixesB149(t *testing.T) {
	for name, want := range map[string]string{
		"db.corp.test":            "NOERROR 198.18.0.1",
		"evil.example.corp.test":  "NXDOMAIN", // no name without a dot was completed so
		"in.corp.test":            "NOERROR 203.0.113.10",
		"db.svc.cluster.local":    "NXDOMAIN", // mDNS
		"evil.example":            "NOERROR 198.18.0.1",
		"x.db.svc.cluster.local.": "NXDOMAIN",
	} {
		f := newFake(t)
		f.search = nil
		if got := answer(t, f.resolver(t, false), name, dns.TypeA); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	f := newFake(t)
	r := f.resolver(t, false)
	if a, err := r.Resolve(t.Context(), "db", false); err != nil || a.String() != "203.0.113.11" {
		t.Errorf("with a suffix: %v, %v", a, err)
	}
	f.search, f.asked = nil, nil
	if a, err := r.Resolve(t.Context(), "db", false); !errors.Is(err, ErrNoName) {
		t.Errorf("without: %v, %v", a, err)
	}
	if diff := cmp.Diff([]string{"db"}, f.asked); diff != "" {
		t.Error(diff)
	}
}

func TestSixOnly(t *testing.T) {
	f := newFake(t)
	r := f.resolver(t, true)
	for kind, want := range map[uint16]string{dns.TypeA: "NOERROR", dns.TypeAAAA: "NOERROR fd77:6569:7200::1"} {
		if got := answer(t, r, "evil.example", kind); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestLease(t *testing.T) { // B25
	for _, c := range []struct {
		ttl  uint32
		want time.Duration
	}{{0, minTTL}, {120, 2 * time.Minute}, {1 << 30, maxTTL}} {
		f := newFake(t)
		f.ttl = c.ttl
		r := f.resolver(t, false)
		before := time.Now()
		answer(t, r, "registry.example.org", dns.TypeA)
		want := []netip.Addr{netip.MustParseAddr("203.0.113.7"), netip.MustParseAddr("203.0.113.8")}
		if diff := cmp.Diff(want, f.leased["registry.example.org"], cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Error(diff)
		}
		if got := f.until.Sub(before).Round(time.Minute / 2); got != c.want+leaseFor {
			t.Errorf("a time to live of %d s leases for %v", c.ttl, got)
		}
		answer(t, r, "registry.example.org", dns.TypeA)
		if len(f.asked) != 2 { // the name and the one that it is an alias of, once
			t.Errorf("asked %v", f.asked)
		}
		r.Forget()
		f.full = true
		if got := answer(t, r, "registry.example.org", dns.TypeA); got != "SERVFAIL" {
			t.Errorf("what cannot be opened is answered: %s", got)
		}
	}
}

// What was asked before a policy changed is not answered with afterwards, also if it was under way.
func TestForget(t *testing.T) { // B25
	f := newFake(t)
	r := f.resolver(t, false)
	dial := r.opts.Up.Dial
	r.opts.Up.Dial = func(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
		r.Forget()
		return dial(ctx, network, to)
	}
	for range 2 {
		answer(t, r, "registry.example.org", dns.TypeA)
	}
	if len(f.asked) != 4 { // the name and the one that it is an alias of, twice
		t.Errorf("asked %v", f.asked)
	}
}

func TestRebinding(t *testing.T) { // B25
	f := newFake(t)
	r := f.resolver(t, false)
	f.set("evil.example", "203.0.113.66")
	if a, err := r.Resolve(t.Context(), "evil.example", false); err != nil || a.String() != "203.0.113.66" {
		t.Errorf("got %v, %v", a, err)
	}
	for _, to := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "198.18.0.7", "0.0.0.0", "224.0.0.251"} {
		f.set("evil.example", to)
		if a, err := r.Resolve(t.Context(), "evil.example", false); !errors.Is(err, ErrNotPublic) {
			t.Errorf("%s: got %v, %v", to, a, err)
		}
	}
	for _, to := range []string{"::1", "fd00::1", "fe80::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::"} {
		f.set("evil.example", to)
		if a, err := r.Resolve(t.Context(), "evil.example", true); !errors.Is(err, ErrNotPublic) && !errors.Is(err, ErrNoName) {
			t.Errorf("%s: got %v, %v", to, a, err)
		}
	}
	if a, err := r.Resolve(t.Context(), "db", false); err != nil || a.String() != "203.0.113.11" {
		t.Errorf("a name without a dot: got %v, %v", a, err)
	}
	if _, err := r.Resolve(t.Context(), "nobody.example", false); !errors.Is(err, ErrNoName) {
		t.Errorf("a name that does not exist: %v", err)
	}
}

func TestTruncatedUpstream(t *testing.T) {
	f := newFake(t)
	f.cut = true
	if got := answer(t, f.resolver(t, false), "in.corp.test", dns.TypeA); got != "NOERROR 203.0.113.10" {
		t.Errorf("got %s", got)
	}
}

func TestClean(t *testing.T) {
	f := newFake(t)
	f.clean = true
	f.zone["any.example"] = []string{"203.0.113.5"}
	r := f.resolver(t, false)
	if got := answer(t, r, "any.example", dns.TypeA); got != "NOERROR 203.0.113.5" {
		t.Errorf("got %s", got)
	}
	f.clean = false
	if got := answer(t, r, "any.example", dns.TypeA); got != "NOERROR 198.18.0.1" {
		t.Errorf("after a taint: got %s", got)
	}
}

func TestTaintedAfterClean(t *testing.T) { // B25
	f := newFake(t)
	f.clean = true
	r := f.resolver(t, false)
	if got := answer(t, r, "rebind.example", dns.TypeA); got != "NOERROR 10.1.2.3 169.254.169.254 203.0.113.9" {
		t.Errorf("while clean: got %s", got)
	}
	if len(f.leased) > 0 || len(f.refused) > 0 {
		t.Errorf("while clean: leased %v, refused %v", f.leased, f.refused)
	}
	f.clean = false
	if got := answer(t, r, "rebind.example", dns.TypeA); got != "NOERROR 203.0.113.9" {
		t.Errorf("after a taint: got %s", got)
	}
	if got := fmt.Sprint(f.leased); got != "map[rebind.example:[203.0.113.9]]" {
		t.Errorf("after a taint: leased %s", got)
	}
	f.clean = true
	if got := answer(t, r, "rebind.example", dns.TypeA); got != "NOERROR 10.1.2.3 169.254.169.254 203.0.113.9" {
		t.Errorf("clean again: got %s", got)
	}
}

func TestPool(t *testing.T) {
	f := newFake(t)
	p := NewPool(f, map[netip.Addr]string{netip.MustParseAddr("198.18.0.9"): "old.example"})
	seen := map[netip.Addr]string{}
	for i := range MaxNames - 1 {
		name := fmt.Sprintf("n%d.example", i)
		a, err := p.Address(name, false)
		if err != nil {
			t.Fatal(err)
		}
		if seen[a] != "" || a.String() == "198.18.0.9" || !Synthetic(a) {
			t.Fatalf("%s for %s and %s", a, name, seen[a])
		}
		seen[a] = name
		if again, _ := p.Address(name, false); again != a || f.stored[a] != name {
			t.Fatalf("%s is %s and %s", name, a, again)
		}
	}
	if _, err := p.Address("one.more.example", false); !errors.Is(err, ErrFull) {
		t.Errorf("no bound: %v", err)
	}
	if a, err := p.Address("old.example", false); err != nil || a.String() != "198.18.0.9" {
		t.Errorf("got %v, %v", a, err)
	}
	if name, ok := p.Name(netip.MustParseAddr("::ffff:198.18.0.9")); !ok || name != "old.example" {
		t.Errorf("got %q", name)
	}
}

func TestMalformed(t *testing.T) {
	f := newFake(t)
	r := f.resolver(t, false)
	query := func(change func(*dns.Msg)) []byte {
		q := new(dns.Msg)
		q.SetQuestion("evil.example.", dns.TypeA)
		change(q)
		b, err := q.Pack()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	good := query(func(*dns.Msg) {})
	for _, c := range []struct {
		what  string
		query []byte
		want  int // -1: nothing is said
	}{
		{"empty", nil, -1},
		{"short", good[:11], -1},
		{"an answer", query(func(m *dns.Msg) { m.Response = true }), -1},
		{"cut off", good[:20], dns.RcodeFormatError},
		{"truncated", query(func(m *dns.Msg) { m.Truncated = true }), dns.RcodeFormatError},
		{"no question", query(func(m *dns.Msg) { m.Question = nil }), dns.RcodeFormatError},
		{"two questions", query(func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) }), dns.RcodeFormatError},
		{"update", query(func(m *dns.Msg) { m.Opcode = dns.OpcodeUpdate }), dns.RcodeNotImplemented},
		{"another class", query(func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }), dns.RcodeRefused},
		{"a pointer to itself", append(append([]byte{}, good[:12]...), 0xc0, 12, 0, 1, 0, 1), dns.RcodeFormatError},
	} {
		b := r.Answer(t.Context(), c.query, true)
		if c.want < 0 {
			if b != nil {
				t.Errorf("%s: answered %x", c.what, b)
			}
			continue
		}
		m := new(dns.Msg)
		if err := m.Unpack(b); err != nil || m.Rcode != c.want || len(m.Answer) > 0 {
			t.Errorf("%s: %v %s", c.what, err, m)
		}
	}
}

func TestAnswerFits(t *testing.T) {
	f := newFake(t)
	chain := "long.cdn.example"
	for i := range maxChain {
		next := fmt.Sprintf("%s.%d.%s.cdn.example", strings.Repeat("a", 60), i, strings.Repeat("b", 60))
		f.zone[chain], chain = []string{next}, next
	}
	for i := range 40 {
		f.zone[chain] = append(f.zone[chain], fmt.Sprintf("203.0.113.%d", i+1))
	}
	r := f.resolver(t, false)
	q := new(dns.Msg)
	q.SetQuestion("long.cdn.example.", dns.TypeA)
	query, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	m := new(dns.Msg)
	b := r.Answer(t.Context(), query, true)
	if err := m.Unpack(b); err != nil || len(b) > plainUDP || !m.Truncated {
		t.Errorf("%d bytes by UDP: %v %s", len(b), err, m)
	}
	if err := m.Unpack(r.Answer(t.Context(), query, false)); err != nil || m.Truncated || len(m.Answer) != maxChain+maxAddrs {
		t.Errorf("by TCP: %v %s", err, m)
	}
}

func TestConfig(t *testing.T) {
	c := ReadConfig(strings.NewReader("# comment\nnameserver 192.0.2.1\nnameserver fe80::1%eth0\nnameserver 0.0.0.0\nnameserver x\nsearch A.Test. b.test\noptions ndots:5\n"))
	want := Config{Servers: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("fe80::1%eth0")}, Search: []string{"a.test", "b.test"}}
	if diff := cmp.Diff(want, c, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

// served asks over real sockets.
func TestServed(t *testing.T) {
	f := newFake(t)
	r := f.resolver(t, false)
	packets, streams := listen(t)
	var done sync.WaitGroup
	done.Go(func() { r.ServeUDP(t.Context(), packets) })
	done.Go(func() { r.ServeTCP(t.Context(), streams) })
	defer func() {
		packets.Close()
		streams.Close()
		done.Wait()
	}()
	for _, network := range []string{"udp", "tcp"} {
		for name, want := range map[string]string{"evil.example.": "198.18.0.1", "in.corp.test.": "203.0.113.10"} {
			q := new(dns.Msg)
			q.SetQuestion(name, dns.TypeA)
			m, _, err := (&dns.Client{Net: network, Timeout: time.Minute}).Exchange(q, packets.LocalAddr().String())
			if err != nil || len(m.Answer) != 1 || !strings.HasSuffix(m.Answer[0].String(), want) {
				t.Errorf("%s %s: %v %s", network, name, err, m)
			}
		}
	}
	conn, err := net.Dial("tcp", packets.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte{0xff, 0xff, 0}); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("a question of 65535 bytes is read: %d", n)
	}
}

func FuzzAnswer(f *testing.F) {
	q := new(dns.Msg)
	q.SetQuestion("evil.example.", dns.TypeA)
	q.SetEdns0(4096, true)
	b, err := q.Pack()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, true)
	f.Add(b[:13], false)
	fake := newFake(f)
	up := &Upstream{Config: at(), Dial: func(context.Context, string, netip.AddrPort) (net.Conn, error) {
		return nil, errors.New("nobody is asked")
	}}
	r := New(Options{Pool: NewPool(fake, nil), Up: up, Host: fake, Search: []string{"corp.test"}, Counts: new(Counts)})
	f.Fuzz(func(t *testing.T, query []byte, udp bool) {
		r.quick(query)
		answer := r.Answer(context.Background(), query, udp)
		if answer == nil {
			return
		}
		m := new(dns.Msg)
		if err := m.Unpack(answer); err != nil || !m.Response || udp && len(answer) > udpAnswer {
			t.Errorf("%x: %v: %d bytes", answer, err, len(answer))
		}
		for _, rr := range m.Answer {
			if a, ok := rr.(*dns.A); ok {
				addr, _ := netip.AddrFromSlice(a.A)
				if addr = addr.Unmap(); !addr.IsLoopback() && !Synthetic(addr) {
					t.Errorf("%x leads to %s", query, addr)
				}
			}
		}
	})
}

func BenchmarkStand(b *testing.B) {
	f := newFake(b)
	r := New(Options{Pool: NewPool(f, nil), Up: &Upstream{Config: at()}, Host: f, Counts: new(Counts)})
	q := new(dns.Msg)
	q.SetQuestion("evil.example.", dns.TypeA)
	query, err := q.Pack()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if r.Answer(context.Background(), query, true) == nil {
			b.Fatal("no answer")
		}
	}
}

// BenchmarkQueries asks over UDP as programs do, one after the other: queries a second, and ms each.
func BenchmarkQueries(b *testing.B) {
	f := newFake(b)
	r := f.resolver(b, false)
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.ServeUDP(context.Background(), conn)
	}()
	defer func() {
		conn.Close()
		<-done
	}()
	for what, name := range map[string]string{"unknown": "evil.example.", "allowed": "registry.example.org."} {
		b.Run(what, func(b *testing.B) {
			q := new(dns.Msg)
			q.SetQuestion(name, dns.TypeA)
			query, err := q.Pack()
			if err != nil {
				b.Fatal(err)
			}
			c, err := net.Dial("udp4", conn.LocalAddr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			buf := make([]byte, 2048)
			for b.Loop() {
				if _, err := c.Write(query); err != nil {
					b.Fatal(err)
				}
				if _, err := c.Read(buf); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "queries/s")
			b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "ms/query")
		})
	}
}
