//go:build vmguest

package session

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/test/vm/guest/rig"
)

// watching runs a command and tells all that a parent can learn of it.
const watching = `
import os, sys
pid = os.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
while True:
    _, status = os.waitpid(pid, os.WUNTRACED | os.WCONTINUED)
    print(" stopped" if os.WIFSTOPPED(status) else " continued" if os.WIFCONTINUED(status) else " exit %d" % os.waitstatus_to_exitcode(status), flush=True)
    if os.WIFEXITED(status) or os.WIFSIGNALED(status):
        break
`

// unseen: whoever waits for a held command sees its end, and nothing before (F05).
func (f *fixture) unseen(t *testing.T) {
	s := f.guard(t, "corruption", "secret")
	type parent struct {
		name, want string
		argv       func(command string, to target) []string
		to         target
		p          *rig.Proc
		q          gate.Question
	}
	all := []*parent{
		{name: "waitpid", want: "answer exit 0\n", argv: func(_ string, to target) []string {
			return append([]string{"python3", "-c", watching}, to.Curl()...)
		}},
		{name: "job control", want: "answer[0]\n", argv: func(command string, _ target) []string {
			return []string{"bash", "-c", "set -m; " + command + `; echo "[$?]"`}
		}},
		{name: "job in the background", want: "answer[0]\n", argv: func(command string, _ target) []string {
			return []string{"bash", "-c", "set -bm; " + command + ` & wait %1; echo "[$?]"`}
		}},
		{name: "sudo", want: "answer[0]\n", argv: func(command string, _ target) []string {
			return []string{"bash", "-c", "sudo -n " + command + `; echo "[$?]"`}
		}},
		{name: "su", want: "answer[0]\n", argv: func(command string, _ target) []string {
			return []string{"su", "agent", "-s", "/bin/bash", "-c", command + `; echo "[$?]"`}
		}},
		{name: "tmux", want: "answer[0]\n", argv: func(command string, to target) []string {
			out, tmux := "/tmp/"+to.Text, "tmux -L "+to.Text
			return []string{"bash", "-c", fmt.Sprintf(`%s -f /dev/null new-session -d '%s >%s; echo "[$?]" >>%s; %s wait-for -S done' && %s wait-for done && cat %s`,
				tmux, command, out, out, tmux, tmux, out)}
		}},
	}
	for _, c := range all {
		c.to = f.web(t)
		c.p = s.Start(t, c.argv(strings.Join(c.to.Curl(), " "), c.to)...)
		if c.q = c.to.asked(t); !c.q.Held {
			t.Errorf("%s: refused, not held", c.name)
		}
		rig.Held(t, c.q.Process.PID)
		c.to.Nothing(t)
	}
	for _, c := range all {
		f.sensor.Approve(t, c.q.ID)
		if r := c.p.Wait(t); r.Exit != 0 || r.Stdout != c.want {
			t.Errorf("%s: want %q, got %s", c.name, c.want, r)
		}
		c.to.Arrived(t)
		c.to.once(t)
	}
}

// handles connects, again whenever it is told to after a failure, and sends the text; a handler tells of each signal that is named.
const handles = `
import errno, signal, socket, sys
host, port, text, *names = sys.argv[1:]
for name in names:
    signal.signal(getattr(signal, name), lambda number, frame: number == signal.SIGALRM or print(signal.Signals(number).name, flush=True))
if "SIGALRM" in names:
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
while True:
    try:
        s = socket.create_connection((host, int(port)))
        break
    except OSError as e:
        print(errno.errorcode[e.errno], flush=True)
        sys.stdin.readline()
signal.setitimer(signal.ITIMER_REAL, 0)
s.sendall(text.encode())
print("sent", flush=True)
`

func (to target) handles(names ...string) []string {
	return append([]string{"python3", "-c", handles, rig.World4, itoa(to.Port), to.Text}, names...)
}

