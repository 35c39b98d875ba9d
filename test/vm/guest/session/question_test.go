//go:build vmguest

package session

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/test/vm/guest/rig"
)

// untainted: nothing is asked and nothing denied (G4).
func (f *fixture) untainted(t *testing.T) {
	to, s := f.web(t), f.guard(t)
	p := s.Start(t, to.Curl()...)
	succeeded(t, p, "answer")
	to.Arrived(t)
	if asked := f.sensor.Pending(t); len(asked) > 0 {
		t.Errorf("an untainted command was asked about: %+v", asked)
	}
	for _, e := range f.sensor.Events(t, event.Hold, event.Verdict, event.Grant) {
		t.Errorf("an untainted command led to %+v", e)
	}
}

// cut: a connection from before the taint is closed, and nothing more of it arrives (B21).
func (f *fixture) cut(t *testing.T) {
	to, s := f.raw(t), f.guard(t)
	p := s.Start(t, to.Egress("tcp -wait connect")...)
	if p.WaitLine("opened", rig.Late) == "" {
		t.Fatal("it did not connect while it was clean")
	}
	f.sensor.Taint(t, s.Name, "secret")
	mark := f.world.Mark(t)
	p.Input(t, "\n")
	if r := p.Wait(t); r.Exit != 3 || strings.Contains(r.Stdout, "ok") {
		t.Errorf("the send on a connection that was cut: %s", r)
	}
	f.world.Nothing(t, mark, to.Text, to.Port)
}

// held: the whole way of a question, answered yes and answered no.
func (f *fixture) held(t *testing.T) {
	to, s := f.web(t), f.guard(t, "corruption", "secret")
	p := s.Start(t, to.Curl()...)
	q := to.asked(t)
	if !q.Held || !slices.Equal(q.Process.Argv, to.Curl()) || q.Process.PID != p.Pid() || q.Container.Name != s.Name {
		t.Errorf("the question does not tell what is asked: %+v", q)
	}
	if q.Destination.Address != rig.World4 || q.Destination.Protocol != "tcp" {
		t.Errorf("destination: %+v", q.Destination)
	}
	if len(q.Process.Ancestry) == 0 || q.Process.Ancestry[0].Comm != "agent" {
		t.Errorf("ancestry: %+v", q.Process.Ancestry)
	}
	rig.Held(t, q.Process.PID)
	shown := f.sensor.Must(t, "pending")
	for _, want := range []string{q.ID, to.URL(), to.To, "agent", "corruption", "held", s.Name} {
		if !strings.Contains(shown, want) {
			t.Errorf("weir pending does not show %q:\n%s", want, shown)
		}
	}
	to.Nothing(t)
	f.sensor.Must(t, "approve", q.ID)
	succeeded(t, p, "answer")
	to.Arrived(t)

	// the very same command is another question: an approval is used once (G16)
	p = s.Start(t, to.Curl()...)
	next := to.again(t, q)
	mark := f.world.Mark(t)
	f.sensor.Must(t, "deny", next.ID)
	if r := p.Wait(t); r.Exit != 7 {
		t.Errorf("curl, denied: want exit 7, got %s", r)
	}
	f.world.Quiet(t, mark, to.Port) // the end of the first connection may come now
	if _, exit := f.sensor.Weir(t, "approve", q.ID); exit == 0 {
		t.Error("a used approval can be given again")
	}

	other := f.raw(t)
	p = s.Start(t, other.Egress("tcp")...)
	f.sensor.Deny(t, other.asked(t).ID)
	refused(t, p)
	other.Nothing(t)
}

