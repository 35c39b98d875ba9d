//go:build vmguest

package failure

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weir/internal/event"
	"weir/test/vm/guest/rig"
)

// connects makes a number of connections to a port of loopback where nobody listens: each is an event, and nothing else. It says how
// long they took, in seconds.
const connects = `
import socket, sys, time
began = time.monotonic()
for i in range(int(sys.argv[1])):
    s = socket.socket()
    try:
        s.connect(("127.0.0.1", int(sys.argv[2])))
    except OSError:
        pass
    s.close()
print("took", time.monotonic() - began)
`

// connect makes connections, and says how long they took.
func (f *fixture) connect(t *testing.T, count, port int) time.Duration {
	t.Helper()
	p := f.session.Start(t, "python3", "-c", connects, itoa(count), itoa(port))
	took, err := time.ParseDuration(strings.TrimPrefix(p.WaitLine("took ", rig.Late), "took ") + "s")
	if r := p.Wait(t); r.Exit != 0 || err != nil {
		t.Fatalf("connect: %v, %s", err, r)
	}
	return took
}

// told counts the events of a kind in a stream of them that want picks, and what the stream says was lost of that kind at a stage.
func told(lines []string, stage string, kind event.Kind, want func(event.Event) bool) (seen, lost uint64) {
	for _, line := range lines {
		var e event.Event
		if json.Unmarshal([]byte(line), &e) != nil {
			continue
		}
		switch {
		case e.Kind == kind && want(e):
			seen++
		case e.Kind == event.Lost && e.Loss.What == string(kind) && e.Loss.Stage == stage:
			lost += e.Loss.Count
		}
	}
	return seen, lost
}

// log is what the event log has now.
func log(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(logDir + "/rig-events.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(strings.Lines(string(data)))
}

func port(n int) func(event.Event) bool {
	return func(e event.Event) bool { return e.Destination != nil && int(e.Destination.Port) == n }
}

// losses: while the daemon stands still the ring of executions fills; what did not fit is counted, and the sum is right (B31).
// Somebody who follows the events and does not read them slows down nobody, and is told how many he has missed.
func (f *fixture) losses(t *testing.T) {
	const execs = 650
	reader, out := f.follow(t, "exec,lost")
	followed := func() []string {
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Collect(strings.Lines(string(data)))
	}
	caughtUp := func(name string) {
		t.Helper()
		rig.Eventually(t, "the follower has "+name, func() bool {
			f.session.Run(t, "true", name)
			seen, _ := told(followed(), "", event.Exec, arg(1, name))
			return seen > 0
		})
	}
	caughtUp("first")
	if err := reader.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	before := len(log(t))
	f.sensor.Signal(t, syscall.SIGSTOP)
	flood := f.session.Start(t, "execs", "many", itoa(execs), "/bin/busybox", strings.Repeat("x", 15000))
	if r, ended := flood.WaitFor(5 * time.Minute); !ended || r.Exit != 0 {
		t.Errorf("flood: ended %v: %s", ended, r)
	}
	f.sensor.Signal(t, syscall.SIGCONT)
	var inTime, missed uint64
	rig.Eventually(t, "told or counted", func() bool {
		inTime, missed = told(log(t)[before:], "ring", event.Exec, arg(2, "xxxx"))
		return inTime+missed >= execs
	})
	if inTime+missed != execs || missed == 0 {
		t.Errorf("%d told and %d lost of %d", inTime, missed, execs)
	}
	f.works(t)
	f.probe.Steady(t)
	if err := reader.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	caughtUp("last")
	lines := followed()
	var from, to time.Time
	told(lines, "", event.Exec, func(e event.Event) bool {
		if from.IsZero() {
			from = e.Time
		}
		to = e.Time
		return true
	})
	within := func(e event.Event) bool { return !e.Time.Before(from) && !e.Time.After(to) }
	logged, _ := told(log(t), "", event.Exec, within)
	seen, lost := told(lines, "queue", event.Exec, within)
	if seen+lost != logged || lost == 0 {
		t.Errorf("followed %d, missed %d; the log has %d", seen, lost, logged)
	}
	if n := f.counter(t, "lost_sink") + f.counter(t, "lost_queue"); n != 0 {
		t.Errorf("the log itself missed %d events", n)
	}
}

// follow starts weir events -f, which writes to a file.
func (f *fixture) follow(t *testing.T, kinds string) (*os.Process, string) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "followed"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command("weir", "events", "-f", "--json", "--kind", kinds)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // killed
	})
	return cmd.Process, out.Name()
}

