//go:build vmguest

// Package fleet answers held commands over a real server of NATS, and takes the server away in the middle of a question.
package fleet

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/fleet"
	"weir/internal/fleet/link"
	"weir/internal/gate"
	"weir/internal/notify"
	"weir/internal/policy"
	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) { inside.Main(m) }

const at = "127.0.0.1:4222"

const sensorPolicy = "hold: true\napprover: person\napproval_timeout: %d\nfleet:\n  node: vm\n  servers: [nats://" + at + "]\n%s"

// start runs a program until t ends, or it is ended.
func start(t *testing.T, args ...string) (end func()) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := false
	end = func() {
		if !over {
			over = true
			_ = cmd.Process.Kill() // it may have ended
			_ = cmd.Wait()
		}
	}
	t.Cleanup(end)
	return end
}

// node is this machine, and people who are elsewhere.
type node struct {
	*testing.T
	world   *rig.Outside
	sensor  *rig.Sensor
	session *rig.Session
	dir     string
	key     ed25519.PrivateKey
	servers policy.Fleet
}

func (n *node) file(name string) string { return filepath.Join(n.dir, name) }

// fleet runs weir-fleet as a person does.
func (n *node) fleet(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(n.Context(), rig.Late)
	defer cancel()
	out, err := exec.CommandContext(ctx, "weir-fleet", append(args, "--policy", n.file("fleet.yaml"))...).CombinedOutput()
	return string(out), err
}

// hub starts a server that has nothing yet, and makes what nodes use there.
func (n *node) hub(name string) (end func()) {
	n.Helper()
	end = start(n.T, "nats-server", "-js", "-sd", n.file(name), "-a", "127.0.0.1", "-p", "4222")
	rig.Eventually(n, "the servers have a stream", func() bool { _, err := n.fleet("init", "--bytes", "16MiB"); return err == nil })
	return end
}

// connect has the tainted session connect, and waits until that is held.
func (n *node) connect() (to rig.Place, p *rig.Proc, q gate.Question) {
	n.Helper()
	to = n.world.Raw(n)
	p = n.session.Start(n, to.Egress("tcp")...)
	q = n.sensor.Asked(n, to.About)
	rig.Held(n, p.Pid())
	return to, p, q
}

// seen waits until people see a question.
func (n *node) seen(q gate.Question) (hash string) {
	n.Helper()
	rig.Eventually(n, "people see the question", func() bool {
		out, err := n.fleet("pending")
		_, after, found := strings.Cut(out, "vm/"+q.ID)
		if found && err == nil {
			_, hash, found = strings.Cut(after, "hash ")
		}
		hash, _, _ = strings.Cut(strings.TrimSpace(hash), "\n")
		return found
	})
	return hash
}

