//go:build vmguest

package session

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/event"
	"weir/internal/gate"

	"weir/test/vm/guest/rig"
)

// pair is two commands that go to one place, so that nothing but the scope of a grant tells them apart: A says the place's text, and is
// let out; B says another one.
type pair struct {
	target
	a, b string
	not  string // what B says
}

func (to target) pair() pair {
	p := pair{target: to, a: strings.Join(to.Curl(), " "), not: fmt.Sprintf("other.%d.end", to.Port)}
	p.b = p.upload(p.not)
	return p
}

func (to target) upload(text string) string {
	return "curl -sS -m 600 --data-binary " + text + " http://" + to.To + "/"
}

// written has the commands in place of the letters.
func (p pair) written(script string) string {
	return strings.NewReplacer("A", p.a, "B", p.b).Replace(script)
}

// When B begins.
const (
	after    = iota // once A has ended
	together        // at once: both are asked about before one is answered
	beside          // on input, while A, which gets no answer from who only listens, goes on
)

// ways are those in which shells and tools run A and B.
var ways = []struct {
	name, script string
	when         int
}{
	{"list", "A; B", after},
	{"sh", "sh -c 'A; B'", after},
	{"subshell", "(A; B)", after},
	{"function", "f() { A; B; }; f", after},
	{"loop", "for c in 'A' 'B'; do $c; done", after},
	{"substitution", "x=$(A); B", after},
	{"wrapped", "env nice timeout 600 A; B", after},
	{"xargs", `printf '%s\n' 'A' 'B' | xargs -I+ sh -c +`, after},
	{"find", `find / -maxdepth 0 -exec A \; -exec B \;`, after},
	{"fed_by_a_pipe", `printf '%s\n' 'A' 'B' | bash`, after},
	{"pipe_fills", "A | B --data-binary @-", after},
	{"pipe", "A | B", together},
	{"at_once", "A & B; wait", together},
	{"xargs_at_once", `printf '%s\n' 'A' 'B' | xargs -P2 -I+ sh -c +`, together},
	{"exec_after", "A && exec B", after},
	{"exec_in_a_subshell", "(exec A); B", after},
	{"exec_beside_an_older_child", "{ read; B; kill $$; } <&0 & exec A", beside},
	{"background", "A & read; B; kill $!", beside},
	{"coprocess", "coproc A; read; B; kill $!", beside},
}

