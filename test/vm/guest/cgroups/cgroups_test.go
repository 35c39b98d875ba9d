//go:build vmguest

// Package cgroups guards cgroups that somebody else made: by path, and where runtimes without an interface put containers.
package cgroups

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/taint"
	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) { inside.Main(m) }

const (
	policy  = "hold: false\napprover: none\n"
	parents = "guard:\n  parents: [/agents, /docker, machine.slice]\n  cgroups: [/alone]\n"
	root    = "/sys/fs/cgroup"
)

// mkdir makes a cgroup for as long as t runs.
func mkdir(t *testing.T, at string) {
	t.Helper()
	rig.Must(t, "mkdir -p "+root+at)
	t.Cleanup(func() { rig.RemoveCgroup(t, root+at) })
}

// denied checks that nothing of a session gets out, in any of these ways.
func denied(t *testing.T, world *rig.Outside, s *rig.Session) {
	t.Helper()
	for _, words := range []string{"tcp", "udp-sendto", "nest -n 1"} {
		to := world.Raw(t)
		if r := s.Run(t, to.Egress(words)...); r.Exit == 0 {
			t.Errorf("%s is not refused: %s", words, r)
		}
		to.Nothing(t)
	}
}

func free(t *testing.T, world *rig.Outside, s *rig.Session) {
	t.Helper()
	to := world.Raw(t)
	if r := s.Run(t, to.Egress("tcp")...); r.Exit != 0 {
		t.Errorf("not free: %s", r)
	}
	to.Arrived(t)
}

func known(t *testing.T, s *rig.Sensor, cgroup string, want func(control.Container) bool) control.Container {
	t.Helper()
	var found control.Container
	rig.Eventually(t, "the sensor knows "+cgroup, func() bool {
		for _, c := range s.Containers(t) {
			if c.Cgroup == cgroup && (want == nil || want(c)) {
				found = c
				return true
			}
		}
		return false
	})
	return found
}

// refused asks over the socket: the command line says the same, with its name before.
func refused(t *testing.T, name, want string) {
	t.Helper()
	_, err := control.NewClient("/run/weir").GuardCgroup(t.Context(), control.CgroupRequest{Cgroup: name})
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("guard %q: %v, want one line with %q", name, err, want)
	}
}

type fixture struct {
	world  *rig.Outside
	sensor *rig.Sensor
	one    *rig.Session // in a cgroup below no guarded parent
}

func TestCgroups(t *testing.T) {
	f := &fixture{world: rig.NewOutside(t), one: rig.Bare(t, "one")}
	for _, dir := range []string{"/agents", "/agents/clean", "/aside", "/alone", "/docker", "/machine.slice"} {
		mkdir(t, dir)
	}
	t.Run("B28_without_the_sensor", f.bare)
	f.sensor = rig.StartSensor(t, policy+parents)
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"G1_by_path", f.byPath}, {"programs_of_others", f.foreign}, {"moved_in", f.movedIn}, {"B60_older", f.older}, {"B60_below_a_parent", f.olderBelow}, {"mistakes", f.mistakes}, {"B28_B57_moved", f.moved}, {"B58_threaded", f.threaded}, {"B57_B114_unseen", f.unseen}, {"B79_fetched", f.fetched}, {"runtimes", f.runtimes},
		{"B28_moved_while_it_sends", f.movedSending}, {"B33_reports", f.reports}, {"B45_sensor_restarted", f.restarted}, {"B45_made_again", f.again}, {"B45_tainted_last", f.last}, {"B33_B45_no_room", f.noRoom}, {"made_meanwhile", f.madeMeanwhile}, {"B33_of_the_policy", f.ofPolicy}, {"B90_full", f.full},
	} {
		t.Run(test.name, test.run)
	}
}

