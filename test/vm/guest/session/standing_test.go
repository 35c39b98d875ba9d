//go:build vmguest

package session

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/event"
	"weir/test/vm/guest/rig"
)

// lasting is a shell whose uploads to one place are let out by an approval that goes on.
type lasting struct {
	target
	session *rig.Session
	shell   *rig.Proc
	id      string // of the approval
	n       int
}

// lasts approves the first upload of a new shell with flags.
func (f *fixture) lasts(t *testing.T, flags ...string) *lasting {
	t.Helper()
	return f.lastsIn(t, f.guard(t, "corruption", "secret"), flags...)
}

func (f *fixture) lastsIn(t *testing.T, s *rig.Session, flags ...string) *lasting {
	t.Helper()
	l := &lasting{target: f.web(t), session: s}
	l.shell = l.session.Start(t, "bash")
	t.Cleanup(func() { l.shell.Close(t); l.shell.Signal(t, 9) })
	text := l.upload(t)
	q, ok := l.asks(t, l.shell, text)
	if !ok {
		t.Fatalf("%s was not asked about", text)
	}
	l.id = q.ID
	f.sensor.Must(t, append([]string{"approve", q.ID, "--yes", "--for"}, flags...)...)
	l.arrived(t, text)
	return l
}

// upload has the shell send a text of its own, with more words of its command.
func (l *lasting) upload(t *testing.T, more ...string) string {
	t.Helper()
	l.n++
	text := fmt.Sprintf("lasting%d.%d.end", l.n, l.Port)
	l.shell.Input(t, strings.Join(append([]string{l.target.upload(text)}, more...), " ")+"\n")
	return text
}

func (l *lasting) arrived(t *testing.T, text string) {
	t.Helper()
	if q, asked := l.asks(t, l.shell, text); asked {
		t.Errorf("%s was asked about, though an approval covers it", text)
		l.f.sensor.Deny(t, q.ID)
		return
	}
	if !l.f.world.WaitGot(text, rig.Late) {
		t.Errorf("%s did not arrive", text)
	}
}

// stays wants a text asked about and, denied, not to arrive.
func (l *lasting) stays(t *testing.T, text, when string) {
	t.Helper()
	q, asked := l.asks(t, l.shell, text)
	if !asked {
		t.Errorf("%s: %s was not asked about", when, text)
		return
	}
	l.f.sensor.Deny(t, q.ID)
	l.f.world.Nothing(t, rig.Marks{}, text, 0)
}

// ended waits for the event that tells why the approval is over.
func (l *lasting) ended(t *testing.T, end event.ApprovalEnd) {
	t.Helper()
	l.f.sensor.Event(t, func(e event.Event) bool { return e.Approval != nil && e.Approval.ID == l.id && e.Approval.End == end })
	if list := l.f.sensor.Must(t, "approvals"); strings.Contains(list, l.id) {
		t.Errorf("still listed: %s", list)
	}
}

