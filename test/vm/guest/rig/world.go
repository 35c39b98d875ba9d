//go:build vmguest

package rig

import (
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/test/vm/wire"
)

// The addresses of the link to the world.
const (
	Own          = "10.77.0.1"
	Own6         = "fd77::1"
	World4       = "10.77.0.2"
	World6       = "fd77::2"
	Open4        = "10.77.1.2" // the world's too, for policies that allow it
	Open6        = "fd77::3"
	Away4        = "10.79.0.2" // allowed as well; the way there is another link, but the world has them, too
	Away6        = "fd79::2"
	Group4       = "239.79.0.2" // groups, allowed as well, that are on that other link, too
	Group6       = "ff18::79"
	GroupLink    = "ff12::79"
	Dev          = "wv0"
	devFar       = "wv1"
	netns        = "world"
	sentinelPort = 6999
)

// Outside is all that is not guarded: another network namespace, with a receiver that hears every packet, and on this machine a
// second receiver and an agent.
type Outside struct {
	World *Receiver // at World4 and World6
	Here  *Receiver // outside the guard, in the machine's own network namespace
	Agent *Session

	MAC  string // of the world's end of the link
	Link string // link-local address there, with the scope of this end

	ports     int
	sentinels int
}

// NewOutside makes the world for as long as t runs.
func NewOutside(t testing.TB) *Outside {
	t.Helper()
	remove(t)
	t.Cleanup(func() { remove(t) })
	for _, c := range []string{
		"ip netns add " + netns,
		"sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv4.tcp_fastopen=5",
		"ip netns exec " + netns + " sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv4.tcp_fastopen=514",
		"ip link add " + Dev + " type veth peer name " + devFar + " netns " + netns,
		"ip addr add " + Own + "/24 dev " + Dev,
		"ip addr add 10.77.1.1/24 dev " + Dev,
		"ip addr add " + Own6 + "/64 dev " + Dev + " nodad",
		"ip link set " + Dev + " up",
		"ip -n " + netns + " addr add " + World4 + "/24 dev " + devFar,
		"ip -n " + netns + " addr add " + Open4 + "/24 dev " + devFar,
		"ip -n " + netns + " addr add " + World6 + "/64 dev " + devFar + " nodad",
		"ip -n " + netns + " addr add " + Open6 + "/64 dev " + devFar + " nodad preferred_lft 0",
		"ip -n " + netns + " link set " + devFar + " up",
		"ip -n " + netns + " link set lo up",
	} {
		Must(t, c)
	}
	o := &Outside{
		World: receiver(t, "ip", "netns", "exec", netns, "receiver", "-dev", devFar),
		Here:  receiver(t, "receiver"),
		Agent: Bare(t, "outside"),
		ports: 7000,
	}
	o.MAC = strings.Fields(Must(t, "ip -n "+netns+" -o link show dev "+devFar+" | grep -o 'link/ether [^ ]*'"))[1]
	var local []string
	Eventually(t, "the far end of the link has a link-local address", func() bool { // the kernel adds it once both ends are up
		local = strings.Fields(Must(t, "ip -n "+netns+" -6 -o addr show dev "+devFar+" scope link"))
		return len(local) > 3
	})
	o.Link = strings.SplitN(local[3], "/", 2)[0] + "%" + Dev
	o.World.Listen(t, "udp", fmt.Sprintf("[::]:%d", sentinelPort))
	o.Flush(t) // the link is up when a packet gets through
	return o
}

func remove(t testing.TB) {
	// what is not there needs no removal
	_ = exec.Command("ip", "link", "del", Dev).Run()
	_ = exec.Command("ip", "netns", "del", netns).Run()
}

// Must runs a shell command and returns what it prints.
func Must(t testing.TB, command string) string {
	t.Helper()
	b, err := exec.Command("bash", "-c", command).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, b)
	}
	return string(b)
}

// Port gives a port that nobody uses yet.
func (o *Outside) Port() int {
	o.ports++
	return o.ports
}

// Flush returns when all packets that were sent before have arrived: it sends one from each CPU, each of which has a queue of
// its own, and waits for them.
func (o *Outside) Flush(t testing.TB) {
	t.Helper()
	for cpu := range runtime.NumCPU() {
		o.sentinels++
		text := fmt.Sprintf("sentinel.%d.", o.sentinels)
		for try := 0; ; try++ {
			if err := sendFrom(cpu, text); err != nil {
				t.Fatalf("send sentinel: %v", err)
			}
			if o.World.waitPacket(text, time.Second) {
				break
			}
			if try == int(Late/time.Second) {
				t.Fatal("the test's own packets do not reach the world")
			}
		}
	}
}