// narrow: what is approved is let out, and not what its shell runs besides, least of all what is denied (F01, G16, G24).
func (f *fixture) narrow(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			to := f.web
			if way.when == beside {
				to = f.raw
			}
			p := to(t).pair()
			shell := f.guard(t, "corruption", "secret").Start(t, "bash", "-c", p.written(way.script))
			if way.when == together {
				p.asks(t, shell, p.not)
			}
			p.alone(t, shell, "\n", p.not)
		})
	}
	t.Run("long_lived_shell", func(t *testing.T) {
		p := f.web(t).pair()
		shell := f.guard(t, "corruption", "secret").Start(t, "bash")
		shell.Input(t, p.a+"\n")
		p.alone(t, shell, p.b+"\n", p.not)
	})
	t.Run("script", func(t *testing.T) {
		p, file := f.web(t).pair(), filepath.Join(t.TempDir(), "fetch.sh")
		third := fmt.Sprintf("third.%d.end", p.Port)
		if err := os.WriteFile(file, []byte(p.a+"\n"+p.b+"\n"+p.upload(third)+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		shell := f.guard(t, "corruption", "secret").Start(t, "bash", file)
		p.alone(t, shell, "", p.not, third)
	})
}

// alone approves A, gives the shell input once it has arrived, and wants each of the others asked about and, denied, not to arrive.
func (p pair) alone(t *testing.T, shell *rig.Proc, input string, others ...string) {
	t.Helper()
	q, ok := p.asks(t, shell, p.Text)
	if !ok {
		t.Fatalf("%s was not asked about", p.Text)
	}
	p.f.sensor.Approve(t, q.ID)
	p.Arrived(t)
	shell.Input(t, input)
	shell.Close(t)
	for _, text := range others {
		if q, ok := p.asks(t, shell, text); ok {
			p.f.sensor.Deny(t, q.ID)
		} else {
			t.Errorf("%s was not asked about", text)
		}
	}
	if t.Failed() {
		shell.Signal(t, 9) // nobody answers what got out
	}
	shell.Wait(t)
	for _, text := range others {
		p.f.world.Nothing(t, rig.Marks{}, text, 0)
	}
}

// asks waits for the question about the command that says text, unless that gets out or the shell ends first.
func (to target) asks(t *testing.T, shell *rig.Proc, text string) (asked gate.Question, ok bool) {
	t.Helper()
	rig.Eventually(t, text+" is asked about, or gets out, or its shell ends", func() bool {
		_, ended := shell.WaitFor(0)
		for _, q := range to.f.sensor.Pending(t) {
			if to.About(q) && strings.Contains(strings.Join(q.Process.Argv, " "), text) {
				asked, ok = q, true
			}
		}
		return ok || ended || to.f.world.Got(text)
	})
	return asked, ok
}

// passed: nor what a reviewer lets out (F01, G7, G24).
func (f *fixture) passed(t *testing.T) {
	f.sensor.Policy(t, "cop:\n  reviewer: static\n")
	defer f.sensor.Policy(t, "")
	p := f.web(t).pair()
	shell := f.guard(t, "corruption").Start(t, "bash")
	shell.Input(t, p.a+"\n")
	p.Arrived(t)
	shell.Input(t, p.b+"\n")
	shell.Close(t)
	shell.Wait(t)
	p.f.world.Nothing(t, rig.Marks{}, p.not, 0)
	flagged := func(e event.Event) bool {
		return e.Kind == event.Connect && e.Verdict != nil && e.Verdict.Reason == string(gate.Flagged) &&
			e.Process != nil && strings.Contains(strings.Join(e.Process.Argv, " "), p.not)
	}
	if !t.Failed() {
		f.sensor.Event(t, flagged)
	}
}

// parent connects, sends the text, and runs a command.
const parent = `
import socket, subprocess, sys
host, port, text, *command = sys.argv[1:]
socket.create_connection((host, int(port))).sendall(text.encode())
sys.exit(subprocess.run(command).returncode)`

// descends: what an approved process starts itself goes out with it, unasked (F01, G24).
func (f *fixture) descends(t *testing.T) {
	to, s := f.raw(t), f.guard(t, "corruption", "secret")
	child := to
	child.Text = fmt.Sprintf("child.%d.end", to.Port)
	p := s.Start(t, "python3", "-c", parent, rig.World4, itoa(to.Port), to.Text, "bash", "-c", strings.Join(child.Egress("tcp"), " ")+"; exit $?")
	f.sensor.Approve(t, to.asked(t).ID)
	if q, asked := child.asks(t, p, child.Text); asked {
		t.Errorf("the child of an approved process was asked about: %+v", q)
		f.sensor.Deny(t, q.ID)
	}
	succeeded(t, p, "ok")
	to.Arrived(t)
	child.Arrived(t)
}

// orphaned: whose parent is gone waits as well: the agent lives (F05).
func (f *fixture) orphaned(t *testing.T) {
	const all, let = 30, 3
	to, s, said := f.web(t), f.guard(t, "corruption", "secret"), filepath.Join(t.TempDir(), "said")
	curl := strings.Join(to.Curl(), " ")
	// the agent closes its input once it has seen the end of the shell
	shell := s.Start(t, "bash", "-c", fmt.Sprintf("for i in {10..%d}; do setsid sh -c 'read x; exec %s.'$i' -v' <&0 >>%s 2>&1 & done", all+9, curl, said))
	shell.Wait(t)
	var asked []gate.Question
	rig.Eventually(t, "all are asked about", func() bool {
		asked = asked[:0]
		for _, q := range f.sensor.Pending(t) {
			if to.About(q) {
				asked = append(asked, q)
			}
		}
		return len(asked) == all
	})
	held := 0
	for _, q := range asked {
		if q.Held {
			held++
		}
	}
	refused := func() int {
		b, err := os.ReadFile(said)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(b), "Operation not permitted")
	}
	rig.Eventually(t, "each is held or refused", func() bool { return held+refused() >= all })
	if n := refused(); held < all || n > 0 {
		t.Errorf("of %d, %d are held and %d got EPERM", all, held, n)
	}
	texts := make([]string, all)
	for i, q := range asked {
		texts[i] = strings.TrimPrefix(q.Process.Argv[4], "http://"+to.To+"/")
		if i < let {
			f.sensor.Approve(t, q.ID)
		} else {
			f.sensor.Deny(t, q.ID)
		}
	}
	for i, q := range asked {
		rig.Eventually(t, texts[i]+" is over", func() bool { return !exists(fmt.Sprint("/proc/", q.Process.PID))() })
	}
	f.world.Flush(t)
	for i, text := range texts {
		if got, want := f.world.Got(text), i < let; got != want {
			t.Errorf("%s: arrived %t, want %t", text, got, want)
		}
	}
}

// visits sends a text to each place that its input names.
const visits = `
import socket, sys
for line in sys.stdin:
    host, port, text = line.split()
    socket.create_connection((host, int(port))).sendall(text.encode())
`

