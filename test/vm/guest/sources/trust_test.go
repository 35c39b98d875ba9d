//go:build vmguest

package sources

import (
	"encoding/binary"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"weir/internal/event"
	"weir/test/vm/guest/rig"
)

const trustedHost = "10.77.1.2" // another address of the world

const trustPolicy = `
hold: false
approver: none
allow:
  - {prefix: ` + rig.World4 + `, ports: 6500}
taint:
  trusted_networks: [` + trustedHost + `, "fd00::/16"]
  reply_budget: 8KiB
`

// TestDestinations has clean sessions reach what is trusted and what is not.
func TestDestinations(t *testing.T) {
	made(t)
	f := &fixture{world: rig.NewOutside(t)}
	f.sensor = rig.StartSensor(t, trustPolicy)
	for i, test := range []struct {
		name string
		run  func(*fixture, *testing.T, *rig.Session)
	}{
		{"trusted", (*fixture).trusted},
		{"tcp", (*fixture).untrustedTCP},
		{"tcp6", (*fixture).untrustedTCP6},
		{"udp", (*fixture).untrustedUDP},
		{"budget", (*fixture).budget},
		{"B94_several_at_once", (*fixture).atOnce},
		{"secret_ends_it", (*fixture).secretEnds},
		{"clearing_ends_it", (*fixture).clearingEnds},
		{"allowed_under_secret", (*fixture).allowedUnderSecret},
		{"arrivals", (*fixture).arrivals},
		{"B122_other_families", (*fixture).otherFamilies},
		{"B129_error_queue", (*fixture).errorQueue},
		{"reload", (*fixture).reload}, // the last: another policy
	} {
		t.Run("G2_"+test.name, func(t *testing.T) {
			test.run(f, t, f.sensor.Guard(t, fmt.Sprintf("trust%d", i)))
		})
	}
}

// at listens on a port of its own and returns it with a host.
func (f *fixture) at(t *testing.T, network, host string) (string, int) {
	t.Helper()
	port := f.world.Port()
	f.world.World.Listen(t, network, fmt.Sprintf("[::]:%d", port))
	return net.JoinHostPort(host, strconv.Itoa(port)), port
}

func (f *fixture) corrupt(t *testing.T, s *rig.Session) bool {
	t.Helper()
	for _, c := range f.sensor.Containers(t) {
		if c.Name == s.Name {
			return slices.Contains(c.Taint, "corruption")
		}
	}
	t.Fatalf("no session %s", s.Name)
	return false
}

// toldOf checks that the taint is told of, with the command that sent (F11).
func (f *fixture) toldOf(t *testing.T, s *rig.Session, command string) {
	t.Helper()
	e := f.sensor.Event(t, func(e event.Event) bool {
		return e.Change != nil && e.Change.Source == "destination" && e.Container.Name == s.Name && slices.Contains(e.Change.Set, "corruption") && e.Change.Why != ""
	})
	if e.Process == nil || len(e.Process.Argv) == 0 || !strings.HasSuffix(e.Process.Argv[0], command) {
		t.Errorf("F11: %s sent, and the taint names %+v", command, e.Process)
	}
	told := f.sensor.Must(t, "why", s.Name)
	for _, want := range []string{"\n  corruption ", "\n  +corruption ", "is not trusted", ", command "} {
		if !strings.Contains(told, want) {
			t.Errorf("F11: no %q in what weir why tells: %s", want, told)
		}
	}
}

// stopped checks that nothing new gets out of a session.
func (f *fixture) stopped(t *testing.T, s *rig.Session) {
	t.Helper()
	for _, attempt := range []string{"tcp", "udp-sendto"} {
		to, port := f.at(t, attempt[:3], rig.World4)
		text := "stopped." + attempt + "." + s.Name + ".end"
		mark := f.world.Mark(t)
		s.Run(t, bin+"egress", attempt, "-to", to, "-say", text)
		f.world.Nothing(t, mark, text, port)
	}
}

func (f *fixture) trusted(t *testing.T, s *rig.Session) {
	for _, attempt := range []string{"tcp", "udp-sendto", "udp-connect"} {
		to, _ := f.at(t, attempt[:3], trustedHost)
		text := "trusted." + attempt + ".end"
		r := s.Run(t, bin+"egress", attempt, "-to", to, "-say", text)
		f.arrives(t, text, r.String())
	}
	if f.corrupt(t, s) {
		t.Error("a trusted destination taints")
	}
}

func (f *fixture) untrustedTCP(t *testing.T, s *rig.Session)  { f.untrusted(t, s, rig.World4) }
func (f *fixture) untrustedTCP6(t *testing.T, s *rig.Session) { f.untrusted(t, s, rig.World6) }

