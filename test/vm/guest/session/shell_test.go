//go:build vmguest

package session

import (
	"strings"
	"testing"

	"weir/test/vm/guest/rig"
)

// shell: on a terminal a command waits as anywhere, and its shell shows nothing of that. One that is interrupted meanwhile ends at
// once, and the approved retry of the same command passes (G15, F05).
func (f *fixture) shell(t *testing.T) {
	to := f.web(t)
	term := f.sensor.GuardPTY(t, "shell", "bash", "--norc", "--noprofile", "-i")
	// what is typed never looks like what is waited for
	begin := func(command string) { t.Helper(); term.Type(t, command+"; echo \"[$?]\"\n") }
	run := func(command, want string) string {
		t.Helper()
		begin(command)
		return term.Expect(t, want)
	}
	curl := strings.Join(to.Curl(), " ")
	run("PS1='> '; type -t curl", "[0]")
	run(curl, "answer[0]")
	f.sensor.Taint(t, "shell", "secret")
	mark := f.world.Mark(t)

	begin(curl)
	q := to.asked(t)
	if !q.Held || !strings.Contains(strings.Join(q.Process.Argv, " "), to.URL()) {
		t.Errorf("the question: %+v", q)
	}
	rig.Held(t, q.Process.PID)
	if shown := f.sensor.Must(t, "pending"); !strings.Contains(shown, "held") {
		t.Errorf("weir pending does not say that it is held:\n%s", shown)
	}
	f.world.Quiet(t, mark, to.Port) // the end of the first connection may come now
	f.sensor.Approve(t, q.ID)
	if shown := term.Expect(t, "answer[0]"); strings.Contains(shown, "Stopped") {
		t.Errorf("the shell saw that its command was held: %q", shown)
	}

	term.Type(t, curl+"\n")
	q = to.again(t, q)
	rig.Held(t, q.Process.PID)
	mark = f.world.Mark(t)
	term.Type(t, "\x03")
	term.Expect(t, "^C")
	term.Expect(t, "> ")
	run("echo \"interrupted $?\"", "interrupted 130")
	f.sensor.Must(t, "approve", q.ID)
	begin(curl + ".other")
	other := to.again(t, q)
	f.world.Nothing(t, mark, to.Text+".other", 0)
	f.world.Quiet(t, mark, to.Port)
	f.sensor.Deny(t, other.ID)
	term.Expect(t, "[7]")
	run(curl, "answer[0]")
	f.world.Nothing(t, mark, to.Text+".other", 0) // another command uses no approval
	begin(curl)                                   // used once
	last := to.again(t, q)
	f.sensor.Deny(t, last.ID)
	term.Expect(t, "[7]")

	// what is typed while a command is held: Ctrl-Z stops it once it goes on, as the shell shows then
	f.suspended(t, term)

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

// suspended stops a held command from its terminal: the kernel stops what is frozen when it goes on, and not before.
func (f *fixture) suspended(t *testing.T, term *rig.Terminal) {
	t.Helper()
	to := f.web(t)
	term.Type(t, strings.Join(to.Curl(), " ")+"\n")
	q := to.asked(t)
	rig.Held(t, q.Process.PID)
	term.Type(t, "\x1a")
	term.Expect(t, "^Z")
	rig.Held(t, q.Process.PID)
	to.Nothing(t)
	f.sensor.Approve(t, q.ID)
	term.Expect(t, "Stopped")
	term.Expect(t, "> ")
	to.Nothing(t)
	term.Type(t, "fg; echo \"[$?]\"\n")
	term.Expect(t, "answer[0]")
	to.Arrived(t)
	to.once(t)
}