// signals: what ends a command ends it while it is held, its handlers run, and all else leaves it held (F05, B38).
func (f *fixture) signals(t *testing.T) {
	s := f.guard(t, "secret")
	t.Run("timeout", func(t *testing.T) {
		to := f.web(t)
		p := s.Start(t, append([]string{"timeout", "5"}, to.Curl()...)...)
		q := to.asked(t)
		if r := p.Wait(t); r.Exit != 124 || r.Stdout != "" {
			t.Errorf("timeout: want exit 124, got %s", r)
		}
		to.Nothing(t)
		f.sensor.Approve(t, q.ID)
		succeeded(t, s.Start(t, to.Curl()...), "answer") // the next try takes it up
		to.once(t)
	})
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run("ends by "+sig.String(), func(t *testing.T) {
			to := f.web(t)
			p := s.Start(t, to.Curl()...)
			q := to.asked(t)
			rig.Held(t, q.Process.PID)
			p.Signal(t, sig)
			if r := p.Wait(t); r.Exit != 128+int(sig) {
				t.Errorf("want exit %d, got %s", 128+sig, r)
			}
			to.Nothing(t)
			f.sensor.Deny(t, q.ID)
		})
	}
	t.Run("handler for SIGTERM", func(t *testing.T) {
		to := f.raw(t)
		p := s.Start(t, to.handles("SIGTERM")...)
		q := to.asked(t)
		rig.Held(t, q.Process.PID)
		p.Signal(t, syscall.SIGTERM)
		for _, want := range []string{"SIGTERM", "EPERM"} {
			if p.WaitLine(want, rig.Late) == "" {
				t.Fatalf("it did not say %s", want)
			}
		}
		if again := to.asked(t); again.ID != q.ID {
			t.Errorf("the question was %s and is %s", q.ID, again.ID)
		}
		to.Nothing(t)
		f.sensor.Approve(t, q.ID)
		f.sensor.Event(t, func(e event.Event) bool { return e.Kind == event.Grant && e.Question == q.ID })
		p.Input(t, "\n")
		succeeded(t, p, "sent")
		to.Arrived(t)
		to.once(t)
	})
	for _, name := range []string{"SIGALRM", "SIGCONT"} {
		t.Run("handler for "+name, func(t *testing.T) {
			to := f.raw(t)
			p := s.Start(t, to.handles(name)...)
			q := to.asked(t)
			rig.Held(t, q.Process.PID)
			to.Nothing(t)
			f.sensor.Approve(t, q.ID)
			succeeded(t, p, "sent")
			to.Arrived(t)
			to.once(t)
			if r := p.Wait(t); strings.Contains(r.Stdout, "EPERM") || strings.Count(r.Stdout, name) > 1 {
				t.Errorf("it noticed: %s", r)
			}
		})
	}
	t.Run("handlers for SIGCONT, many at once", func(t *testing.T) { f.crowd(t, s) })
}

// crowd: all of those that had to be stopped before they were frozen go on, too.
func (f *fixture) crowd(t *testing.T, s *rig.Session) {
	const all = 20
	to := f.raw(t)
	each := fmt.Sprintf("trap : CONT; exec 3<>/dev/tcp/%s/%d && echo '$i'.%s >&3", rig.World4, to.Port, to.Text)
	p := s.Start(t, "bash", "-c", fmt.Sprintf("for ((i = 0; i < %d; i++)); do bash -c '%s' & done; wait; echo over", all, each))
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
	for _, q := range asked {
		rig.Eventually(t, "each is frozen", func() bool { return rig.Frozen(q.Process.PID) })
		f.sensor.Approve(t, q.ID)
	}
	for i := range all {
		if !f.world.WaitGot(itoa(i)+"."+to.Text, rig.Late) {
			t.Error(rig.Must(t, fmt.Sprintf("ps -o pid,ppid,stat,wchan:24,cgroup,args --ppid %d", p.Pid())))
			p.Signal(t, syscall.SIGKILL)
			break
		}
	}
	succeeded(t, p, "over")
}