// untrusted: once connected, nothing else gets out; the socket that caused it goes on.
func (f *fixture) untrusted(t *testing.T, s *rig.Session, host string) {
	to, _ := f.at(t, "tcp", host)
	text := "goes.on." + s.Name + ".end"
	p := s.Start(t, bin+"egress", "tcp", "-to", to, "-say", text, "-wait", "connect")
	if p.WaitLine("opened", rig.Late) == "" {
		t.Fatalf("not connected: %s", p.Wait(t))
	}
	f.stopped(t, s)
	f.toldOf(t, s, "egress")
	if !f.corrupt(t, s) {
		t.Error("an untrusted destination does not taint")
	}
	p.Input(t, "\n")
	r := p.Wait(t)
	f.arrives(t, text, r.String())
}

func (f *fixture) untrustedUDP(t *testing.T, s *rig.Session) {
	to, _ := f.at(t, "udp", rig.World4)
	text := "first.datagram.end"
	r := s.Run(t, bin+"egress", "udp-sendto", "-to", to, "-say", text)
	f.arrives(t, text, r.String())
	f.stopped(t, s)
	f.toldOf(t, s, "egress")
}

// budget: what the socket may still send is little.
func (f *fixture) budget(t *testing.T, s *rig.Session) {
	to, port := f.at(t, "tcp", rig.World4)
	script := fmt.Sprintf("exec 3>/dev/tcp/%s/%d; echo first.of.budget.end >&3; sleep 0.3; head -c 30000 /dev/zero >&3; echo last.of.budget.end >&3; sleep 1", rig.World4, port)
	r := s.Run(t, "timeout", "60", "bash", "-c", script)
	f.arrives(t, "first.of.budget.end", r.String())
	f.world.Nothing(t, f.world.Mark(t), "last.of.budget.end", 0)
	_ = to
}

// atOnce: of sockets that send to untrusted hosts at the same moment, only one may go on (B94).
func (f *fixture) atOnce(t *testing.T, s *rig.Session) {
	rounds := rig.Rounds(24) // a quarter of them showed it
	slows(t, "egre", "htab_map_update_elem")
	to, port := f.at(t, "udp", rig.World4)
	text := fmt.Sprintf("at.once.%d", port)
	p := s.Start(t, bin+"egress", "udp-race", "-to", to, "-say", text, "-n", fmt.Sprint(rounds))
	for i := range rounds {
		p.Input(t, "\n")
		if p.WaitLine(fmt.Sprintf("round %d ", i), rig.Late) == "" {
			t.Fatalf("round %d: %s", i, p.Wait(t))
		}
		rig.Eventually(t, "the taint is known", func() bool { return f.corrupt(t, s) })
		f.sensor.Untaint(t, s.Name, "corruption")
	}
	p.Close(t)
	p.Wait(t)
	f.world.Flush(t)
	both := 0
	for i := range rounds {
		switch n := f.world.World.Count(fmt.Sprintf("%s.%d.0.second", text, i)) + f.world.World.Count(fmt.Sprintf("%s.%d.1.second", text, i)); {
		case n == 0:
			t.Errorf("round %d: nothing arrives", i)
		case n > 2: // each is heard as a packet, and by who listens
			both++
		}
	}
	if both > 0 {
		t.Errorf("in %d of %d rounds two sockets went on", both, rounds)
	}
}

// slows has a function of the kernel take long wherever a process whose name begins so calls it, also in a program: where processors take
// turns, one comes in between.
func slows(t *testing.T, name, function string) {
	t.Helper()
	const turns = 8000
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.Kprobe, License: "GPL", Instructions: asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R10),
		asm.Add.Imm(asm.R1, -16),
		asm.Mov.Imm(asm.R2, 16),
		asm.FnGetCurrentComm.Call(),
		asm.LoadMem(asm.R1, asm.R10, -16, asm.Word),
		asm.JNE.Imm(asm.R1, int32(binary.NativeEndian.Uint32([]byte(name))), "end"),
		asm.Mov.Imm(asm.R6, turns),
		asm.FnKtimeGetNs.Call().WithSymbol("again"),
		asm.Sub.Imm(asm.R6, 1),
		asm.JNE.Imm(asm.R6, 0, "again"),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("end"),
		asm.Return(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	slow, err := link.Kprobe(function, prog, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slow.Close() })
}

