//go:build vmguest

// Package egress tries every attack of the table in tainted sessions: nothing may arrive.
package egress

import (
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) { inside.Main(m) }

// Nobody is asked and nothing is held: what a tainted session tries is refused at once.
const policy = `
hold: false
approver: none
taint:
  secret_files: [` + secretFile + `]
allow:
  - prefix: ` + rig.Open4 + `/32
  - prefix: ` + rig.Open6 + `/128
  - prefix: ` + rig.Away4 + `/32
  - prefix: ` + rig.Away6 + `/128
  - prefix: ` + rig.Group4 + `/32
  - prefix: ` + rig.Group6 + `/128
  - prefix: ` + rig.GroupLink + `/128
  - prefix: 255.255.255.255/32
`

const secretFile = "/run/egress-secret"

// One sensor serves all tests: the kernel takes its time to verify programs.
func Test(t *testing.T) {
	world := rig.NewOutside(t)
	rig.Must(t, "echo key > "+secretFile)
	sensor := rig.StartSensor(t, policy)
	t.Run("Attempts", func(t *testing.T) { attempts(t, world, sensor) })
	t.Run("B30/looks-on", func(t *testing.T) { looksOn(t, sensor) })
	t.Run("B47/leave-close", func(t *testing.T) { leftByClose(t, world, sensor) })
	t.Run("B59/unreadable", func(t *testing.T) { unreadable(t, world, sensor) })
	t.Run("B64/own", func(t *testing.T) { ownEnds(t, world, sensor) })
	t.Run("B61/parked-closed", func(t *testing.T) { parkedClosed(t, world, sensor) })
	t.Run("B61/half-closed", func(t *testing.T) { halfClosed(t, world, sensor) })
	t.Run("B67/own", func(t *testing.T) { reachesOwn(t, world, sensor) })
	t.Run("OpenedBeforeGuard", func(t *testing.T) { openedBeforeGuard(t, world) })
	t.Run("B109/changed-from-inside", func(t *testing.T) { changedFromInside(t, world, sensor) })
	t.Run("Remembered", func(t *testing.T) { remembered(t, world, sensor) })
	t.Run("SigcontWakesHeld", func(t *testing.T) { sigcontWakesHeld(t, world, sensor) })
	t.Run("B115/packet-filter", func(t *testing.T) { packetFilter(t, world, sensor) })
}

// told is what the log calls the calls in which some attempts are refused (F45).
var told = map[string]string{
	"B30/ptrace-attach": "ptrace", "B67/kill": "signal", "B67/limit": "limit", "B67/message": "ipc", "B67/key": "key",
	"B47/igmp": "setsockopt", "B47/request-key": "request_key",
}

func attempts(t *testing.T, world *rig.Outside, sensor *rig.Sensor) {
	tainted := sensor.Guard(t, "tainted", "--taint", "corruption")
	older := sensor.Guard(t, "older") // tainted when an attempt has opened what it opens
	control := rig.Bare(t, "control")
	type sent struct {
		title string
		rig.Outcome
	}
	var all []sent
	for _, a := range rig.Some(rig.Attempts(), func(a rig.Attempt) string { return a.ID }) {
		t.Run(a.Title(), func(t *testing.T) {
			session, taint := tainted, func() {}
			if a.Opens {
				session, taint = older, func() { sensor.Taint(t, "older", "corruption") }
				defer sensor.Untaint(t, "older", "corruption")
			}
			before := len(sensor.Events(t))
			out := a.Try(t, world, session, taint)
			if opened := strings.Contains(out.Stdout, "opened"); a.Opens && opened == a.Clean {
				t.Errorf("opened before the taint: %v, want %v: %s", opened, !a.Clean, out.Result)
			}
			if out.Exit == 0 && !a.Quiet {
				t.Errorf("no step was refused: %s", out.Result)
			}
			if a.Network == "none" && !a.Creates {
				// a receiver that has the control's text had the time to get the attempt's
				a.Arrived(t, a.Try(t, world, control, nil))
			}
			a.Stopped(t, out)
			sensor.WaitHook(t, session, told[a.Title()], before)
			all = append(all, sent{a.Title(), out})
		})
	}
	for _, session := range []*rig.Session{tainted, older} {
		if r := session.Run(t, "true"); r.Exit != 0 {
			t.Errorf("the session did not outlive it: %s", r)
		}
	}
	// what was delayed had its time, too
	for _, o := range all {
		if world.Got(o.Text) {
			t.Errorf("%s: arrived late", o.title)
		}
	}
}

