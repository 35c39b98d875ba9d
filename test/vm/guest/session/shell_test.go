//go:build vmguest

package session

import (
	"strings"
	"testing"

	"weir/internal/event"
)

// shell: on a terminal nothing is held, since a shell would show it as stopped. It is refused at once, a question is asked, and the
// approved retry of the same command passes (G15).
func (f *fixture) shell(t *testing.T) {
	to := f.web(t)
	term := f.sensor.GuardPTY(t, "shell", "bash", "--norc", "--noprofile", "-i")
	// what is typed never looks like what is waited for
	run := func(command, want string) string {
		t.Helper()
		term.Type(t, command+"; echo \"[$?]\"\n")
		return term.Expect(t, want)
	}
	run("PS1='> '; type -t curl", "[0]")
	run(strings.Join(to.Curl(), " "), "answer[0]")
	f.sensor.Taint(t, "shell", "secret")
	mark := f.world.Mark(t)

	run(strings.Join(to.Curl(), " "), "[7]")
	q := to.asked(t)
	if q.Held || !strings.Contains(strings.Join(q.Process.Argv, " "), to.URL()) {
		t.Errorf("the question: %+v", q)
	}
	if shown := f.sensor.Must(t, "pending"); !strings.Contains(shown, "refused with EPERM") {
		t.Errorf("weir pending does not say that a retry is needed:\n%s", shown)
	}
	f.world.Quiet(t, mark, to.Port) // the end of the first connection may come now

	f.sensor.Must(t, "approve", q.ID)
	f.sensor.Event(t, func(e event.Event) bool { return e.Kind == event.Grant && e.Question == q.ID }) // it can be claimed
	run("curl -sS -m 60 "+to.URL()+".other", "[7]")
	other := to.again(t, q)
	f.world.Nothing(t, mark, to.Text+".other", 0)
	f.world.Quiet(t, mark, to.Port)
	run(strings.Join(to.Curl(), " "), "answer[0]")
	f.world.Nothing(t, mark, to.Text+".other", 0) // another command uses no approval
	f.sensor.Deny(t, other.ID)
	run(strings.Join(to.Curl(), " "), "[7]") // used once
	f.sensor.Deny(t, to.asked(t).ID)

	// job control is undisturbed, in what has a verdict and in what never needed one
	run("sleep 100 & true", "[0]")
	run("jobs", "Running")
	term.Expect(t, "[0]")
	run("kill %1", "[0]")
	// it answers only when it has the terminal
	term.Type(t, "bash -c 'echo $((6*7)); while read x; do echo $((x*7)); done'\n")
	term.Expect(t, "42\r\n")
	term.Type(t, "\x1a")
	term.Expect(t, "Stopped")
	term.Expect(t, "> ") // after the command's text, which fg shows as well
	term.Type(t, "fg\n")
	term.Expect(t, "done'\r\n")
	term.Type(t, "3\n")
	term.Expect(t, "21\r\n")
	term.Type(t, "\x03")
	term.Expect(t, "^C")
	term.Expect(t, "> ") // what is typed earlier is lost with the job's input
	run("echo \"interrupted $?\"", "interrupted 130")
	term.Expect(t, "[0]")
	term.Type(t, "exit\n")
	term.Expect(t, "exit")
}