// byPath: a cgroup below no guarded parent is guarded by its path, and then tainted (G1).
func (f *fixture) byPath(t *testing.T) {
	free(t, f.world, f.one)
	if _, err := control.NewClient("/run/weir").Taint(t.Context(), "/bare-one", []string{"secret"}, "", ""); err == nil || !strings.Contains(err.Error(), "guard it with `weir guard --cgroup /bare-one`") {
		t.Errorf("taint of what is not guarded: %v", err)
	}
	if out := f.sensor.Must(t, "guard", "--cgroup", root+"/bare-one/", "--name", "review"); !strings.Contains(out, "/bare-one is guarded") {
		t.Errorf("weir guard --cgroup says %q", out)
	}
	free(t, f.world, f.one)
	if out := f.sensor.Must(t, "taint", "--cgroup", "/bare-one", "secret"); !strings.Contains(out, "review (/bare-one) is tainted: secret") {
		t.Errorf("weir taint --cgroup says %q", out)
	}
	denied(t, f.world, f.one)
	free(t, f.world, rig.Bare(t, "two"))
}

// older: what a container opened before it was guarded, to a peer outside, is cut by the taint like what it opened later; what it
// opened to itself is not (B60).
func (f *fixture) older(t *testing.T) {
	for _, a := range rig.Attempts() {
		if !a.Opens || a.ID != "B23" && a.ID != "B64" && a.Name != "parked-unix" {
			continue
		}
		if a.Name == "udp" {
			continue // a network socket from before counts as the container's own: docs/limits.md
		}
		t.Run(a.Title(), func(t *testing.T) {
			name := strings.ToLower(a.ID) + "-" + a.Name
			out := a.Try(t, f.world, rig.Bare(t, name), func() {
				f.sensor.Must(t, "guard", "--cgroup", "/bare-"+name)
				f.sensor.Taint(t, "/bare-"+name, "secret")
			})
			if out.Exit == 0 && !a.Quiet {
				t.Errorf("no step was refused: %s", out.Result)
			}
			a.Arrived(t, a.Try(t, f.world, rig.Bare(t, "control"), nil))
			f.world.Nothing(t, out.Mark, out.Text, out.Port)
		})
	}
	own := rig.OwnEnds()
	out := own.Try(t, f.world, rig.Bare(t, "own"), func() {
		f.sensor.Must(t, "guard", "--cgroup", "/bare-own")
		f.sensor.Taint(t, "/bare-own", "secret")
	})
	if out.Exit != 0 {
		t.Errorf("it cannot talk to itself: %s", out.Result)
	}
}

// olderBelow: the same for containers that run when their parent is guarded.
func (f *fixture) olderBelow(t *testing.T) {
	of := func(id, name string) rig.Attempt {
		all := rig.Attempts()
		return all[slices.IndexFunc(all, func(a rig.Attempt) bool { return a.ID == id && a.Name == name })]
	}
	for i, a := range []rig.Attempt{of("B23", "stream-path-older"), of("B64", "stream"), rig.OwnEnds()} {
		t.Run(a.Title(), func(t *testing.T) {
			parent := fmt.Sprintf("/late-%d", i)
			mkdir(t, parent)
			mkdir(t, parent+"/one")
			out := a.Try(t, f.world, rig.BareIn(t, fmt.Sprintf("late-%d", i), root+parent+"/one"), func() {
				f.sensor.Policy(t, policy+strings.Replace(parents, "/agents,", "/agents, "+parent+",", 1))
				known(t, f.sensor, parent+"/one", nil)
				f.sensor.Taint(t, parent+"/one", "secret")
			})
			if own := a.Name == "own"; own != (out.Exit == 0) {
				t.Errorf("%s", out.Result)
			}
			f.world.Nothing(t, out.Mark, out.Text, out.Port)
		})
	}
	f.sensor.Policy(t, policy+parents)
}

func (f *fixture) mistakes(t *testing.T) {
	for _, dir := range []string{"/bare-one/inner", "/outer", "/outer/inner"} {
		mkdir(t, dir)
	}
	f.sensor.Must(t, "guard", "--cgroup", "/outer/inner")
	for name, want := range map[string]string{
		"/": "whole host", "/weir": "guarded parent", "/agents": "guarded parent", "/nope": "no cgroup /nope",
		"agent-9.scope": "no cgroup of a unit agent-9.scope", "bare-one": "leading slash",
		"/bare-one/inner": "in container /bare-one", "/outer": "container /outer/inner is in /outer",
	} {
		refused(t, name, want)
	}
}