// looksOn: a tainted session may look at its own processes, and list those of the machine.
func looksOn(t *testing.T, sensor *rig.Sensor) {
	session := sensor.Guard(t, "looks", "--taint", "secret")
	const ready = "sleep 600 & for i in {1..600}; do [[ $(readlink /proc/$!/exe) != */sleep ]] || break; sleep 0.05; done; "
	const own = ready + "set -e; readlink /proc/$!/exe; ls -l /proc/$!/fd; cat /proc/$!/environ >/dev/null; kill $!; "
	if r := session.Run(t, "bash", "-c", own+"ps -ef || busybox ps"); r.Exit != 0 || !strings.Contains(r.Stdout, "/sleep\n") || !strings.Contains(r.Stdout, " -> ") || !strings.Contains(r.Stdout, "weir") {
		t.Errorf("it cannot look: %s", r)
	}
}

// leftByClose: who joined groups while it was clean says something by leaving them, which no hook is asked about. It stays open,
// and docs/limits.md says so.
func leftByClose(t *testing.T, world *rig.Outside, sensor *rig.Sensor) {
	session := sensor.Guard(t, "left")
	a := rig.LeftByClose()
	out := a.Try(t, world, session, func() { sensor.Taint(t, "left", "secret") })
	a.Arrived(t, out)
}

// ownEnds: a tainted session goes on talking to itself, over what it opened before and over what it opens.
func ownEnds(t *testing.T, world *rig.Outside, sensor *rig.Sensor) {
	session := sensor.Guard(t, "own")
	a := rig.OwnEnds()
	if out := a.Try(t, world, session, func() { sensor.Taint(t, "own", "secret") }); out.Exit != 0 {
		t.Errorf("it cannot talk to itself: %s", out.Result)
	}
}

// parkedClosed: a connection that no process has open is closed at the taint, too: what the kernel says of it by itself has no check.
func parkedClosed(t *testing.T, world *rig.Outside, sensor *rig.Sensor) {
	session := sensor.Guard(t, "parked")
	a := rig.ParkedTCP()
	a.Try(t, world, session, func() {
		sensor.Taint(t, "parked", "secret")
		open, err := netlink.SocketDiagTCP(unix.AF_INET)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range open {
			if s.ID.Destination.String() == rig.World4 && s.INode != 0 {
				t.Errorf("it is open: %v", s)
			}
		}
	})
}

// packetFilter: the host's packet filter notes where a datagram goes before that is dropped, so none may be made (B115).
func packetFilter(t *testing.T, world *rig.Outside, sensor *rig.Sensor) {
	tainted, control := sensor.Guard(t, "filter", "--taint", "secret"), rig.Bare(t, "filter")
	for _, by := range []string{"sendfile", "splice", "vmsplice", "uring"} {
		dropped := sensor.Counter(t, "dropped_packet")
		r := tainted.Run(t, world.Place().Egress("udp-connect -by "+by)...)
		if n := sensor.Counter(t, "dropped_packet") - dropped; n != 0 || r.Exit == 0 {
			t.Errorf("%s: %d packets are dropped: %s", by, n, r)
		}
		if r := control.Run(t, world.Place().Egress("udp-connect -by "+by)...); r.Exit != 0 {
			t.Errorf("%s without a guard: %s", by, r)
		}
	}
}
