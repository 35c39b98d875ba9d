//go:build vmguest

// Package names asks for names out of tainted containers, with real programs, and counts what leaves.
package names

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"

	"weir/internal/gate"
	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) { inside.Main(m) }

// The world has public addresses here: a name server, two hosts, and one that is private.
const (
	own     = "203.0.113.1"
	server  = "203.0.113.53"
	host    = "203.0.113.80"
	other   = "203.0.113.81"
	private = rig.World4
	host6   = "2001:db8::80"
	server6 = "2001:db8::53"
)

const policyText = `guard:
  parents: [` + parent + `]
taint:
  secret_files: [` + secretFile + `]
allow:
  - name: allowed.example
    protocol: tcp
    ports: 80
  - name: "*.allowed.example"
    protocol: tcp
    ports: 80
  - name: listed.example
    prefix: 10.77.0.0/24
    protocol: tcp
    ports: 80
`

type fixture struct {
	world   *rig.Outside
	sensor  *rig.Sensor
	session *rig.Session // tainted; what most tests run their programs in
	zone    *zone
	unheld  int // commands that should have been
}

// zone is what the world's name server knows, and what it was asked.
type zone struct {
	mu    sync.Mutex
	names map[string][]string // a name's addresses, or another name
	ttl   uint32
	asked []string
}

func (z *zone) set(name string, to ...string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.names[name] = to
}

// times says how often a name, or one below it, was asked for.
func (z *zone) times(name string) int {
	z.mu.Lock()
	defer z.mu.Unlock()
	n := 0
	for _, asked := range z.asked {
		if asked == name || strings.HasSuffix(asked, "."+name) {
			n++
		}
	}
	return n
}

// ServeDNS implements dns.Handler.
func (z *zone) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	z.mu.Lock()
	defer z.mu.Unlock()
	m := new(dns.Msg)
	m.SetReply(q)
	name := strings.TrimSuffix(strings.ToLower(q.Question[0].Name), ".")
	z.asked = append(z.asked, name)
	to, ok := z.names[name]
	if !ok {
		m.Rcode = dns.RcodeNameError
	}
	for _, text := range to {
		head := dns.RR_Header{Name: q.Question[0].Name, Class: dns.ClassINET, Ttl: z.ttl}
		a, err := netip.ParseAddr(text)
		switch {
		case err != nil:
			head.Rrtype = dns.TypeCNAME
			m.Answer = append(m.Answer, &dns.CNAME{Hdr: head, Target: text + "."})
		case a.Is4() && q.Question[0].Qtype == dns.TypeA:
			head.Rrtype = dns.TypeA
			m.Answer = append(m.Answer, &dns.A{Hdr: head, A: a.AsSlice()})
		case a.Is6() && q.Question[0].Qtype == dns.TypeAAAA:
			head.Rrtype = dns.TypeAAAA
			m.Answer = append(m.Answer, &dns.AAAA{Hdr: head, AAAA: a.AsSlice()})
		}
	}
	_ = w.WriteMsg(m) // who asked may have gone
}

func start(t *testing.T) *fixture {
	f := &fixture{world: rig.NewOutside(t), zone: &zone{names: map[string][]string{}, ttl: 60}}
	far := strings.Fields(rig.Must(t, "ip -n world -o link show type veth"))[1]
	far, _, _ = strings.Cut(far, "@")
	t.Cleanup(func() { rig.Must(t, "for n in box box6; do ip netns del $n 2>/dev/null || true; done") })
	for _, c := range []string{
		"ip addr add " + own + "/24 dev " + rig.Dev,
		"ip addr add 2001:db8::1/64 dev " + rig.Dev + " nodad",
		"printf 'nameserver " + server + "\nsearch corp.test\n' > /etc/resolv.conf",
		"ip -n world addr add " + server + "/24 dev " + far,
		"ip -n world addr add " + host + "/24 dev " + far,
		"ip -n world addr add " + other + "/24 dev " + far,
		"ip -n world addr add " + server6 + "/64 dev " + far + " nodad",
		"ip -n world addr add " + host6 + "/64 dev " + far + " nodad",
		// two more namespaces, each with a link to the world; the second has no IPv4
		"ip netns add box && ip -n box link set lo up && ip link add bx0 netns box type veth peer name bx1 netns world",
		"ip -n box addr add 198.51.100.1/24 dev bx0 && ip -n box link set bx0 up && ip -n box route add default via 198.51.100.2",
		"ip -n world addr add 198.51.100.2/24 dev bx1 && ip -n world link set bx1 up",
		"ip netns add box6 && ip -n box6 link set lo up && ip link add by0 netns box6 type veth peer name by1 netns world",
		"ip -n box6 addr add 2001:db8:6::1/64 dev by0 nodad && ip -n box6 link set by0 up && ip -n box6 route add default via 2001:db8:6::2",
		"ip -n world addr add 2001:db8:6::2/64 dev by1 nodad && ip -n world link set by1 up",
		"mkdir -p /etc/netns/box6 && echo 'nameserver " + server6 + "' > /etc/netns/box6/resolv.conf",
	} {
		rig.Must(t, c)
	}
	f.serveNames(t, server)
	f.serveNames(t, server6)
	for _, at := range []string{host, other, private, host6} {
		f.serveWeb(t, at)
	}
	f.serveEcho(t)
	return f
}