// programs: none of them notices that it was held.
func (f *fixture) programs(t *testing.T) {
	s := f.guard(t, "secret")
	type program struct {
		to   target
		want string
		argv []string
	}
	var all []program
	add := func(want string, argv func(target) []string) {
		to := f.web(t)
		all = append(all, program{to, want, argv(to)})
	}
	add("answer", func(to target) []string { return append([]string{"timeout", "600"}, to.Curl()...) })
	add("0 0 0", func(to target) []string {
		return []string{"bash", "-c", "echo x | curl -sSm600 --data-binary @- " + to.URL() + ` | cat >/dev/null; echo "${PIPESTATUS[*]}"`}
	})
	add("200", func(to target) []string {
		return []string{"python3", "-c", `
import signal, socket, sys, threading, time
signal.signal(signal.SIGALRM, lambda *a: None)
signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
threading.Thread(target=time.sleep, args=(2,)).start()
host, port, text = sys.argv[1:]
s = socket.create_connection((host, int(port)))
s.sendall(("GET /" + text + " HTTP/1.0\r\n\r\n").encode())
print(s.recv(100))
signal.setitimer(signal.ITIMER_REAL, 0)`, rig.World4, itoa(to.Port), to.Text}
	})
	add("sent", func(to target) []string {
		place := strings.Replace(to.To, ":", "/", 1)
		return []string{"bash", "-c", "exec 3<>/dev/tcp/" + place + " && echo " + to.Text + " >&3 && echo sent"}
	})
	var procs []*rig.Proc
	var ids []string
	for _, p := range all {
		procs = append(procs, s.Start(t, p.argv...))
		q := p.to.asked(t)
		if !q.Held {
			t.Errorf("%v: refused, not held", p.argv)
		}
		ids = append(ids, q.ID)
	}
	for _, p := range all {
		p.to.Nothing(t)
	}
	for _, id := range ids {
		f.sensor.Approve(t, id)
	}
	for i, p := range all {
		succeeded(t, procs[i], p.want)
		p.to.Arrived(t)
	}
}

// approvedOnly: while one command is let out, no other of the agent's gets there (G24).
func (f *fixture) approvedOnly(t *testing.T) {
	to, s := f.raw(t), f.guard(t, "secret")
	first := s.Start(t, to.Egress("tcp -wait connect")...)
	q := to.asked(t)
	f.sensor.Approve(t, q.ID)
	if first.WaitLine("opened", rig.Late) == "" {
		t.Fatal("the approved command did not connect")
	}
	other := to
	other.Text = "other." + to.Text[5:]
	second := s.Start(t, other.Egress("tcp")...)
	next := to.again(t, q)
	first.Input(t, "\n")
	succeeded(t, first, "ok")
	to.Arrived(t)
	f.sensor.Deny(t, next.ID)
	refused(t, second)
	f.world.Nothing(t, rig.Marks{}, other.Text, 0) // another command uses no grant
}

// execEvents: what a tainted command runs is logged with a verdict that opens nothing (G24, G25).
func (f *fixture) execEvents(t *testing.T) {
	to, s := f.raw(t), f.guard(t)
	reason := func(text string) string {
		e := f.sensor.Event(t, func(e event.Event) bool {
			return e.Kind == event.Exec && e.Container.Name == s.Name && slices.Contains(e.Process.Argv, text)
		})
		if e.Verdict == nil {
			return "none"
		}
		return e.Verdict.Decision + " " + e.Verdict.Reason
	}
	s.Run(t, "true", "clean-command")
	if got, want := reason("clean-command"), "allow "+string(gate.Untainted); got != want {
		t.Errorf("verdict on an untainted command: %s, want %s", got, want)
	}
	f.sensor.Taint(t, s.Name, "corruption")
	p := s.Start(t, to.Egress("tcp")...)
	if got, want := reason(to.Text), "allow "+string(gate.SealedRun); got != want {
		t.Errorf("verdict on a tainted command: %s, want %s", got, want)
	}
	f.sensor.Deny(t, to.asked(t).ID)
	refused(t, p)
	to.Nothing(t)
}

// woken: a SIGCONT from inside brings a held call nothing, and asks nothing more (B38).
func (f *fixture) woken(t *testing.T) {
	to, s := f.web(t), f.guard(t, "secret")
	p := s.Start(t, to.Curl()...)
	q := to.asked(t)
	if r := s.Run(t, "kill", "-CONT", itoa(p.Pid())); r.Exit != 0 {
		t.Fatalf("kill: %s", r)
	}
	rig.Held(t, p.Pid())
	to.Nothing(t)
	f.sensor.Approve(t, q.ID)
	succeeded(t, p, "answer")
	to.Arrived(t)
	to.once(t)
}

