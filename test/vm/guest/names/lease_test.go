//go:build vmguest

package names

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"weir/internal/gate"
	"weir/test/vm/guest/rig"
)

// dials connects to an address when it is told to, or says something on the first connection that it got; answers are numbered.
const dials = `
import socket, sys
kept = []
for n, line in enumerate(sys.stdin):
    try:
        if line != "again\n":
            # closing one would send, which it may if a name opened it
            kept.append(socket.create_connection((line.strip(), 80)))
        s = kept[0] if line == "again\n" else kept[-1]
        s.settimeout(10)
        s.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        print(n, "answered", len(s.recv(4096)), flush=True)
    except OSError as e:
        print(n, "refused", type(e).__name__, flush=True)
`

// dialer is one that runs.
type dialer struct {
	*rig.Proc
	told int
}

func (d *dialer) tell(t *testing.T, order string) { d.Input(t, order+"\n"); d.told++ }

// says waits for the answer to what it was told last.
func (d *dialer) says(t *testing.T, answer string) {
	t.Helper()
	if answer = fmt.Sprint(d.told-1, " ", answer); d.WaitLine(answer, rig.Late) == "" {
		r, _ := d.WaitFor(time.Millisecond)
		t.Fatalf("not %q: %s", answer, r)
	}
}

const seconds = 45 // of grants: the sensor may be slow to load a policy meanwhile

// runOut: what an allowed name or a person opened is shut when its time is over, also when the daemon was killed before.
func (f *fixture) runOut(t *testing.T) {
	policy := func(hold string) string {
		return fmt.Sprintf("hold: %s\ngrant:\n  seconds: %d\n%s", hold, seconds, policyText)
	}
	f.zone.set("allowed.example", host)
	for _, v := range []struct {
		name string
		dead bool
	}{{"under the daemon", false}, {"after SIGKILL", true}} {
		t.Run(v.name, func(t *testing.T) {
			f.sensor.Policy(t, policy("true"))
			s := f.guard(t, "--taint", "secret")
			want(t, s.Run(t, "curl", "-sS", "-m", "60", "http://allowed.example/"), 0, "reached "+host)
			leased, granted := &dialer{Proc: s.Start(t, "python3", "-c", dials)}, &dialer{Proc: s.Start(t, "python3", "-c", dials)}
			leased.tell(t, host)
			leased.says(t, "answered")
			granted.tell(t, other)
			f.sensor.Approve(t, f.sensor.Asked(t, func(q gate.Question) bool { return q.Destination.Address == other }).ID)
			granted.says(t, "answered")
			if v.dead {
				f.sensor.Kill(t)
				defer f.sensor.Restart(t)
			} else {
				f.sensor.Policy(t, policy("false")) // refused at once
			}
			until := deadline(t)
			shorten(t, until) // the answer's time would be a minute and a half
			mark := f.world.Mark(t)
			leased.tell(t, host)
			leased.says(t, "answered")
			granted.tell(t, "again")
			granted.says(t, "answered")
			if n := f.world.Packets(t, mark, 80, 81); n == 0 {
				t.Fatal("nothing arrives while it is open: the test shows nothing")
			}
			for boot() <= until {
				time.Sleep(100 * time.Millisecond)
			}
			mark = f.world.Mark(t)
			granted.tell(t, "again")
			granted.says(t, "refused")
			for d, to := range map[*dialer]string{leased: host, granted: other} {
				d.tell(t, to)
				d.says(t, "refused PermissionError")
			}
			if n := f.world.Packets(t, mark, 80, 81); n != 0 {
				t.Errorf("%d packets have arrived after the end", n)
				f.world.Report(t, mark, 80)
			}
			leased.Close(t)
			granted.Close(t)
		})
	}
	f.sensor.Policy(t, policyText)
}

// boot is the clock of all deadlines in the kernel.
func boot() uint64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0
	}
	return uint64(now.Nano())
}

// deadline is when the grant ends that was made just now.
func deadline(t *testing.T) (until uint64) {
	t.Helper()
	now := boot()
	each(t, "grants", func(_ *ebpf.Map, _, value []byte) {
		// those of other tests may have longer
		if at := binary.NativeEndian.Uint64(value); at < now+uint64(seconds*time.Second) {
			until = max(until, at)
		}
	})
	if until <= now {
		t.Fatalf("the grant ends at %d, and it is %d: too slow", until, now)
	}
	return until
}

// shorten has all that names opened end at a time.
func shorten(t *testing.T, until uint64) {
	t.Helper()
	n := 0
	each(t, "dns_leases", func(m *ebpf.Map, key, value []byte) {
		n++
		binary.NativeEndian.PutUint64(value, until)
		if err := m.Put(key, value); err != nil {
			t.Fatal(err)
		}
	})
	if n == 0 {
		t.Fatal("no allowed name is open")
	}
}

// each reads a pinned map, whose values begin with a deadline.
func each(t *testing.T, name string, do func(m *ebpf.Map, key, value []byte)) {
	t.Helper()
	m, err := ebpf.LoadPinnedMap("/sys/fs/bpf/weir/"+name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	key, value := make([]byte, m.KeySize()), make([]byte, m.ValueSize())
	for it := m.Iterate(); it.Next(&key, &value); {
		do(m, key, value)
	}
}