func (f *fixture) serveNames(t *testing.T, at string) {
	t.Helper()
	var packets net.PacketConn
	var streams net.Listener
	err := rig.Within("world", func() (err error) {
		if packets, err = net.ListenPacket("udp", net.JoinHostPort(at, "53")); err == nil {
			streams, err = net.Listen("tcp", net.JoinHostPort(at, "53"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*dns.Server{{PacketConn: packets, Handler: f.zone}, {Listener: streams, Handler: f.zone}} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = s.ActivateAndServe() // ends when it is shut down
		}()
		t.Cleanup(func() {
			packets.Close()
			streams.Close()
			<-done
		})
	}
}

// serveWeb answers with the address that was reached and the host that was asked for.
func (f *fixture) serveWeb(t *testing.T, at string) {
	t.Helper()
	var l net.Listener
	if err := rig.Within("world", func() (err error) { l, err = net.Listen("tcp", net.JoinHostPort(at, "80")); return err }); err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			fmt.Fprintf(w, "reached %s as %s", at, r.Host)
		}
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // ends when it is closed
	}()
	t.Cleanup(func() {
		_ = s.Close()
		<-done
	})
}

// serveEcho sends back what comes by UDP.
func (f *fixture) serveEcho(t *testing.T) {
	t.Helper()
	var conn net.PacketConn
	if err := rig.Within("world", func() (err error) { conn, err = net.ListenPacket("udp", host+":7777"); return err }); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(buf[:n], from) // who asked may have gone
		}
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
}

func (f *fixture) guard(t *testing.T, args ...string) *rig.Session {
	t.Helper()
	return f.sensor.Guard(t, fmt.Sprintf("n%d", f.world.Port()), args...)
}

// asked waits for the question about a name.
func (f *fixture) asked(t *testing.T, name string) gate.Question {
	t.Helper()
	return f.sensor.Asked(t, func(q gate.Question) bool { return q.Destination.Name == name })
}

// approved runs a command in the session and approves what it is asked about. Who was not held, since the sensor could not beat for a while,
// tries again, with that approval.
func (f *fixture) approved(t *testing.T, name string, argv ...string) rig.Result {
	t.Helper()
	p := f.session.Start(t, argv...)
	p.Close(t)
	q := f.asked(t, name)
	if q.Held {
		f.sensor.Approve(t, q.ID)
		return p.Wait(t)
	}
	if f.unheld++; f.unheld > 2 {
		t.Errorf("%d commands were not held", f.unheld)
	}
	p.Wait(t)
	f.sensor.Approve(t, q.ID)
	return f.session.Run(t, argv...)
}

// silent fails t if anything for port 53, or the text, has left since the mark.
func (f *fixture) silent(t *testing.T, mark rig.Marks, text string) {
	t.Helper()
	if n := f.world.Packets(t, mark, 53, 54); n != 0 {
		t.Errorf("%d packets for port 53 have left", n)
	}
	f.world.Nothing(t, mark, text, 0)
	if n := f.zone.times(text); n != 0 {
		t.Errorf("the name server was asked %d times for %s", n, text)
	}
}

func want(t *testing.T, r rig.Result, exit int, out string) {
	t.Helper()
	if r.Exit != exit || !strings.Contains(r.Stdout+r.Stderr, out) {
		t.Errorf("want exit %d and %q, got %s", exit, out, r)
	}
}
