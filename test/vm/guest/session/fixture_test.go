//go:build vmguest

// Package session follows guarded sessions: taint, questions, grants, what people and kernels do to them, and a sensor that dies.
package session

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/gate"
	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) { inside.Main(m) }

// late is how long something may take that must happen.
const late = 20 * time.Second

// fixture is what all tests share: starting a sensor takes long in a VM.
type fixture struct {
	world  *rig.Outside
	sensor *rig.Sensor
}

func TestSession(t *testing.T) {
	f := &fixture{world: rig.NewOutside(t)}
	f.sensor = rig.StartSensor(t, "")
	for _, test := range []struct {
		name string
		run  func(*fixture, *testing.T)
	}{
		{"G4_untainted", (*fixture).untainted},
		{"B21_connected_before_the_taint", (*fixture).cut},
		{"G16_held_and_answered", (*fixture).held},
		{"G16_programs", (*fixture).programs},
		{"G24_approved_command_only", (*fixture).approvedOnly},
		{"G25_exec_events", (*fixture).execEvents},
		{"B36_daemon_outlives_its_command", (*fixture).outlives},
		{"B37_open_socket_outlives_its_command", (*fixture).socketOutlives},
		{"B44_handed_to_the_ungranted", (*fixture).handed},
		{"B38_woken_by_its_family", (*fixture).woken},
		{"B38_storm", (*fixture).storm},
		{"B27_control_socket", (*fixture).controlSocket},
		{"B28_moves_out", (*fixture).movesOut},
		{"B37_moves_into_a_grant", (*fixture).movesIntoGrant},
		{"G3_ancestor", (*fixture).ancestor},
		{"B53_clean_below_tainted", (*fixture).cleanBelow},
		{"B51_escapes", (*fixture).escapes},
		{"G15_interactive_shell", (*fixture).shell},
		{"modes", (*fixture).modes},
		{"G1_G15_B32_daemon_killed", (*fixture).killed},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(f, t) })
	}
}

// target is a place in the world that only one test uses, and a text that only it sends there.
type target struct {
	f    *fixture
	port int
	to   string
	text string
}

func (f *fixture) target(t *testing.T) target {
	t.Helper()
	port := f.world.Port()
	return target{f: f, port: port, to: fmt.Sprintf("%s:%d", rig.World4, port), text: fmt.Sprintf("text.%d.end", port)}
}

// raw listens there for anything.
func (f *fixture) raw(t *testing.T) target {
	t.Helper()
	to := f.target(t)
	f.world.World.Listen(t, "tcp", fmt.Sprintf("[::]:%d", to.port))
	return to
}

// web serves HTTP there, for as long as t runs.
func (f *fixture) web(t *testing.T) target {
	t.Helper()
	to := f.target(t)
	listener, err := listenIn("world", to.to)
	if err != nil {
		t.Fatalf("listen in the world: %v", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			fmt.Fprint(w, "answer")
		}
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends when it is closed
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return to
}

// listenIn listens in a named network namespace: a socket stays where it was made.
func listenIn(netns, at string) (net.Listener, error) {
	type result struct {
		l   net.Listener
		err error
	}
	made := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its namespace
		there, err := os.Open("/run/netns/" + netns)
		if err == nil {
			defer there.Close()
			err = unix.Setns(int(there.Fd()), unix.CLONE_NEWNET)
		}
		if err != nil {
			made <- result{err: err}
			return
		}
		l, err := net.Listen("tcp", at)
		made <- result{l, err}
	}()
	r := <-made
	return r.l, r.err
}

func (to target) url() string { return "http://" + to.to + "/" + to.text }

// curl is a command that sends the text.
func (to target) curl() []string { return []string{"curl", "-sS", "-m", "60", to.url()} }

// egress is the attack program's command line for an attempt that sends the text.
func (to target) egress(words string) []string {
	return append(append([]string{"egress"}, strings.Fields(words)...), "-to", to.to, "-say", to.text)
}

// asked waits for the question about this place.
func (to target) asked(t *testing.T) gate.Question {
	t.Helper()
	return to.f.sensor.Asked(t, to.about)
}

func (to target) about(q gate.Question) bool { return int(q.Destination.Port) == to.port }

// again waits for a question about this place that is not old.
func (to target) again(t *testing.T, old gate.Question) gate.Question {
	t.Helper()
	return to.f.sensor.Asked(t, func(q gate.Question) bool { return to.about(q) && q.ID != old.ID })
}

// nothing fails t if the text or any packet for this place arrived.
func (to target) nothing(t *testing.T) {
	t.Helper()
	to.f.world.Nothing(t, rig.Marks{}, to.text, to.port)
}

// arrived fails t unless the text arrives.
func (to target) arrived(t *testing.T) {
	t.Helper()
	if !to.f.world.WaitGot(to.text, late) {
		t.Errorf("%s did not arrive", to.text)
	}
}

// guard starts a session with a name of its own.
func (f *fixture) guard(t *testing.T, bits ...string) *rig.Session {
	t.Helper()
	name := "s" + strconv.Itoa(f.world.Port())
	if len(bits) == 0 {
		return f.sensor.Guard(t, name)
	}
	return f.sensor.Guard(t, name, "--taint", strings.Join(bits, ","))
}

// succeeded waits for a command that must not have noticed anything.
func succeeded(t *testing.T, p *rig.Proc, stdout string) {
	t.Helper()
	if r := p.Wait(t); r.Exit != 0 || !strings.Contains(r.Stdout, stdout) {
		t.Errorf("want exit 0 and %q, got %s", stdout, r)
	}
}

// refused waits for an attack program that must have got EPERM.
func refused(t *testing.T, p *rig.Proc) {
	t.Helper()
	if r := p.Wait(t); r.Exit != 3 || !strings.Contains(r.Stdout, "EPERM") {
		t.Errorf("want a refusal with EPERM, got %s", r)
	}
}

// state is the letter that /proc has for a process: T when it is stopped.
func state(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Errorf("read process state: %v", err)
		return ""
	}
	return strings.Fields(string(b[strings.LastIndex(string(b), ")")+1:]))[0]
}

// eventually fails t unless done comes true.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(late); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("%s: not after %v", what, late)
			return
		}
	}
}