// ownTime: approving another destination for the same process does not prolong the ones before (G24).
func (f *fixture) ownTime(t *testing.T) {
	f.sensor.Policy(t, "grant: {seconds: 10}\n")
	defer f.sensor.Policy(t, "")
	first := f.raw(t)
	p := f.guard(t, "secret").Start(t, "python3", "-c", visits)
	visit := func(to target, text string) (gate.Question, bool) {
		p.Input(t, fmt.Sprintf("%s %d %s\n", rig.World4, to.Port, text))
		var asked gate.Question
		rig.Eventually(t, text+" is asked about, or gets out", func() bool {
			for _, q := range f.sensor.Pending(t) {
				if to.About(q) {
					asked = q
				}
			}
			return asked.ID != "" || f.world.Got(text)
		})
		return asked, asked.ID != ""
	}
	let := func(to target) {
		q, asked := visit(to, to.Text)
		if !asked {
			t.Fatalf("%s was not asked about", to.Text)
		}
		f.sensor.Approve(t, q.ID)
		to.Arrived(t)
	}
	let(first)
	var prolonged time.Time
	for i, since := 0, time.Now(); time.Since(since) < rig.Late; i++ {
		if time.Since(prolonged) > time.Second { // a container may ask 64 times in a row
			let(f.raw(t)) // each of which makes the grant last longer
			prolonged = time.Now()
		}
		if _, asked := visit(first, fmt.Sprintf("again.%d.%d.end", first.Port, i)); asked {
			p.Signal(t, syscall.SIGKILL)
			p.Wait(t)
			return
		}
	}
	t.Error("the first destination stays open as long as others are approved")
}

// claimTaints: an approval that is taken up later lets out also where nobody trusts what comes back, which taints by its own first packet (G2, G24).
func (f *fixture) claimTaints(t *testing.T) {
	f.sensor.Policy(t, "hold: false\ntaint: {trusted_networks: [192.0.2.0/24]}\n")
	defer f.sensor.Policy(t, "")
	to, s := f.raw(t), f.guard(t, "secret")
	connects := []string{"python3", "-c", `
import socket, sys
to = socket.create_connection((sys.argv[1], int(sys.argv[2])))
input()
to.sendall(sys.argv[3].encode())
`, rig.World4, strconv.Itoa(to.Port), to.Text}
	if r := s.Run(t, connects...); r.Exit == 0 {
		t.Fatalf("not refused: %s", r)
	}
	f.sensor.Approve(t, to.asked(t).ID)
	p := s.Start(t, connects...)
	f.sensor.Event(t, func(e event.Event) bool {
		return e.Change != nil && e.Container.Name == s.Name && slices.Contains(e.Change.Set, "corruption")
	})
	f.sensor.Event(t, func(e event.Event) bool {
		return e.Kind == event.Grant && e.Container.Name == s.Name && e.Grant.State == "claimed"
	})
	p.Input(t, "\n")
	to.Arrived(t)
	if r := p.Wait(t); r.Exit != 0 {
		t.Error(r)
	}
}

// clearedTaint: a grant goes on when one of the bits is cleared that it was given under, but is not for what sets that bit again; nor is one that is
// given to a question from before (G24).
func (f *fixture) clearedTaint(t *testing.T) {
	f.sensor.Policy(t, "grant: {seconds: 600}\n")
	defer f.sensor.Policy(t, "")
	to, s := f.raw(t), f.guard(t, "corruption", "secret")
	p := s.Start(t, "python3", "-c", visits)
	defer func() { p.Signal(t, syscall.SIGKILL); p.Wait(t) }()
	visit := func(to target, text string) { p.Input(t, fmt.Sprintf("%s %d %s\n", rig.World4, to.Port, text)) }
	visit(to, to.Text)
	q := to.asked(t)
	f.sensor.Approve(t, q.ID)
	to.Arrived(t)
	clearAndSet := func(meanwhile func()) {
		f.sensor.Must(t, "untaint", s.Name, "secret", "--why", "test")
		meanwhile()
		f.sensor.Taint(t, s.Name, "secret")
	}
	clearAndSet(func() {
		visit(to, "cleared."+to.Text)
		if !f.world.WaitGot("cleared."+to.Text, rig.Late) {
			t.Error("a grant ended with taint that was cleared")
		}
	})
	f.sensor.Event(t, func(e event.Event) bool {
		return e.Kind == event.Grant && e.Container.Name == s.Name && e.Grant.State == "revoked"
	})
	visit(to, "again."+to.Text)
	again := to.again(t, q)
	clearAndSet(func() {})
	f.sensor.Approve(t, again.ID)
	last := to.again(t, again)
	f.world.Nothing(t, rig.Marks{}, "again."+to.Text, 0)
	f.sensor.Approve(t, last.ID)
	if !f.world.WaitGot("again."+to.Text, rig.Late) {
		t.Error("it did not arrive once it was approved for the new taint")
	}
}

// equals: of those that ask the same, one goes on, and the others are asked about again (G16).
func (f *fixture) equals(t *testing.T) {
	to := f.web(t)
	p := to.pair()
	shell := f.guard(t, "secret").Start(t, "bash", "-c", p.written("A & A & A & wait"))
	var old gate.Question
	for left := 3; left > 1; left-- {
		q := f.sensor.Asked(t, func(q gate.Question) bool { return to.About(q) && q.ID != old.ID && q.Askers == left })
		f.sensor.Approve(t, q.ID)
		f.sensor.Event(t, func(e event.Event) bool { return e.Kind == event.Grant && e.Question == q.ID })
		old = q
	}
	f.sensor.Deny(t, to.again(t, old).ID)
	if r := shell.Wait(t); strings.Count(r.Stdout, "answer") != 2 {
		t.Errorf("two of three were approved: %s", r)
	}
}