// TestFleet: a held connect of a tainted container is seen and answered over the fleet, and goes on; where the server is cut in the middle of the
// question it is denied; and a server that comes back empty serves the next one.
func TestFleet(t *testing.T) {
	n := &node{T: t, world: rig.NewOutside(t), dir: t.TempDir()}
	if err := os.WriteFile(n.file("fleet.yaml"), []byte("fleet: {node: vm, servers: [nats://"+at+"]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	item, err := exec.Command("weir-fleet", "operator", "add", "alice", "--key", n.file("key")).Output()
	if err != nil {
		t.Fatal(err)
	}
	if n.key, err = fleet.ReadKey(n.file("key")); err != nil {
		t.Fatal(err)
	}
	operators := strings.TrimPrefix(string(item), "fleet:\n")
	n.sensor = rig.StartSensor(t, fmt.Sprintf(sensorPolicy, 900, operators))
	end := n.hub("one")
	start(t, "weir-fleet", "run", "--policy", n.file("fleet.yaml"), "--state", n.file("state"))
	n.session = n.sensor.Guard(t, "fleet", "--taint", "secret")

	to, p, q := n.connect()
	hash := n.seen(q)
	if out, err := n.fleet("approve", "vm/"+q.ID, "--key", n.file("key"), "--hash", gate.Digest("another text")); err == nil {
		t.Errorf("what nobody saw was approved: %s", out)
	}
	rig.Held(t, p.Pid())
	if out, err := n.fleet("approve", "vm/"+q.ID, "--key", n.file("key"), "--hash", hash); err != nil || !strings.Contains(out, "approved by fleet operator alice") {
		t.Fatal(out, err)
	}
	n.goesOn(to, p)
	n.timed()

	to, p, q = n.connect()
	n.seen(q)
	if out, err := n.fleet("deny", "vm/"+q.ID, "--key", n.file("key")); err != nil {
		t.Fatal(out, err)
	}
	n.denied(to, p)

	n.sensor.Policy(t, fmt.Sprintf(sensorPolicy, 120, operators))
	to, p, q = n.connect()
	hash = n.seen(q)
	end()
	if out, err := n.fleet("approve", "vm/"+q.ID, "--key", n.file("key"), "--hash", hash); err == nil {
		t.Errorf("approved over a server that is away: %s", out)
	}
	n.denied(to, p)

	n.sensor.Policy(t, fmt.Sprintf(sensorPolicy, 900, operators))
	to, p, q = n.connect()
	n.hub("two")
	hash = n.seen(q)
	if out, err := n.fleet("approve", "vm/"+q.ID, "--key", n.file("key"), "--hash", hash); err != nil {
		t.Fatal(out, err)
	}
	n.goesOn(to, p)
}

// goesOn wants what was approved to arrive.
func (n *node) goesOn(to rig.Place, p *rig.Proc) {
	n.Helper()
	if r := p.Wait(n); r.Exit != 0 {
		n.Errorf("it does not go on: %s", r)
	}
	to.Arrived(n)
}

// denied wants a refusal, and that nothing has arrived.
func (n *node) denied(to rig.Place, p *rig.Proc) {
	n.Helper()
	if r := p.Wait(n); r.Exit == 0 || !strings.Contains(r.Stdout, "EPERM") {
		n.Errorf("not refused: %s", r)
	}
	to.Nothing(n)
}

// timed tells how soon a question is on a screen elsewhere, and how soon an answer from there lets the connect go on.
func (n *node) timed() {
	n.Helper()
	n.servers = policy.Default().Fleet
	n.servers.Servers = []string{"nats://" + at}
	people, err := link.Connect(n.servers, "people", false, func(string) {})
	if err != nil {
		n.Fatal(err)
	}
	defer people.Close()
	seen := make(chan notify.Message, 64)
	ctx, cancel := context.WithCancel(n.Context())
	ended := make(chan struct{})
	defer func() { cancel(); <-ended }()
	known := map[string]bool{}
	go func() {
		defer close(ended)
		err := people.Watch(ctx, func(all map[string]notify.Message) error {
			for key, m := range all {
				if !known[key] && m.Answer == nil {
					known[key] = true
					m.Time = time.Now()
					seen <- m
				}
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			n.Error(err)
		}
	}()
	var shown, answered []time.Duration
	for range 5 {
		to := n.world.Raw(n)
		p := n.session.Start(n, to.Egress("tcp")...)
		var m notify.Message
		for m.Question.Destination == nil || int(m.Question.Destination.Port) != to.Port {
			select {
			case m = <-seen:
			case <-time.After(rig.Late):
				n.Fatal("nobody sees the question")
			}
		}
		shown = append(shown, m.Time.Sub(m.Question.Asked))
		now := time.Now()
		signed, err := fleet.Sign(n.key, fleet.Statement{Node: m.Host, Signed: now, Expires: now.Add(time.Minute), Question: m.Question.ID, Answer: fleet.Approve, Shown: gate.Digest(m.Shown.Text)})
		if err != nil {
			n.Fatal(err)
		}
		if text, err := people.Send(ctx, m.Host, signed); err != nil {
			n.Fatal(text, err)
		}
		to.Arrived(n)
		answered = append(answered, time.Since(now))
		p.Wait(n)
	}
	n.Logf("from the question to a screen elsewhere: %v; from the answer there until what was sent has arrived: %v", shown, answered)
}