// secretEnds: the socket was to receive what nobody trusts, not to send what is secret.
func (f *fixture) secretEnds(t *testing.T, s *rig.Session) {
	to, _ := f.at(t, "tcp", rig.World4)
	text := "not.after.a.secret.end"
	p := s.Start(t, bin+"egress", "tcp", "-to", to, "-say", text, "-wait", "connect")
	if p.WaitLine("opened", rig.Late) == "" {
		t.Fatalf("not connected: %s", p.Wait(t))
	}
	f.toldOf(t, s, "egress")
	f.sensor.Taint(t, s.Name, "secret")
	mark := f.world.Mark(t)
	p.Input(t, "\n")
	p.Wait(t)
	f.world.Nothing(t, mark, text, 0)
}

// clearingEnds: taint that was cleared and comes again is new to the socket that caused it, also to a daemon that began after that.
func (f *fixture) clearingEnds(t *testing.T, s *rig.Session) {
	stays, before, between := s, f.sensor.Guard(t, "trust-before"), f.sensor.Guard(t, "trust-between")
	replies := map[*rig.Session]*rig.Proc{}
	begin := func(s *rig.Session) {
		to, _ := f.at(t, "tcp", rig.World4)
		p := s.Start(t, bin+"egress", "tcp", "-to", to, "-say", "replies."+s.Name+".end", "-wait", "connect")
		if p.WaitLine("opened", rig.Late) == "" {
			t.Fatalf("not connected: %s", p.Wait(t))
		}
		replies[s] = p
	}
	begin(stays)
	begin(before)
	f.toldOf(t, before, "egress")
	f.sensor.Stop(t)
	begin(between)
	f.sensor.Restart(t)
	mark := f.world.Mark(t)
	for _, s := range []*rig.Session{before, between} {
		rig.Eventually(t, "the taint of "+s.Name+" is known", func() bool { return f.corrupt(t, s) })
		f.sensor.Untaint(t, s.Name, "corruption")
		f.sensor.Taint(t, s.Name, "corruption")
		replies[s].Input(t, "\n")
		replies[s].Wait(t)
		f.world.Nothing(t, mark, "replies."+s.Name+".end", 0)
	}
	replies[stays].Input(t, "\n")
	r := replies[stays].Wait(t)
	f.arrives(t, "replies."+stays.Name+".end", r.String())
}

// allowedUnderSecret: what the policy allows answers too.
func (f *fixture) allowedUnderSecret(t *testing.T, s *rig.Session) {
	f.sensor.Taint(t, s.Name, "secret")
	f.world.World.Listen(t, "tcp", "[::]:6500")
	r := s.Run(t, bin+"egress", "tcp", "-to", rig.World4+":6500", "-say", "allowed.end")
	f.arrives(t, "allowed.end", r.String())
	f.toldOf(t, s, "egress")
	f.stopped(t, s)
}

// otherFamilies: what comes by a socket of another family, which no check sees, does not come at all (B122).
func (f *fixture) otherFamilies(t *testing.T, s *rig.Session) {
	for _, attempt := range []string{"packet", "packet-dgram"} {
		to, port := f.at(t, "udp", rig.World4)
		text := "unseen." + attempt + ".end"
		mark := f.world.Mark(t)
		if r := s.Run(t, bin+"egress", attempt, "-dev", rig.Dev, "-mac", f.world.MAC, "-to", to, "-say", text); r.Exit != 3 {
			t.Error(r)
		}
		f.world.Nothing(t, mark, text, port)
	}
	const open = `
import socket, sys
for family, kind in ((socket.AF_VSOCK, socket.SOCK_STREAM), (socket.AF_PACKET, socket.SOCK_RAW), (socket.AF_ALG, socket.SOCK_SEQPACKET), (socket.AF_NETLINK, socket.SOCK_RAW)):
    try:
        socket.socket(family, kind)
        print(family.name)
    except PermissionError:
        pass
`
	if r := s.Run(t, "python3", "-c", open); r.Stdout != "AF_ALG\nAF_NETLINK\n" {
		t.Error(r)
	}
	if f.corrupt(t, s) {
		t.Error("what is refused taints")
	}
}

// arrivals: nobody untrusted brings anything to a clean session, which stays so.
func (f *fixture) arrivals(t *testing.T, s *rig.Session) {
	for _, network := range []string{"tcp", "udp"} {
		port, text := f.world.Port(), "served."+network+".end"
		attempt := "serve"
		if network == "udp" {
			attempt = "serve-udp"
		}
		at := net.JoinHostPort(rig.Own, strconv.Itoa(port))
		p := s.Start(t, bin+"egress", attempt, "-after", "3s", "-to", at, "-say", text)
		if p.WaitLine("opened", rig.Late) == "" {
			t.Fatalf("does not listen: %s", p.Wait(t))
		}
		mark := f.world.Mark(t)
		f.world.World.Dial(t, network, at)
		p.Input(t, "\n")
		p.Wait(t)
		f.world.Nothing(t, mark, text, 0)
	}
	if f.corrupt(t, s) {
		t.Error("it is tainted by what never came in")
	}
}