// arg picks executions of a command with an argument that begins so.
func arg(n int, begin string) func(event.Event) bool {
	return func(e event.Event) bool {
		return e.Process != nil && len(e.Process.Argv) > n && strings.HasPrefix(e.Process.Argv[n], begin)
	}
}

// counter is one of those that weir status shows.
func (f *fixture) counter(t *testing.T, name string) uint64 {
	t.Helper()
	st, err := client().Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st.Counters[name]
}

// stuckOutput: events go to a pipe that nobody reads for a while. Nobody waits for an answer that cannot be written: it is no, at
// once; and when somebody reads again he learns how much he has missed.
func (f *fixture) stuckOutput(t *testing.T) {
	const count = 250
	good := f.connect(t, count, f.world.Port())
	f.sensor.Stop(t)
	write(t, "version: 1\ncop:\n  reviewer: none\n"+policy) // no events.file: they go to standard output
	read, output, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		f.sensor.Stop(t)
		read.Close()
		write(t, whole(policy))
		f.sensor.Stdout = nil
		f.sensor.Restart(t)
	}()
	f.sensor.Stdout = output
	f.sensor.Restart(t)
	output.Close()
	n := f.world.Port()
	f.connect(t, count, n) // more than a pipe holds
	stuck := f.connect(t, count, n)
	total := uint64(2 * count)
	for try := 0; try < 3 && stuck > 4*good; try++ { // the machine may have been busy
		stuck = f.connect(t, count, n)
		total += count
	}
	if stuck > 4*good {
		t.Errorf("%d connects took %v, and %v while the output is stuck", count, good, stuck)
	} else {
		t.Logf("%d connects took %v, and %v while the output is stuck", count, good, stuck)
	}
	for range 2 {
		to := f.target(t)
		if r := f.session.Run(t, to.Egress("tcp")...); r.Exit != 3 || !strings.Contains(r.Stdout, "EPERM") {
			t.Errorf("a question that could not be written: %s", r)
		}
		to.Nothing(t)
	}
	other := f.sensor.Guard(t, "unwritten")
	if out, exit := weir(t, "taint", "unwritten", "secret"); exit != 1 || !strings.Contains(out, "the event log") {
		t.Errorf("weir taint: exit %d: %s", exit, out)
	}
	to := f.target(t)
	if r := other.Run(t, to.Egress("tcp")...); r.Exit != 3 {
		t.Errorf("tainted, which could not be written: %s", r)
	}
	to.Nothing(t)
	f.probe.Steady(t)

	var mu sync.Mutex
	var lines []string
	go func() {
		all := bufio.NewScanner(read)
		all.Buffer(nil, 1<<22)
		for all.Scan() {
			mu.Lock()
			lines = append(lines, all.Text())
			mu.Unlock()
		}
	}()
	var seen, lost uint64
	rig.Eventually(t, "all is told or counted", func() bool {
		f.session.Run(t, "true") // losses are told before the next event
		mu.Lock()
		defer mu.Unlock()
		lost = 0
		for _, stage := range []string{"ring", "queue", "sink"} {
			told, missed := told(lines, stage, event.Connect, port(n))
			seen, lost = told, lost+missed
		}
		return seen+lost >= total
	})
	if seen+lost != total {
		t.Errorf("of %d, %d were read late and %d lost", total, seen, lost)
	}
	asked := f.session // too much, by now: it is one container's share
	f.session = f.sensor.Guard(t, "asked-nothing", "--taint", "secret")
	f.works(t)
	f.session = asked
}