func sendFrom(cpu int, text string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return err
	}
	defer func() { _ = unix.SchedSetaffinity(0, &all) }()
	conn, err := net.Dial("udp", netip.AddrPortFrom(netip.MustParseAddr(World4), sentinelPort).String())
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte(text))
	return err
}

// Got reports whether text arrived anywhere.
func (o *Outside) Got(text string) bool { return o.World.Got(text) || o.Here.Got(text) }

// WaitGot waits until text arrived anywhere, for d at most.
func (o *Outside) WaitGot(text string, d time.Duration) bool {
	late := time.After(d)
	for {
		o.World.mu.Lock()
		world := o.World.changed
		o.World.mu.Unlock()
		o.Here.mu.Lock()
		here := o.Here.changed
		o.Here.mu.Unlock()
		if o.Got(text) {
			return true
		}
		select {
		case <-world:
		case <-here:
		case <-late:
			return false
		}
	}
}

// Marks is a moment in what arrives.
type Marks struct{ world, here int }

// Mark is this moment: all that was sent before has arrived.
func (o *Outside) Mark(t testing.TB) Marks {
	t.Helper()
	o.Flush(t)
	return Marks{o.World.Mark(), o.Here.Mark()}
}

// Nothing fails t if text arrived at all, or after the mark a packet of the port, if it is not 0.
func (o *Outside) Nothing(t testing.TB, mark Marks, text string, port int) {
	t.Helper()
	o.Flush(t)
	for _, r := range []*Receiver{o.World, o.Here} {
		from := mark.world
		if r == o.Here {
			from = mark.here
		}
		r.mu.Lock()
		a := r.find(0, text, 0)
		if a == nil {
			a = r.find(from, text, port)
		}
		r.mu.Unlock()
		if a != nil {
			t.Errorf("arrived: %+v", *a)
		}
	}
}

// Quiet fails t if after the mark a packet for the port began a connection or carried anything. Others are let be: the kernel
// acknowledges by itself, for no socket of the container's, that the other side closes a connection that was closed here before.
func (o *Outside) Quiet(t testing.TB, mark Marks, port int) {
	t.Helper()
	const syn = 2
	o.Flush(t)
	for _, a := range o.World.since(mark.world) {
		if a.Via == "packet" && a.Port == port && (a.Proto != unix.IPPROTO_TCP || a.Flags&syn != 0 || a.Payload > 0) {
			t.Errorf("arrived: %+v", a)
		}
	}
}

// Packets says how many packets for ports from low to below high have reached the world since the mark.
func (o *Outside) Packets(t testing.TB, mark Marks, low, high int) int {
	t.Helper()
	o.Flush(t)
	n := 0
	for _, a := range o.World.since(mark.world) {
		if a.Port >= low && a.Port < high {
			n++
		}
	}
	return n
}

// Classes are the traffic classes of the packets for a port that have reached the world since the mark.
func (o *Outside) Classes(t testing.TB, mark Marks, port int) map[int]bool {
	t.Helper()
	o.Flush(t)
	all := map[int]bool{}
	for _, a := range o.World.since(mark.world) {
		if a.Via == "packet" && a.Port == port {
			all[a.Class] = true
		}
	}
	return all
}

// Flags are those of the TCP packets for a port that have reached the world since the mark.
func (o *Outside) Flags(t testing.TB, mark Marks, port int) int {
	t.Helper()
	o.Flush(t)
	all := 0
	for _, a := range o.World.since(mark.world) {
		if a.Via == "packet" && a.Port == port {
			all |= a.Flags
		}
	}
	return all
}

// Report logs what has reached the world for a port since the mark.
func (o *Outside) Report(t testing.TB, mark Marks, port int) {
	t.Helper()
	for _, a := range o.World.since(mark.world) {
		if a.Port == port {
			t.Logf("arrived: %+v", a)
		}
	}
}

// Since is all that has arrived in the world and here since the mark, and the mark of now.
func (o *Outside) Since(t testing.TB, mark Marks) ([]wire.Arrival, Marks) {
	t.Helper()
	now := o.Mark(t)
	return append(o.World.since(mark.world)[:now.world-mark.world:now.world-mark.world], o.Here.since(mark.here)[:now.here-mark.here]...), now
}
