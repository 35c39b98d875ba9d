//go:build vmguest

package session

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/linux"

	"weir/test/vm/guest/rig"
)

// seat is the directory of the cgroup that a process is held in.
func seat(t *testing.T, pid int) string {
	t.Helper()
	rig.Held(t, pid)
	path, err := linux.CgroupOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	return linux.CgroupDir(path)
}

// begins starts a command, for as long as t runs, and waits for its first line.
func begins(t *testing.T, s *rig.Session, line string, argv ...string) *rig.Proc {
	t.Helper()
	p := s.Start(t, argv...)
	if p.WaitLine(line, rig.Late) == "" {
		t.Fatalf("%v did not begin: %s", argv, p.Wait(t))
	}
	t.Cleanup(func() { p.Signal(t, syscall.SIGKILL) }) // it may keep a processor busy
	return p
}

// siblings: what root in the same session does to a held command lets nothing out, and asks nothing more (B38, B30, B37).
func (f *fixture) siblings(t *testing.T) {
	for _, test := range []struct {
		name   string
		script string // in words: PID is the held command, DIR its cgroup
	}{
		{"wakes", "kill -CONT PID"},
		{"stops", "kill -STOP PID; kill -CONT PID"},
		{"thaws", "echo 0 >DIR/cgroup.freeze"},
		{"stops_and_thaws", "kill -STOP PID; echo 0 >DIR/cgroup.freeze; kill -CONT PID"},
		{"moves_it_back", "echo PID >DIR/../cgroup.procs"},
	} {
		t.Run(test.name, func(t *testing.T) {
			to, s, stop := f.web(t), f.guard(t, "secret"), filepath.Join(t.TempDir(), "stop")
			p := s.Start(t, to.Curl()...)
			q := to.asked(t)
			dir := seat(t, q.Process.PID)
			script := strings.NewReplacer("PID", itoa(q.Process.PID), "DIR", dir).Replace(test.script)
			for range rig.Rounds(20) {
				s.Run(t, "bash", "-c", script)
			}
			rig.Held(t, q.Process.PID)
			to.Nothing(t)
			to.once(t)
			storm := begins(t, s, "begun", "bash", "-c", "echo begun; until [ -e "+stop+" ]; do "+script+"; done 2>/dev/null")
			f.sensor.Approve(t, q.ID)
			f.sensor.Event(t, func(e event.Event) bool { return e.Kind == event.Grant && e.Question == q.ID })
			signal(t, stop)
			storm.Wait(t)
			s.Run(t, "kill", "-CONT", itoa(q.Process.PID))
			succeeded(t, p, "answer")
			to.Arrived(t)
			to.once(t)
		})
	}
	t.Run("traces", func(t *testing.T) {
		const attach = `
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for request in 16, 0x4206: # PTRACE_ATTACH, PTRACE_SEIZE
    print(libc.ptrace(request, int(sys.argv[1]), 0, 0), errno.errorcode[ctypes.get_errno()])
try:
    os.open("/proc/%s/mem" % sys.argv[1], os.O_RDWR)
except OSError as e:
    print(errno.errorcode[e.errno])
`
		to, s := f.web(t), f.guard(t, "secret")
		p := s.Start(t, to.Curl()...)
		q := to.asked(t)
		rig.Held(t, q.Process.PID)
		if r := s.Run(t, "python3", "-c", attach, itoa(q.Process.PID)); r.Stdout != "-1 EPERM\n-1 EPERM\nEACCES\n" {
			t.Errorf("a sibling attaches to the held command: %s", r)
		}
		rig.Held(t, q.Process.PID)
		f.sensor.Approve(t, q.ID)
		succeeded(t, p, "answer")
	})
	t.Run("is_there_before_the_approval", func(t *testing.T) { f.intrudes(t, false) })
	t.Run("comes_with_the_approval", func(t *testing.T) { f.intrudes(t, true) })
	t.Run("comes_as_soon_as_it_is_there", func(t *testing.T) { f.rushes(t) })
}

// intruder is a command beside the one that asks, for the same place.
func (to target) intruder() target {
	to.Text = fmt.Sprintf("intruder.%d.end", to.Port)
	return to
}

// gotNothing wants an intruder asked about, or refused, and not to have got out.
func (to target) gotNothing(t *testing.T, p *rig.Proc) {
	t.Helper()
	if q, asked := to.asks(t, p, to.Text); asked {
		to.f.sensor.Deny(t, q.ID)
	}
	if r := p.Wait(t); r.Exit == 0 {
		t.Errorf("the intruder says that it got out: %s", r)
	}
	to.f.world.Nothing(t, rig.Marks{}, to.Text, 0)
}

