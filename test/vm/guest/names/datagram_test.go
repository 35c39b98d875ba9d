//go:build vmguest

package names

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"weir/test/vm/guest/rig"
)

// datagrams does as its lines say, on sockets that are not connected: asks the name server for a name as musl does, and gives the
// address; or sends to an address, and gives who answers.
const datagrams = `
import socket, struct, sys
print("ready", flush=True)
for line in sys.stdin:
    n, what, text = line.split()
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(60)
    try:
        if what == "ask":
            q = struct.pack(">HHHHHH", 7, 256, 1, 0, 0, 0)
            for label in text.split("."):
                q += bytes([len(label)]) + label.encode()
            s.sendto(q + b"\0" + struct.pack(">HH", 1, 1), (sys.argv[1], 53))
            a, who = s.recvfrom(4096)
            print("said", n, ".".join(str(b) for b in a[-4:]), "from", who[0], flush=True)
        else:
            s.sendto(b"echo", (text, 7777))
            a, who = s.recvfrom(10)
            print("said", n, a, "from", who[0], flush=True)
    except OSError as e:
        print("said", n, e, flush=True)
`

// led says whether the programs that lead such datagrams are attached to a session. While they are, every datagram of the host pays.
func led(t *testing.T, s *rig.Session) bool {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Stat(s.Cgroup, &st); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"weir_name_send4", "weir_name_send6"} {
		if _, err := os.Stat(fmt.Sprintf("%s%s-%d", links, program, st.Ino)); err != nil {
			return false
		}
	}
	return true
}

// alone attaches a program to a cgroup, as it was done before links, that lets no other be attached.
func alone(t *testing.T, cgroup string) {
	t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.CGroupSockAddr, AttachType: ebpf.AttachCGroupUDP4Sendmsg, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	dir, err := os.Open(cgroup)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	at := link.RawAttachProgramOptions{Target: int(dir.Fd()), Program: p, Attach: ebpf.AttachCGroupUDP4Sendmsg}
	if err := link.RawAttachProgram(at); err != nil {
		t.Fatal(err)
	}
}

// datagrams: they are attached with the first question that needs them, and then before the container is let send to addresses that
// stand for names without being asked about it: when its taint is lifted, and when it is only watched.
func (f *fixture) datagrams(t *testing.T) {
	n := 0
	do := func(p *rig.Proc, what, text, want string) {
		t.Helper()
		n++
		p.Input(t, fmt.Sprintf("%d %s %s\n", n, what, text))
		if got := p.WaitLine(fmt.Sprintf("said %d ", n), rig.Late); got == "" || !strings.Contains(got, want) {
			t.Errorf("%s %s: %q, want %q", what, text, got, want)
		}
	}
	begin := func(t *testing.T) (*rig.Session, *rig.Proc) {
		s := f.guard(t, "--taint", "corruption")
		p := s.Start(t, "python3", "-c", datagrams, server)
		if p.WaitLine("ready", rig.Late) == "" {
			t.Fatal(p.Wait(t))
		}
		return s, p
	}
	t.Run("asked", func(t *testing.T) {
		s, p := begin(t)
		mark := f.world.Mark(t)
		want(t, s.Run(t, "getent", "ahosts", "one.datagram.evil.example"), 0, "198.18.")
		if led(t, s) {
			t.Error("a question on a connected socket needs no more")
		}
		do(p, "ask", "two.datagram.evil.example", " 198.18.")
		if !led(t, s) {
			t.Error("a question that was led needs the programs")
		}
		f.silent(t, mark, "evil.example")
	})
	t.Run("not_attached", func(t *testing.T) { // what cannot be led is refused, and not asked about for ever
		s, p := begin(t)
		alone(t, s.Cgroup)
		do(p, "ask", "three.datagram.evil.example", "Operation not permitted")
		if led(t, s) {
			t.Error("somebody else's program lets no other be attached, and it is")
		}
	})
	for name, open := range map[string]func(t *testing.T, s *rig.Session){
		"untainted": func(t *testing.T, s *rig.Session) { f.sensor.Untaint(t, s.Name, "corruption") },
		"watched":   func(t *testing.T, s *rig.Session) { f.sensor.Must(t, "mode", "observe", "--why", "test") },
	} {
		t.Run(name, func(t *testing.T) {
			defer f.sensor.Must(t, "mode", "enforce", "--why", "test")
			known := name + ".datagram.example"
			f.zone.set(known, host)
			s, p := begin(t)
			r := s.Run(t, "getent", "ahosts", known)
			want(t, r, 0, "198.18.")
			address := strings.Fields(r.Stdout)[0]
			if led(t, s) {
				t.Error("it is led before it is let send")
			}
			open(t, s)
			if !led(t, s) {
				t.Error("it may send, and is not led")
			}
			do(p, "send", address, "") // to where the name leads, if that is known by then, or nowhere
			if name == "untainted" {
				rig.Eventually(t, "the address leads to where the name does", func() bool { return leads(t, address) })
				do(p, "send", address, "b'echo' from "+address)
			}
		})
	}
}