// standing: an approval for longer lets out what it says, over a restart and until it ends, and nothing else.
func (f *fixture) standing(t *testing.T) {
	t.Run("program", func(t *testing.T) {
		l := f.lasts(t, "30m", "--who", "program")
		l.arrived(t, l.upload(t))
		if list := f.sensor.Must(t, "approvals"); !strings.Contains(list, l.id) || !strings.Contains(list, "let out 2 times") {
			t.Errorf("listed: %s", list)
		}
		other := f.web(t) // the program, to another place
		l.shell.Input(t, strings.Join(other.Curl(), " ")+"\n")
		(&lasting{target: other, shell: l.shell}).stays(t, other.Text, "another place")
		text := fmt.Sprintf("python.%d.end", l.Port) // another program, to the place
		l.shell.Input(t, fmt.Sprintf("python3 -c 'import socket,sys; socket.create_connection((\"%s\", %d)).sendall(sys.argv[1].encode())' %s\n", rig.World4, l.Port, text))
		l.stays(t, text, "another program")
		f.sensor.Kill(t)
		f.sensor.Restart(t)
		l.arrived(t, l.upload(t))
		f.sensor.Must(t, "revoke", l.id, "--why", "enough")
		l.ended(t, event.Revoked)
		l.stays(t, l.upload(t), "revoked")
		f.sensor.Kill(t)
		f.sensor.Restart(t)
		l.stays(t, l.upload(t), "revoked, after a restart")
	})
	t.Run("process", func(t *testing.T) {
		l := f.lasts(t, "session", "--scope", "2")
		l.arrived(t, l.upload(t))
		second := l.session.Start(t, "bash")
		t.Cleanup(func() { second.Close(t); second.Signal(t, 9) })
		elsewhere := &lasting{target: l.target, session: l.session, shell: second, n: 10}
		elsewhere.stays(t, elsewhere.upload(t), "below another shell")
		l.shell.Signal(t, 9)
		l.ended(t, event.Ended)
	})
	t.Run("taint", func(t *testing.T) {
		l := f.lasts(t, "session", "--who", "container")
		l.arrived(t, l.upload(t))
		name := l.session.Name
		f.sensor.Must(t, "untaint", name, "secret", "--why", "test")
		l.arrived(t, l.upload(t))
		f.sensor.Taint(t, name, "secret")
		l.ended(t, event.NewTaint)
		l.stays(t, l.upload(t), "tainted anew")
	})
	t.Run("taint that comes while no sensor runs", func(t *testing.T) {
		defer f.sensor.Policy(t, "")
		dir := t.TempDir()
		secret, read := filepath.Join(dir, "secret"), filepath.Join(dir, "read")
		signal(t, secret)
		f.sensor.Policy(t, "taint:\n  secret_files: ["+secret+"]\n")
		l := f.lastsIn(t, f.guard(t, "corruption"), "session", "--who", "container")
		f.sensor.Kill(t)
		l.shell.Input(t, "read x <"+secret+"; mkdir "+read+"\n")
		rig.Eventually(t, "the secret was read", func() bool { _, err := os.Stat(read); return err == nil })
		f.sensor.Restart(t)
		l.ended(t, event.NewTaint)
		if why := f.sensor.Must(t, "why", l.session.Name); !strings.Contains(why, "found when the sensor started") {
			t.Errorf("why: %s", why)
		}
		f.sensor.Must(t, "untaint", l.session.Name, "secret", "--why", "test")
		l.stays(t, l.upload(t), "what it was given for is all that is left")
	})
	t.Run("time", func(t *testing.T) {
		l := f.lasts(t, "15s", "--who", "container")
		l.ended(t, event.Expired)
		l.stays(t, l.upload(t), "when its time is over")
	})
	t.Run("B159 bytes of two places", func(t *testing.T) {
		first := f.lasts(t, "30m", "--who", "container", "--bytes", "64KiB")
		second := f.lastsIn(t, first.session, "30m", "--who", "container", "--bytes", "64KiB")
		back := func() bool { return !strings.Contains(f.sensor.Must(t, "approvals"), "; 0 of 65536") }
		rig.Eventually(t, "what the first did not use comes back", back)
		first.arrived(t, first.upload(t, "http://"+second.To+"/"))
		rig.Eventually(t, "what one process did not use of either comes back", back)
	})
	t.Run("bytes", func(t *testing.T) {
		l := f.lasts(t, "30m", "--who", "container", "--bytes", "64KiB")
		text, file := fmt.Sprintf("beyond.%d.end", l.Port), filepath.Join(t.TempDir(), "big")
		if err := os.WriteFile(file, append(bytes.Repeat([]byte("x"), 1<<20), text...), 0o644); err != nil {
			t.Fatal(err)
		}
		rig.Eventually(t, "what the first did not use comes back", func() bool { return !strings.Contains(f.sensor.Must(t, "approvals"), "; 0 of 65536") })
		l.shell.Input(t, l.target.upload("@"+file)+"\n")
		f.sensor.Event(t, func(e event.Event) bool {
			return e.Grant != nil && e.Grant.State == "spent" && e.Container != nil && e.Container.Name == l.session.Name
		})
		f.world.Nothing(t, rig.Marks{}, text, 0)
	})
	t.Run("who waits", func(t *testing.T) {
		to, texts := f.web(t), make([]string, 5)
		var script strings.Builder
		for i := range texts {
			texts[i] = fmt.Sprintf("waits%d.%d.end", i, to.Port)
			script.WriteString(to.upload(texts[i]) + " & ")
		}
		shell := f.guard(t, "corruption", "secret").Start(t, "bash", "-c", script.String()+"wait")
		t.Cleanup(func() { shell.Signal(t, 9) })
		rig.Eventually(t, "all are held", func() bool { return f.waiting(t, to) == len(texts) })
		if list := f.sensor.Must(t, "pending"); !strings.Contains(list, "4 more") {
			t.Errorf("not told together: %s", list)
		}
		to.Nothing(t)
		f.sensor.Must(t, "approve", to.asked(t).ID, "--yes", "--for", "10m", "--who", "program", "--bytes", "1GiB")
		for _, text := range texts {
			if !f.world.WaitGot(text, rig.Late) {
				t.Errorf("%s did not arrive", text)
			}
		}
		succeeded(t, shell, "")
		if n := f.waiting(t, to); n > 0 {
			t.Error(n, "questions still wait")
		}
	})
}

// waiting counts the questions about a place whose askers wait.
func (f *fixture) waiting(t *testing.T, to target) int {
	n := 0
	for _, q := range f.sensor.Pending(t) {
		if to.About(q) && rig.Frozen(q.Process.PID) {
			n++
		}
	}
	return n
}