// once fails t unless one question was asked.
func (to target) once(t *testing.T) {
	t.Helper()
	if n := to.f.sensor.Questions(t, to.Port); n != 1 {
		t.Errorf("%d questions were asked, want 1", n)
	}
}

// storm: however often that comes (B38).
func (f *fixture) storm(t *testing.T) {
	to, s := f.raw(t), f.guard(t, "secret")
	p := s.Start(t, to.Egress("tcp")...)
	q := to.asked(t)
	if r := s.Run(t, "egress", "sigcont-storm", "-pid", itoa(p.Pid()), "-n", "250"); r.Exit != 0 {
		t.Errorf("storm: %s", r)
	}
	rig.Held(t, p.Pid())
	to.Nothing(t)
	to.once(t)
	f.sensor.Deny(t, q.ID)
	refused(t, p)
	own := f.raw(t)
	p = s.Start(t, own.Egress("sigcont -n 200")...)
	q = own.asked(t)
	rig.Held(t, p.Pid())
	own.Nothing(t)
	f.sensor.Deny(t, q.ID)
	refused(t, p)
	own.Nothing(t)
	own.once(t)
}

// escapes: what a command is called can do nothing to the terminal of who is asked (B51).
func (f *fixture) escapes(t *testing.T) {
	to, s := f.web(t), f.guard(t, "secret")
	nasty := "X: \x1b[2J\x1b]0;owned\x07\r\u202e" + "p\u0430ypal \u200b"
	p := s.Start(t, append(to.Curl(), "-H", nasty)...)
	q := to.asked(t)
	for name, shown := range map[string]string{
		"pending": f.sensor.Must(t, "pending"), "pending --json": f.sensor.Must(t, "pending", "--json"),
		"events": f.sensor.Must(t, "events", "--text", to.Text), "events --json": f.sensor.Must(t, "events", "--json", "--text", to.Text),
	} {
		if strings.ContainsAny(shown, "\x1b\x07\r\u202e\u200b\u0430") {
			t.Errorf("weir %s passes on what a terminal obeys, or an eye believes: %q", name, shown)
		}
		if !strings.Contains(shown, "owned") {
			t.Errorf("weir %s does not show the command: %q", name, shown)
		}
	}
	if shown := f.sensor.Must(t, "pending"); !strings.Contains(shown, `\x1b`) || !strings.Contains(shown, `\u202e`) {
		t.Errorf("weir pending does not make the escapes visible: %q", shown)
	}
	f.sensor.Deny(t, q.ID)
	p.Wait(t)
	to.Nothing(t)
}

// approve answers yes and waits for a line of the command.
func (to target) approve(t *testing.T, p *rig.Proc, line string) {
	t.Helper()
	to.f.sensor.Approve(t, to.asked(t).ID)
	if p.WaitLine(line, rig.Late) == "" {
		p.Signal(t, syscall.SIGKILL)
		t.Fatalf("the approved command did not say %q: %s", line, p.Wait(t))
	}
}

// floodsLeaveRoom: what one container is refused leaves room for the questions of others (B95).
func (f *fixture) floodsLeaveRoom(t *testing.T) {
	const more = "17000" // than the kernel has room for
	flooder, s, to := f.guard(t, "secret"), f.guard(t, "secret"), f.raw(t)
	p := flooder.Start(t, "egress", "udp-many", "-n", more, "-to", "10.90.0.1:443", "-wait", "open")
	if p.WaitLine("refused to "+more, 2*rig.Late) == "" {
		t.Fatal(p.Wait(t))
	}
	held := s.Start(t, to.Egress("tcp")...)
	f.sensor.Approve(t, to.asked(t).ID)
	succeeded(t, held, "ok")
	to.Arrived(t)
	p.Close(t)
	refused(t, p)
}
