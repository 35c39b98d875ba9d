//go:build vmguest

package clients

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) {
	// they wait for each other's questions more than they compute
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	inside.Main(m)
}

// late is how long something may take that must happen, with many programs side by side.
const late = 8 * time.Minute

// askSeconds is how long a question stays open: the tests answer well before.
const askSeconds = 30

// policy opens one destination, for what has no other way out.
const policy = `approval_timeout: 30
grant: {seconds: 900}
allow:
  - {prefix: 10.77.0.2, protocol: udp, ports: 7443}
`

// fixture is what all tests share: starting a sensor takes long in a VM.
type fixture struct {
	world   *rig.Outside
	sensor  *rig.Sensor
	servers *servers
	session *rig.Session
	desk    *desk
	beats   *beats
	heavy   chan struct{} // room for what is heavy

	mu   sync.Mutex
	rows map[string]row
	sshd []int // ports that are not used yet
}

func TestClients(t *testing.T) {
	f := &fixture{world: rig.NewOutside(t), rows: map[string]row{}, heavy: make(chan struct{}, 2)}
	f.servers = serve(t)
	for range 12 {
		f.sshd = append(f.sshd, f.world.Port())
	}
	sshd(t, f.sshd)
	rig.Must(t, `gcc -O1 -o /run/client testdata/client.c && musl-gcc -O1 -static -o /run/client.musl testdata/client.c`)
	f.sensor = rig.StartSensor(t, policy)
	f.session = f.sensor.Guard(t, "clients", "--taint", "secret")
	f.desk, f.beats = open(t, f.sensor), listen(t)
	// a regular expression of names, or core
	var which *regexp.Regexp
	if text := os.Getenv("WEIR_CLIENTS"); text != "core" {
		which = regexp.MustCompile(text)
	}
	t.Run("quic", f.quic)
	for group, heavy := range map[string]bool{"clients": false, "heavy": true} {
		t.Run(group, func(t *testing.T) {
			for _, c := range clients {
				if c.heavy != heavy || which == nil && !c.core || which != nil && !which.MatchString(c.name) {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					f.run(t, c)
				})
			}
		})
	}
	t.Run("threads_apart", f.apart)
	f.document(t)
}

// place is where one run of a client goes: a port and a text that nobody else uses.
type place struct {
	f    *fixture
	addr string
	port int
	text string
	busy bool // others use the port as well

	answered map[string]bool // questions by id
}

func (f *fixture) place() place { return f.places(1)[0] }

// places gives places with ports in a row.
func (f *fixture) places(n int) []place {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []place
	for range n {
		port := f.world.Port()
		all = append(all, place{f: f, addr: rig.World4, port: port, text: fmt.Sprintf("text%dend", port), answered: map[string]bool{}})
	}
	return all
}

func (p place) at() string             { return fmt.Sprintf("%s:%d", p.addr, p.port) }
func (p place) url(more string) string { return "https://" + p.at() + "/" + p.text + more }
func (p place) name() string           { return p.text + "." + strings.TrimSuffix(zone, ".") }

// named is a URL with a name.
func (p place) named() string { return fmt.Sprintf("https://%s:%d/%s", p.name(), p.port, p.text) }

// asks says whether a question is about this place.
func (p place) asks(q gate.Question) bool {
	return !p.busy && int(q.Destination.Port) == p.port || strings.Contains(strings.Join(q.Process.Argv, " "), p.text)
}

// nothing fails t if anything of this place arrived.
func (p place) nothing(t *testing.T) {
	t.Helper()
	port := p.port
	if p.busy {
		port = 0
	}
	p.f.mu.Lock()
	p.f.world.Nothing(t, rig.Marks{}, p.text, port)
	p.f.mu.Unlock()
	if p.f.servers.came(p.text) > 0 {
		t.Errorf("a server was asked for %s", p.text)
	}
}

// arrived fails t unless something of this place arrives.
func (p place) arrived(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(late); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if p.came() {
			return
		}
	}
	t.Errorf("%s did not arrive", p.text)
}

// came says whether something of this place has arrived.
func (p place) came() bool {
	_, err := os.Stat(sshSeen(p))
	return err == nil || p.f.servers.came(p.text) > 0 || p.f.world.Got(p.text)
}

const http3only = "curl --http3-only"

// quic is refused without a question (B20), and open where the policy allows it: curl then comes with HTTP/3.
func (f *fixture) quic(t *testing.T) {
	f.servers.quic(t, 443)
	f.servers.quic(t, 7443)
	f.servers.listen(t, 443, true)
	p := f.place()
	p.port = 443
	get := func(port int) []string {
		return []string{"curl", "-sS", "-m", "600", "--http3-only", fmt.Sprintf("https://%s:%d/%s", rig.World4, port, p.text)}
	}
	r := f.session.Run(t, get(443)...)
	if r.Exit == 0 {
		t.Errorf("curl over QUIC: %s", r)
	}
	p.nothing(t)
	f.sensor.Event(t, func(e event.Event) bool {
		return e.Kind == event.Connect && e.Destination != nil && e.Destination.Port == 443 && e.Destination.Protocol == "udp" &&
			e.Verdict != nil && e.Verdict.Decision == "deny" && e.Verdict.Reason == "quic"
	})
	allowed := f.session.Run(t, get(7443)...)
	if allowed.Exit != 0 || !strings.Contains(allowed.Stdout, "HTTP/3") {
		t.Errorf("curl over QUIC to an allowed destination: %s", allowed)
	}
	f.put(http3only, row{Call: "refused, nobody is asked", Approved: "–", Denied: ended(r), Unanswered: "–", Late: "–"})
}

// apart: a program whose threads connect to different places at the same time has each of them answered, the last one first.
func (f *fixture) apart(t *testing.T) {
	const threads = 8
	places := f.places(threads)
	for _, p := range places {
		f.servers.listen(t, p.port, false)
	}
	proc := f.session.Start(t, "/run/client", "apart", rig.World4, fmt.Sprint(places[0].port), places[0].text)
	proc.Close(t)
	answered := map[string]bool{}
	for {
		qs, ended := f.desk.wait(proc, late, func(q gate.Question) bool { return places[0].asks(q) && !answered[q.ID] })
		if ended || len(qs) == 0 {
			break
		}
		time.Sleep(300 * time.Millisecond) // for the others to ask as well
		for _, q := range f.desk.open() {
			if places[0].asks(q) && !answered[q.ID] {
				qs = append(qs, q)
			}
		}
		last := qs[len(qs)-1]
		if !last.Held {
			t.Errorf("refused, not held: %+v", last)
		}
		answered[last.ID] = true
		f.sensor.Approve(t, last.ID)
	}
	r := proc.Wait(t)
	if r.Exit != 0 || len(answered) != threads {
		t.Errorf("want %d questions and exit 0, got %d and %s", threads, len(answered), r)
	}
}