// errorQueue: an untrusted host says that what went to a trusted one did not arrive, and quotes what was never sent. Who reads that from
// the socket's queue of errors is tainted.
func (f *fixture) errorQueue(t *testing.T, s *rig.Session) {
	const asks = `
import select, socket, sys
host, port, own, queue = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), socket.MSG_ERRQUEUE
s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(*(socket.IPPROTO_IPV6, 25) if ":" in host else (socket.IPPROTO_IP, 11), 1)
s.bind(("", own))
s.connect((host, port))
s.send(b"question")
print("asked", flush=True)
for line in sys.stdin:
    errors = select.poll()
    errors.register(s, 0)
    errors.poll()
    print("read", s.recv(99, queue), flush=True)
`
	const says = `
import socket, struct, sys
host, own, untrusted, port, bound, text = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), sys.argv[6].encode()
six = ":" in host
family, kind = (socket.AF_INET6, socket.IPPROTO_ICMPV6) if six else (socket.AF_INET, socket.IPPROTO_ICMP)
ends = socket.inet_pton(family, own) + socket.inet_pton(family, host)
udp = struct.pack("!HHHH", bound, port, 8 + len(text), 0) + text
ip = struct.pack("!IHBB", 6 << 28, len(udp), 17, 64) if six else struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0)
icmp = struct.pack("!BBHI", *(1, 3) if six else (3, 1), 0, 0) + ip + ends + udp
if not six:
    words = struct.unpack("!%dH" % ((len(icmp) + 1) // 2), icmp + b"\0" * (len(icmp) % 2))
    total = sum(words)
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    icmp = icmp[:2] + struct.pack("!H", ~total & 0xffff) + icmp[4:]
s = socket.socket(family, socket.SOCK_RAW, kind)
s.bind((untrusted, 0))
s.sendto(icmp, (own, 0))
`
	for i, v := range []struct{ host, own, untrusted string }{{trustedHost, "10.77.1.1", rig.World4}, {"fd00::9", rig.Own6, rig.World6}} {
		if i > 0 {
			f.sensor.Untaint(t, s.Name, "corruption")
		}
		at, bound := f.world.Port(), f.world.Port()
		host := v.host
		if i > 0 {
			rig.Must(t, "ip -n world addr add fd00::9/128 dev lo; ip route replace fd00::9 via "+rig.World6)
		}
		f.world.World.Listen(t, "udp", fmt.Sprintf("[::]:%d", at))
		text := fmt.Sprintf("text.%d.quoted.end", at)
		p := s.Start(t, "python3", "-c", asks, host, strconv.Itoa(at), strconv.Itoa(bound))
		if p.WaitLine("asked", rig.Late) == "" {
			t.Fatal(p.Wait(t))
		}
		if f.corrupt(t, s) {
			t.Error("what a trusted host was asked taints")
		}
		r := exec.Command("ip", "netns", "exec", "world", "python3", "-c", says, host, v.own, v.untrusted, strconv.Itoa(at), strconv.Itoa(bound), text)
		if out, err := r.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		p.Input(t, "\n")
		if line := p.WaitLine("read", rig.Late); !strings.Contains(line, text) {
			t.Errorf("it does not read it: %s %s", line, p.Wait(t))
		}
		rig.Eventually(t, "what "+v.untrusted+" quotes taints", func() bool { return f.corrupt(t, s) })
		p.Close(t)
		p.Wait(t)
	}
}

// reload: the list is the policy's from one moment to the next.
func (f *fixture) reload(t *testing.T, s *rig.Session) {
	f.sensor.Policy(t, "hold: false\napprover: none\ntaint:\n  trusted_networks: ["+rig.World4+"]\n  secret_files: [/srv/late/]\n")
	to, _ := f.at(t, "tcp", rig.World4)
	r := s.Run(t, bin+"egress", "tcp", "-to", to, "-say", "trusted.now.end")
	f.arrives(t, "trusted.now.end", r.String())
	if f.corrupt(t, s) {
		t.Error("what is trusted now taints")
	}
	write(t, "/srv/late/a", "text.of.late.end")
	for end := time.Now().Add(rig.Late); ; time.Sleep(500 * time.Millisecond) { // it was made after the policy: looked up in a while
		s.Run(t, "cat", "/srv/late/a")
		if f.tainted(t, s.Name) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a directory that was made later is not found")
		}
	}
	f.stopped(t, s)
}