// intrudes: who enters the cgroup of a held command gets nothing of its approval (B37).
func (f *fixture) intrudes(t *testing.T, race bool) {
	rounds := 1
	if race {
		rounds = rig.Rounds(8)
	}
	for i := range rounds {
		to, s := f.web(t), f.guard(t, "secret")
		p := s.Start(t, to.Curl()...)
		q := to.asked(t)
		dir, other := seat(t, q.Process.PID), to.intruder()
		enters := begins(t, s, "opened", other.Egress("move -wait open -cgroup "+dir)...)
		intruded := func(e event.Event) bool {
			return e.Kind == event.Error && e.Container != nil && e.Container.Name == s.Name && strings.Contains(e.Message, "was moved into grant")
		}
		enters.Input(t, "\n")
		if race {
			time.Sleep(time.Duration(i) * time.Millisecond)
		} else {
			f.sensor.Event(t, intruded)
			rig.Held(t, q.Process.PID)
		}
		f.sensor.Approve(t, q.ID)
		other.gotNothing(t, enters)
		f.sensor.Event(t, intruded)
		if again, asked := to.asks(t, p, to.Text); asked { // its grant was over before it could use it
			f.sensor.Deny(t, again.ID)
		}
		if r := p.Wait(t); r.Exit >= 128 { // it may also fail at any step, when its grant ends
			t.Errorf("the approved command: %s", r)
		}
		if t.Failed() {
			return
		}
	}
}

// rushes: nor who enters it as soon as it is there, before it holds anybody (B37).
func (f *fixture) rushes(t *testing.T) {
	entered := 0
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(rig.Must(t, "ps -eo pid,ppid,stat,wchan:24,cgroup:80,args | grep weir/; grep . $(find /sys/fs/cgroup/weir -path '*weir-grant-*' -name cgroup.events -o -path '*weir-grant-*' -name cgroup.freeze)"))
		}
	})
	for i := 0; i < rig.Rounds(8) || entered == 0 && i < 8; i++ {
		to, s := f.web(t), f.guard(t, "secret")
		other := to.intruder()
		enters := begins(t, s, "watching", other.Egress("intrude -cgroup "+s.Cgroup)...)
		p := s.Start(t, to.Curl()...)
		q := f.sensor.Asked(t, func(q gate.Question) bool { // also if it could not be held, and has failed
			return to.About(q) && strings.Contains(strings.Join(q.Process.Argv, " "), to.Text)
		})
		if enters.WaitLine("entered", rig.Late) != "" {
			entered++
		}
		f.sensor.Approve(t, q.ID)
		other.gotNothing(t, enters)
		if q, asked := to.asks(t, p, to.Text); asked { // it may be asked about again
			f.sensor.Deny(t, q.ID)
		}
		p.Wait(t)
		if t.Failed() {
			return
		}
	}
	if entered == 0 {
		t.Error("no intruder came in: this tested nothing")
	}
}

// begets connects in a thread and sends the text, and begets children until then, each of which tries to send one of its own.
const begets = `
import os, socket, sys, threading, time
host, port, text = sys.argv[1:]
def send(text):
    socket.create_connection((host, int(port))).sendall(text.encode())
thread = threading.Thread(target=send, args=(text,))
thread.start()
for i in range(16):
    if not thread.is_alive():
        break
    if os.fork() == 0:
        os.execvp("egress", ["egress", "tcp", "-to", host + ":" + port, "-say", "child.%d.%s" % (os.getpid(), text)])
thread.join()
print("sent", flush=True)
sys.stdin.readline()
`