// again: what was guarded and tainted is so again when its cgroup is made again (B45).
func (f *fixture) again(t *testing.T) {
	f.one.Close()
	rig.RemoveCgroup(t, root+"/bare-one")
	known(t, f.sensor, "/bare-one", func(c control.Container) bool { return !c.Live })
	again := rig.Bare(t, "one")
	f.sensor.Event(t, func(e event.Event) bool { return strings.Contains(e.Message, "/bare-one was made again") })
	denied(t, f.world, again)
	f.sensor.Untaint(t, "review", "secret")
	free(t, f.world, again)
}

// last: what a program tainted a container with, just before its cgroup was removed and with no daemon there to be told, counts when
// it is made again (B45).
func (f *fixture) last(t *testing.T) {
	const at, file = "/agents/last-words", "/run/last-words"
	if err := os.WriteFile(file, []byte("a secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	f.sensor.Policy(t, policy+parents+"taint:\n  secret_files: ["+file+"]\n")
	rig.Must(t, "mkdir -p "+root+at)
	one := rig.BareIn(t, "last", root+at)
	known(t, f.sensor, at, func(c control.Container) bool { return len(c.Taint) == 0 })
	free(t, f.world, one)
	f.sensor.KillBoth(t)
	if r := one.Run(t, "cat", file); r.Stdout != "a secret" {
		t.Error(r)
	}
	one.Close()
	rig.RemoveCgroup(t, root+at)
	f.sensor.Restart(t)
	mkdir(t, at)
	again := rig.BareIn(t, "last", root+at)
	known(t, f.sensor, at, func(c control.Container) bool { return slices.Equal(c.Taint, []string{"secret"}) })
	denied(t, f.world, again)
	again.Close()
}

func (f *fixture) restarted(t *testing.T) {
	f.sensor.KillBoth(t)
	denied(t, f.world, f.one)
	f.sensor.Restart(t)
	denied(t, f.world, f.one)
	known(t, f.sensor, "/bare-one", func(c control.Container) bool { return c.Name == "review" && slices.Equal(c.Taint, []string{"secret"}) })
}

// ofPolicy: cgroups that the policy names are guarded when they are made, with the taint that every container starts with (B33).
func (f *fixture) ofPolicy(t *testing.T) {
	f.sensor.Policy(t, policy+"guard:\n  cgroups: [/bare-three, agent-3.service]\ntaint:\n  initial: [corruption]\n")
	three := rig.Bare(t, "three")
	known(t, f.sensor, "/bare-three", func(c control.Container) bool { return slices.Equal(c.Taint, []string{"corruption"}) })
	denied(t, f.world, three)
	mkdir(t, "/system.slice/agent-3.service")
	known(t, f.sensor, "/system.slice/agent-3.service", nil)
	f.sensor.Taint(t, "agent-3.service", "secret")
	known(t, f.sensor, "/system.slice/agent-3.service", func(c control.Container) bool { return len(c.Taint) == 2 })
}

// noRoom: where the kernel has no room for the taint of one more container, all that begin beside it are tainted so.
func (f *fixture) noRoom(t *testing.T) {
	starts, err := ebpf.LoadPinnedMap("/sys/fs/bpf/weir/initial_taint", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer starts.Close()
	st, err := os.Stat(root + "/agents")
	if err != nil {
		t.Fatal(err)
	}
	const corruption = uint32(taint.Corruption)
	key := make([]byte, starts.KeySize())
	binary.NativeEndian.PutUint64(key, st.Sys().(*syscall.Stat_t).Ino)
	for i := 0; err == nil; i++ {
		copy(key[8:], fmt.Sprintf("gone-%d", i))
		err = starts.Put(key, corruption)
	}
	if !errors.Is(err, syscall.E2BIG) {
		t.Fatal(err)
	}
	mkdir(t, "/agents/last")
	known(t, f.sensor, "/agents/last", nil)
	f.sensor.Taint(t, "/agents/last", "corruption")
	mkdir(t, "/agents/next")
	known(t, f.sensor, "/agents/next", func(c control.Container) bool { return slices.Equal(c.Taint, []string{"corruption"}) })
	f.sensor.KillBoth(t)
	f.sensor.Restart(t)
	known(t, f.sensor, "/agents/last", func(c control.Container) bool { return slices.Equal(c.Taint, []string{"corruption"}) })
}

// full: where the kernel has no room for a state of one more container, it begins tainted all the same (B90).
func (f *fixture) full(t *testing.T) {
	const parent = "/full"
	mkdir(t, parent)
	f.sensor.Policy(t, policy+"guard:\n  parents: ["+parent+"]\ntaint:\n  initial: [corruption]\n")
	states, err := ebpf.LoadPinnedMap("/sys/fs/bpf/weir/cgroups", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer states.Close()
	const nobodys = uint64(1) << 62 // ids that no cgroup has
	last := nobodys
	for empty := make([]byte, states.ValueSize()); err == nil; last++ {
		err = states.Put(last, empty)
	}
	if !errors.Is(err, syscall.E2BIG) {
		t.Fatal(err)
	}
	mkdir(t, parent+"/one")
	denied(t, f.world, rig.BareIn(t, "full", root+parent+"/one"))
	for id := nobodys; id < last; id++ {
		_ = states.Delete(id) // the last one is not there
	}
	known(t, f.sensor, parent, func(c control.Container) bool { return slices.Equal(c.Taint, []string{"corruption"}) })
	f.sensor.Untaint(t, parent, "corruption")
}

// sender tries all the time to send, each time over a new socket, and so do children that it forks all the time.
const sender = `
import os, socket, sys, time
host, port, text = sys.argv[1:]
def send():
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(text.encode(), (host, int(port)))
    except OSError:
        pass
print("ready", flush=True)
while True:
    if os.fork() == 0:
        for i in range(4):
            time.sleep(0.05)
            send()
        os._exit(0)
    for i in range(50):
        send()
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
`

// movedSending: who is moved out has nothing in the moment in which it is there and not yet marked, nor do its children, also where nobody
// kills them (B28).
func (f *fixture) movedSending(t *testing.T) {
	mkdir(t, "/agents/sender")
	mkdir(t, "/agents/other")
	known(t, f.sensor, "/agents/other", nil)
	s := rig.BareIn(t, "sender", root+"/agents/sender")
	known(t, f.sensor, "/agents/sender", nil)
	f.sensor.Taint(t, "/agents/sender", "secret")
	escapes, err := ebpf.LoadPinnedMap("/sys/fs/bpf/weir/escapes", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer escapes.Close()
	move := func(to string) {
		place := f.world.Place()
		f.world.World.Listen(t, "udp", fmt.Sprintf("[::]:%d", place.Port))
		p := s.Start(t, "python3", "-c", sender, rig.World4, strconv.Itoa(place.Port), place.Text)
		if p.WaitLine("ready", rig.Late) == "" {
			t.Fatal(p.Wait(t))
		}
		if err := escapes.Put(uint32(0), uint64(0)); err != nil { // as if nobody had left one since the machine started
			t.Fatal(err)
		}
		mark := f.world.Mark(t)
		if err := os.WriteFile(root+to+"/cgroup.procs", []byte(strconv.Itoa(p.Pid())), 0); err != nil {
			t.Fatalf("move it: %v", err)
		}
		time.Sleep(300 * time.Millisecond) // for children to send
		f.world.Nothing(t, mark, place.Text, place.Port)
		p.Signal(t, syscall.SIGKILL)
		p.Wait(t)
	}
	for _, to := range []string{"/aside", "/agents/other"} {
		for range rig.Rounds(10) {
			move(to)
		}
	}
	f.sensor.KillBoth(t)
	move("/aside")
	move("/agents/other")
	f.sensor.Restart(t)
	s.Close()
	for _, to := range []string{"/aside", "/agents/other"} {
		rig.Must(t, "for p in $(cat "+root+to+"/cgroup.procs); do tr '\\0' ' ' </proc/$p/cmdline | grep -q '^python3 -c' && kill -9 $p; done; true")
	}
}

// again executes a program without a name in a container that it was moved into, as runc executes itself once more, and by links that
// somebody in the container could have made. It prints which could still report.
const again = `
import os, socket, sys
cgroup = sys.argv[1]
source = os.open("/usr/bin/python3", os.O_RDONLY)
program = os.memfd_create("again", 0)
while True:
    part = os.read(source, 1 << 20)
    if not part:
        break
    os.write(program, part)
os.set_inheritable(program, True)
itself = "/proc/self/fd/%d" % program
if os.path.lexists("/run/link"):
    os.remove("/run/link")
os.symlink(itself, "/run/link")
says = "import socket, sys; socket.socket(fileno=int(sys.argv[1])).send(b'.')"
for path in (itself, "/run/link", "/proc/self/root/run/link"):
    ours, its = socket.socketpair()
    its.set_inheritable(True)
    pid = os.fork()
    if pid == 0:
        its.recv(1)
        os.execv(path, ["/usr/bin/python3", "-c", says, str(its.fileno())])
    open(cgroup + "/cgroup.procs", "w").write(str(pid))
    ours.send(b".")
    print(os.waitpid(pid, 0)[1] == 0, flush=True)
`

// reporter is a runtime: it puts processes of its own into a cgroup, by moving and by cloning them, which go on telling it that they are well
// over a socket that they brought along. It prints how many were refused.
const reporter = `
import ctypes, os, signal, socket, struct, sys, time
cgroup, rounds = sys.argv[1], int(sys.argv[2])
CLONE3, INTO_CGROUP = 435, 0x200000000
libc, into = ctypes.CDLL(None), os.open(cgroup, os.O_RDONLY)
def clone():
    args = struct.pack("11Q", INTO_CGROUP, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, into)
    return libc.syscall(CLONE3, args, len(args))
def report(to):
    while True:
        try:
            to.send(b".", socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass
        except PermissionError:
            os._exit(1)
for how in ("moved", "cloned"):
    refused = 0
    for i in range(rounds):
        ours, its = socket.socketpair()
        pid = os.fork() if how == "moved" else clone()
        if pid == 0:
            report(its)
        its.close()
        ours.recv(1)
        if how == "moved":
            open(cgroup + "/cgroup.procs", "w").write(str(pid))
        time.sleep(0.01)
        if os.waitpid(pid, os.WNOHANG)[0]:
            refused += 1
        else:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        ours.close()
    print(how, refused, flush=True)
`

// reports: what a runtime puts into a tainted container can tell it how it gets on, from the moment on that it is in it (B33).
func (f *fixture) reports(t *testing.T) {
	mkdir(t, "/agents/reports")
	known(t, f.sensor, "/agents/reports", nil)
	f.sensor.Taint(t, "/agents/reports", "secret")
	out := rig.Must(t, "python3 -c '"+reporter+"' "+root+"/agents/reports 50")
	if out != "moved 0\ncloned 0\n" {
		t.Errorf("refused: %s", out)
	}
	out = rig.Must(t, "python3 -c '"+strings.ReplaceAll(again, "'", `'"'"'`)+"' "+root+"/agents/reports 2>/dev/null")
	if out != "True\nFalse\nFalse\n" {
		t.Errorf("after another execution: %s", out)
	}
}

// listens is a process in a cgroup of a user's, which tells somebody elsewhere, over a socket that it has, whether it gets a signal.
const listens = `
import os, signal, socket, sys
ours, its = socket.socketpair()
pid = os.fork()
if pid == 0:
    open(sys.argv[1], "w").write(str(os.getpid()))
    os.setgroups([]), os.setresgid(1000, 1000, 1000), os.setresuid(1000, 1000, 1000)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    its.send(b"r")
    signal.sigwait([signal.SIGUSR2])
    its.send(b"signalled")
    os._exit(0)
its.close()
ours.recv(1)
print("listens", pid, flush=True)
sys.stdin.readline()
os.kill(pid, signal.SIGKILL)
print(ours.recv(100), flush=True)
`

// fetches has such a process come into the container, and signals it.
const fetches = `
import os, signal, sys, time
cgroup, pid = sys.argv[1], int(sys.argv[2])
open(cgroup, "w").write(str(pid))
os.kill(pid, signal.SIGUSR2)
time.sleep(1)
`

// fetched: whom a container of a user moves in from another of the user's cgroups, and tells something there, does not tell it on over what
// it has brought along, as what a runtime moves in may.
func (f *fixture) fetched(t *testing.T) {
	for _, at := range []string{"/user", "/user/container", "/user/aside"} {
		mkdir(t, at)
	}
	rig.Must(t, "chown -R 1000 "+root+"/user")
	s := rig.BareIn(t, "user", root+"/user/container")
	fetch := func() string {
		t.Helper()
		out := f.world.Agent.Start(t, "python3", "-c", listens, root+"/user/aside/cgroup.procs")
		pid := strings.Fields(out.WaitLine("listens ", rig.Late) + " - -")[1]
		if r := s.Run(t, "setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "python3", "-c", fetches, root+"/user/container/cgroup.procs", pid); r.Exit != 0 {
			t.Errorf("it moves nobody in: %s", r)
		}
		out.Input(t, "\n")
		r := out.Wait(t)
		return strings.TrimSpace(r.Stdout[strings.Index(r.Stdout, "\n")+1:])
	}
	if got := fetch(); got != "b'signalled'" {
		t.Fatalf("without a guard it tells %q", got)
	}
	f.sensor.Must(t, "guard", "--cgroup", "/user/container")
	f.sensor.Taint(t, "/user/container", "secret")
	if got := fetch(); got != "b''" {
		t.Errorf("it tells on what it was told: %q", got)
	}
}

// runtimes: where Docker and podman put containers, they are found by the runtime's id.
func (f *fixture) runtimes(t *testing.T) {
	for runtime, at := range map[string]string{
		"docker": "/docker/" + strings.Repeat("0123456789abcdef", 4), "podman": "/machine.slice/libpod-" + strings.Repeat("fedcba9876543210", 4) + ".scope",
	} {
		mkdir(t, at)
		inside := rig.BareIn(t, runtime, root+at)
		c := known(t, f.sensor, at, nil)
		if len(c.RuntimeID) != 64 || !strings.Contains(at, c.RuntimeID) {
			t.Fatalf("%s has the id %q", at, c.RuntimeID)
		}
		free(t, f.world, inside)
		f.sensor.Taint(t, c.RuntimeID[:12], "secret") // as docker ps shows it
		denied(t, f.world, inside)
		e := f.sensor.Event(t, func(e event.Event) bool { return e.Kind == event.Taint && e.Container.Cgroup == at })
		if e.Container.Runtime != runtime {
			t.Errorf("the log says %+v", e.Container)
		}
	}
}

// threads is a program of two, which sends from the second one, at a line of input. The first thread ends before; or the second one is
// told by its id, to be moved alone, and may have many others before it; or it executes something first, and becomes the first one by that.
const threads = `
import ctypes, os, socket, sys, threading
how, host, port, text = sys.argv[1:]
def send():
    print("ready", threading.get_native_id(), flush=True)
    sys.stdin.readline()
    if how == "executes":
        os.execvp("egress", ["egress", "tcp", "-to", host + ":" + port, "-say", text])
    socket.create_connection((host, int(port))).sendall(text.encode())
if how == "crowd":
    for i in range(40):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
second = threading.Thread(target=send)
second.start()
if how == "leaderless":
    ctypes.CDLL(None).syscall(60, 0)
second.join()
`

// threadMoves has a process with more than one thread moved to cgroups, all of it or one thread, before it sends (B57, B58).
func (f *fixture) threadMoves(t *testing.T, s *rig.Session, how string, files ...string) (rig.Result, rig.Place) {
	t.Helper()
	p, place := f.threadMoved(t, s, how, files...)
	p.Input(t, "\n")
	return p.Wait(t), place
}

// threadMoved is threadMoves up to the line that has it send.
func (f *fixture) threadMoved(t *testing.T, s *rig.Session, how string, files ...string) (*rig.Proc, rig.Place) {
	t.Helper()
	place := f.world.Raw(t)
	p := s.Start(t, "python3", "-c", threads, how, rig.World4, strconv.Itoa(place.Port), place.Text)
	ready := p.WaitLine("ready ", rig.Late)
	if ready == "" {
		t.Fatalf("the process to move does not start: %s", p.Wait(t))
	}
	id := strconv.Itoa(p.Pid())
	if how == "leaderless" {
		rig.Eventually(t, "its first thread has ended", func() bool {
			b, err := os.ReadFile("/proc/" + id + "/stat")
			return err == nil && strings.Contains(string(b), ") Z ")
		})
	}
	if how == "alone" || how == "crowd" {
		id = strings.Fields(ready)[1]
	}
	for _, file := range files {
		if err := os.WriteFile(root+file, []byte(id), 0); err != nil {
			t.Fatalf("move it: %v", err)
		}
	}
	return p, place
}

// moves has one process of a session move itself into a cgroup, and another moved there from outside, before each sends.
func (f *fixture) moves(t *testing.T, s *rig.Session, to string) (results [2]rig.Result, places [2]rig.Place) {
	t.Helper()
	const waits = "import os, sys; print('ready', flush=True); sys.stdin.readline(); os.execvp(sys.argv[1], sys.argv[1:])"
	places = [2]rig.Place{f.world.Raw(t), f.world.Raw(t)}
	results[0] = s.Run(t, places[0].Egress("move -cgroup "+root+to)...)
	p := s.Start(t, append([]string{"python3", "-c", waits}, places[1].Egress("tcp")...)...)
	if p.WaitLine("ready", rig.Late) == "" {
		t.Fatalf("the process to move does not start: %s", p.Wait(t))
	}
	if err := os.WriteFile(root+to+"/cgroup.procs", []byte(strconv.Itoa(p.Pid())), 0); err != nil {
		t.Fatalf("move it: %v", err)
	}
	p.Input(t, "\n")
	results[1] = p.Wait(t)
	return results, places
}

// targets are outside all that is guarded, a clean container below a guarded parent, and one by itself.
var targets = []string{"", "/aside", "/agents/clean", "/alone"}

func (f *fixture) bare(t *testing.T) {
	free(t, f.world, f.one)
	for _, to := range targets {
		results, places := f.moves(t, f.one, to)
		for i, r := range results {
			if r.Exit != 0 {
				t.Errorf("to %q: %s", to, r)
			}
			places[i].Arrived(t)
		}
		for _, how := range []string{"leaderless", "executes"} {
			r, place := f.threadMoves(t, f.one, how, to+"/cgroup.procs")
			if r.Exit != 0 {
				t.Errorf("%s to %q: %s", how, to, r)
			}
			place.Arrived(t)
		}
	}
}

// threaded: what is guarded may be threads of a process, whose other threads are not. One that is moved out is killed with all (B58).
func (f *fixture) threaded(t *testing.T) {
	for _, at := range []string{"/threads", "/threads/inside", "/threads/outside"} {
		mkdir(t, at)
	}
	for _, at := range []string{"/threads/inside", "/threads/outside"} {
		rig.Must(t, "echo threaded >"+root+at+"/cgroup.type")
	}
	s := rig.BareIn(t, "threads", root+"/threads")
	f.sensor.Must(t, "guard", "--cgroup", "/threads/inside")
	free := func() {
		t.Helper()
		r, place := f.threadMoves(t, s, "alone", "/threads/outside/cgroup.threads")
		if r.Exit != 0 {
			t.Errorf("a thread outside: %s", r)
		}
		place.Arrived(t)
	}
	free()
	f.sensor.Taint(t, "/threads/inside", "secret")
	free()
	r, place := f.threadMoves(t, s, "alone", "/threads/inside/cgroup.threads")
	if !strings.Contains(r.Stderr, "PermissionError") {
		t.Errorf("a thread that is tainted: %s", r)
	}
	place.Nothing(t)
	// alone, and with all others, which stand where nobody guards them
	for how, to := range map[string]string{"alone": "/threads/outside/cgroup.threads", "crowd": "/aside/cgroup.procs"} {
		r, place = f.threadMoves(t, s, how, "/threads/inside/cgroup.threads", to)
		if r.Exit != 128+int(syscall.SIGKILL) {
			t.Errorf("a thread that has left, %s: %s", how, r)
		}
		place.Nothing(t)
	}
}

// unseen: the kernel alone kills who executes something after it has left, also by another thread than its first. The sensor stands still
// from before the move, or runs again only afterwards (B57).
func (f *fixture) unseen(t *testing.T) {
	mkdir(t, "/agents/unseen")
	mkdir(t, "/agents/clean")
	s := rig.BareIn(t, "unseen", root+"/agents/unseen")
	known(t, f.sensor, "/agents/unseen", nil)
	killed := func(what string, p *rig.Proc, place rig.Place) {
		t.Helper()
		p.Input(t, "\n")
		if r := p.Wait(t); r.Exit != 128+int(syscall.SIGKILL) {
			t.Errorf("%s: want it killed, got %s", what, r)
		}
		place.Nothing(t)
	}
	for _, to := range targets {
		func() {
			f.sensor.Signal(t, syscall.SIGSTOP)
			defer f.sensor.Signal(t, syscall.SIGCONT)
			p, place := f.threadMoved(t, s, "executes", to+"/cgroup.procs")
			killed("to "+to, p, place)
		}()
	}
	f.sensor.KillBoth(t)
	p, place := f.threadMoved(t, s, "executes", "/aside/cgroup.procs")
	f.sensor.Restart(t)
	killed("with another sensor", p, place)
	s.Close()
}

// moved: who leaves its container is killed before it sends, wherever it is put and whoever puts it there (B28). That the container is clean
// makes no difference.
func (f *fixture) moved(t *testing.T) {
	known(t, f.sensor, "/alone", nil)
	known(t, f.sensor, "/agents/clean", nil)
	mkdir(t, "/agents/mover")
	below, single := rig.BareIn(t, "below", root+"/agents/mover"), rig.Bare(t, "single")
	f.sensor.Must(t, "guard", "--cgroup", "/bare-single")
	left := 0
	try := func(from *rig.Session, to string) {
		results, places := f.moves(t, from, to)
		for i, r := range results {
			if left++; r.Exit != 128+int(syscall.SIGKILL) {
				t.Errorf("%s to %q: want it killed, got %s", from.Name, to, r)
			}
			places[i].Nothing(t)
		}
	}
	try(below, "/agents/clean")
	try(single, "")
	f.sensor.Taint(t, "/agents/mover", "secret")
	f.sensor.Taint(t, "/bare-single", "secret")
	for _, to := range targets {
		try(below, to)
		try(single, to)
	}
	for _, how := range []string{"leaderless", "executes"} {
		for _, to := range targets {
			for _, from := range []*rig.Session{below, single} {
				r, place := f.threadMoves(t, from, how, to+"/cgroup.procs")
				if left++; r.Exit != 128+int(syscall.SIGKILL) {
					t.Errorf("%s, %s to %q: want it killed, got %s", how, from.Name, to, r)
				}
				place.Nothing(t)
			}
		}
	}
	zombie := below.Start(t, "python3", "-c", "import os; pid = os.fork(); pid or os._exit(0); print('ended', pid, flush=True); input()")
	pid := strings.TrimPrefix(zombie.WaitLine("ended ", rig.Late), "ended ")
	rig.Eventually(t, "it has ended", func() bool {
		b, err := os.ReadFile("/proc/" + pid + "/stat")
		return err == nil && strings.Contains(string(b), ") Z ")
	})
	if err := os.WriteFile(root+"/aside/cgroup.procs", []byte(pid), 0); err != nil { // moves nobody
		t.Errorf("move what has ended: %v", err)
	}
	zombie.Input(t, "\n")
	if r := zombie.Wait(t); r.Exit != 0 {
		t.Errorf("the parent of what has ended: %s", r)
	}
	told := func() (n int) {
		for _, e := range f.sensor.Events(t, event.Escape) {
			if strings.Contains(e.Message, "left its container") && strings.Contains(e.Message, "killed") {
				n++
			}
		}
		return n
	}
	rig.Eventually(t, "all are told to have left", func() bool { return told() >= left })
	if n := told(); n != left {
		t.Errorf("%d were told to have left, want %d", n, left)
	}
	free(t, f.world, rig.BareIn(t, "clean", root+"/agents/clean"))
}