// children: those that an asker begot before it was frozen ask for themselves (F01, G24).
func (f *fixture) children(t *testing.T) {
	for range rig.Rounds(3) {
		to, s := f.raw(t), f.guard(t, "secret")
		p := s.Start(t, "python3", "-c", begets, rig.World4, itoa(to.Port), to.Text)
		var asked []gate.Question
		q := f.sensor.Asked(t, func(q gate.Question) bool { return to.About(q) && q.Process.PID == p.Pid() })
		own := seat(t, p.Pid())
		var others []int
		for _, word := range strings.Fields(rig.Must(t, fmt.Sprintf("cat /proc/%d/task/*/children", p.Pid()))) {
			var pid int
			if _, err := fmt.Sscan(word, &pid); err != nil {
				t.Fatal(err)
			}
			in, err := linux.CgroupOf(pid)
			if err == nil && !linux.PathWithin(in, strings.TrimPrefix(own, "/sys/fs/cgroup")) {
				others = append(others, pid)
			}
		}
		rig.Eventually(t, fmt.Sprintf("the %d children outside are asked about", len(others)), func() bool {
			asked = asked[:0]
			for _, q := range f.sensor.Pending(t) {
				if to.About(q) && slices.Contains(others, q.Process.PID) {
					asked = append(asked, q)
				}
			}
			return len(asked) == len(others)
		})
		to.Nothing(t)
		f.sensor.Approve(t, q.ID)
		if p.WaitLine("sent", rig.Late) == "" {
			t.Errorf("the asker did not go on: %s", p.Wait(t))
		}
		to.Arrived(t)
		for _, q := range asked {
			f.sensor.Deny(t, q.ID)
			rig.Eventually(t, "the child is over", func() bool {
				st, err := linux.ReadStat(q.Process.PID)
				return err != nil || st.State == 'Z'
			})
		}
		f.world.Flush(t)
		for _, pid := range others {
			if text := fmt.Sprintf("child.%d.%s", pid, to.Text); f.world.Got(text) {
				t.Errorf("%s got out with its parent", text)
			}
		}
		p.Signal(t, syscall.SIGKILL)
		p.Wait(t)
	}
}

// scope: a wider one, which a person chose, lets out what the command's parent starts, too, and only one that the question lists can be
// chosen (F01, F02).
func (f *fixture) scope(t *testing.T) {
	p := f.web(t).pair()
	shell := f.guard(t, "secret").Start(t, "bash", "-c", p.written("A; B"))
	q := p.asked(t)
	for _, wrong := range []string{"0", itoa(len(q.Chain) + 1)} {
		said := rig.Must(t, "weir approve "+q.ID+" --scope "+wrong+" 2>&1 && echo approved; true")
		lines := strings.Split(strings.TrimSpace(said), "\n")
		if last := lines[len(lines)-1]; strings.Contains(said, "\napproved") || !strings.Contains(last, "scope") || !strings.Contains(last, wrong) {
			t.Errorf("weir approve --scope %s: %s", wrong, said)
		}
	}
	rig.Held(t, q.Process.PID)
	f.sensor.Must(t, "approve", q.ID, "--scope", "2")
	if q, asked := p.asks(t, shell, p.not); asked {
		t.Errorf("asked about in spite of the scope: %+v", q)
		f.sensor.Deny(t, q.ID)
	}
	succeeded(t, shell, "answer")
	p.Arrived(t)
	if !f.world.WaitGot(p.not, rig.Late) {
		t.Errorf("%s did not arrive", p.not)
	}
	p.once(t)
}

// scopeOfMany: a wider scope answers all who wait below it for the same destination: none asks again, and nobody waits any more (F01, F02).
func (f *fixture) scopeOfMany(t *testing.T) {
	to, texts := f.web(t), make([]string, 8)
	var script strings.Builder
	for i := range texts {
		texts[i] = fmt.Sprintf("many%d.%d.end", i, to.Port)
		script.WriteString(to.upload(texts[i]) + " & ")
	}
	shell := f.guard(t, "secret").Start(t, "bash", "-c", script.String()+"wait")
	t.Cleanup(func() { shell.Signal(t, syscall.SIGKILL) })
	var asked []gate.Question
	rig.Eventually(t, "all are held", func() bool {
		asked = asked[:0]
		for _, q := range f.sensor.Pending(t) {
			if to.About(q) && rig.Frozen(q.Process.PID) {
				asked = append(asked, q)
			}
		}
		return len(asked) == len(texts)
	})
	to.Nothing(t)
	f.sensor.Must(t, "approve", asked[0].ID, "--scope", "2")
	for _, text := range texts {
		if !f.world.WaitGot(text, rig.Late) {
			t.Errorf("%s did not arrive", text)
		}
	}
	succeeded(t, shell, "")
	if n := f.sensor.Questions(t, to.Port); n != len(texts) {
		t.Errorf("%d questions about the %d", n, len(texts))
	}
	for _, q := range f.sensor.Pending(t) {
		if to.About(q) && !q.Gone {
			t.Errorf("still asked about: %s, %q", q.ID, q.Process.Argv)
		}
	}
}
