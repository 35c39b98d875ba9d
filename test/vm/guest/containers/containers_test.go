//go:build vmguest

package containers

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/fleet"
	"weir/test/vm/guest/rig"
)

const refuses = "hold: false\napprover: none\n"

// A labelled container outside every guarded parent is found, guarded and tainted before it runs, denied, and granted by a person.
// Neither a restart of containerd, nor of the container (B45), nor of the sensor opens it.
func TestLabelled(t *testing.T) {
	h := newHost(t)
	s := rig.StartSensor(t, refuses+labels+tainted)
	port := h.world.Port()
	secret, free := fmt.Sprintf("secret.%d.", port), fmt.Sprintf("free.%d.", port)
	mark := h.world.Mark(t)
	h.run("agent", []string{"--label", "weir.taint=secret"}, h.sends(secret, port)...)
	h.tries(s, "/default/agent", 1)
	found := h.known(s, "agent", func(c control.Container) bool { return c.Live && slices.Contains(c.Taint, "secret") })
	if found.Cgroup != "/default/agent" || found.RuntimeID != "agent" {
		t.Errorf("found %+v", found)
	}
	for _, e := range s.Events(t, event.Error) {
		if strings.Contains(e.Message, "guarded late") {
			t.Errorf("there was a window: %s", e.Message)
		}
	}
	h.world.Nothing(t, mark, secret, port)

	t.Run("others are free", func(t *testing.T) {
		h.run("clean", nil, h.sends(free, h.world.Port())...)
		if !h.world.WaitGot(free, rig.Late) {
			t.Error("a container that nothing matches gets nothing out")
		}
		h.remove("clean")
	})
	t.Run("containerd is restarted", func(t *testing.T) {
		h.stop()
		h.start()
		s.Event(t, func(e event.Event) bool { return strings.Contains(e.Message, "followed again") })
		second := fmt.Sprintf("second.%d.", port)
		h.run("second", []string{"--label", "weir.taint=secret"}, h.sends(second, port)...)
		h.tries(s, "/default/second", 1)
		h.world.Nothing(t, mark, second, port)
		h.remove("second")
	})
	t.Run("B45", func(t *testing.T) {
		h.again("agent")
		h.tries(s, "/default/agent", 1)
		h.world.Nothing(t, mark, secret, port)
	})
	t.Run("the sensor is restarted", func(t *testing.T) {
		s.Kill(t)
		s.Restart(t)
		h.tries(s, "/default/agent", 1)
		h.known(s, "agent", func(c control.Container) bool { return slices.Contains(c.Taint, "secret") })
		h.world.Nothing(t, mark, secret, port)
	})
	s.Policy(t, "hold: true\napprover: person\n"+labels+tainted)
	h.until("what was granted arrives", func() bool {
		for _, q := range s.Pending(t) { // the next try of the same command
			if q.Container.Name == "agent" {
				s.Approve(t, q.ID)
			}
		}
		return h.world.Got(secret)
	})
	t.Run("forgotten", func(t *testing.T) { h.forgotten(t, s) })
}

// forgotten: a label names an agent, and who may has its taint forgotten by a signed order: it sends then. Another's word changes nothing.
func (h *host) forgotten(t *testing.T, s *rig.Sensor) {
	file := t.TempDir() + "/key"
	public, err := fleet.NewKey(file)
	if err != nil {
		t.Fatal(err)
	}
	key, err := fleet.ReadKey(file)
	if err != nil {
		t.Fatal(err)
	}
	of := func(roles string) string {
		return refuses + "fleet:\n  node: vm\n  identity: true\n  label: weir.agent\n  unknown: []\n  operators:\n    - {name: alice, key: " + public + ", roles: [" + roles + "]}\n" + labels + tainted
	}
	s.Policy(t, of("answer, seal, mode, policy"))
	port := h.world.Port()
	text := fmt.Sprintf("forgotten.%d.", port)
	mark := h.world.Mark(t)
	h.run("a1", []string{"--label", "weir.taint=secret", "--label", "weir.agent=reviewer 7"}, h.sends(text, port)...)
	h.known(s, "a1", func(c control.Container) bool {
		return c.Identity == "agent reviewer 7" && slices.Contains(c.Taint, "secret")
	})
	h.tries(s, "/default/a1", 1)
	sign := func(identity string) error {
		now := time.Now()
		signed, err := fleet.Sign(key, fleet.Statement{Node: "weir/*", Signed: now, Expires: now.Add(time.Hour), Forget: identity, Why: "made anew"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = control.NewClient(control.DefaultDir).Signed(t.Context(), signed)
		return err
	}
	if err := sign("agent reviewer 7"); control.Code(err) != control.Denied {
		t.Errorf("without the role: %v", err)
	}
	s.Policy(t, of("forget"))
	if err := sign("agent reviewer"); err != nil {
		t.Error(err)
	}
	h.tries(s, "/default/a1", 1)
	h.world.Nothing(t, mark, text, port)
	if err := sign("agent reviewer 7"); err != nil {
		t.Fatal(err)
	}
	if !h.world.WaitGot(text, rig.Late) {
		t.Error("it is forgotten, and still gets nothing out")
	}
	h.known(s, "a1", func(c control.Container) bool { return len(c.Taint) == 0 })
	h.remove("a1")
}

// Below a guarded parent the kernel taints a container before its first instruction, also while no sensor runs: by the policy
// (B33), and one that is started again by what is stored of it (B45).
func TestNoSensor(t *testing.T) {
	h := newHost(t)
	rig.Must(t, "mkdir -p /sys/fs/cgroup/default /sys/fs/cgroup/start")
	const parents = refuses + "guard:\n  parents: [/default]\n"
	const follow = "containers:\n  containerd: " + socket + "\n"
	s := rig.StartSensor(t, parents+follow)
	port := h.world.Port()
	text := fmt.Sprintf("again.%d.", port)
	h.run("again", nil, "/bin/sleep", "1000")
	h.known(s, "again", func(c control.Container) bool { return c.Live })
	s.Taint(t, "again", "secret")
	mark := h.world.Mark(t)
	s.KillBoth(t)

	h.again("again")
	h.world.World.Listen(t, "tcp", fmt.Sprintf("[::]:%d", port))
	_, _ = h.try("task", "exec", "--exec-id", "one", "again", "/bin/egress", "tcp", "-to", fmt.Sprintf("%s:%d", rig.World4, port), "-say", text)
	h.world.Nothing(t, mark, text, port)

	fresh := fmt.Sprintf("fresh.%d.", port)
	h.run("fresh", nil, "/bin/sleep", "1000")
	_, _ = h.try("task", "exec", "--exec-id", "one", "fresh", "/bin/egress", "tcp", "-to", fmt.Sprintf("%s:%d", rig.World4, port), "-say", fresh)
	if !h.world.WaitGot(fresh, rig.Late) {
		t.Error("a container without stored taint gets nothing out: the attempt proves nothing")
	}

	s.Configure(t, parents+"taint:\n  initial: [corruption]\n"+follow)
	s.Restart(t)
	h.known(s, "again", func(c control.Container) bool { return c.Live && slices.Contains(c.Taint, "secret") })
	s.KillBoth(t)
	port = h.world.Port()
	late := fmt.Sprintf("late.%d.", port)
	mark = h.world.Mark(t)
	h.run("late", nil, h.sends(late, port)...)
	s.Restart(t)
	h.tries(s, "/default/late", 1)
	h.known(s, "late", func(c control.Container) bool { return c.Live && slices.Contains(c.Taint, "corruption") })
	h.world.Nothing(t, mark, late, port)
}

// What undoes the guard is told when a container starts (B18, B28, B42, B48); what the policy refuses does not run.
func TestFindings(t *testing.T) {
	h := newHost(t)
	s := rig.StartSensor(t, refuses+labels+
		"    - labels: {weir.refuse: \"*\"}\n      refuse: [privileged]\n    - labels: {weir.taint: \"*\"}\n      taint: [secret]\n    - labels: {weir.guard: \"*\"}\n")
	got := func(id string) []string {
		var found []string
		for _, e := range s.Events(t, event.Found) {
			if e.Container.RuntimeID == id {
				found = append(found, e.Finding.ID)
			}
		}
		slices.Sort(found)
		return slices.Compact(found)
	}
	t.Run("B18_B42_B48_privileged", func(t *testing.T) {
		h.run("all", []string{"--label", "weir.guard=1", "--privileged", "--mount", "type=bind,src=/run/containerd,dst=/c,options=rbind:rw"}, "/bin/sleep", "1000")
		want := []string{"cap_bpf", "cap_net_admin", "cap_net_raw", "cap_sys_admin", "host_network", "privileged", "runtime_socket"}
		defer func() { t.Logf("findings: %v", got("all")) }()
		h.until("findings of a privileged container", func() bool {
			return !slices.ContainsFunc(want, func(id string) bool { return !slices.Contains(got("all"), id) })
		})

		port := h.world.Port()
		text := fmt.Sprintf("refused.%d.", port)
		mark := h.world.Mark(t)
		_, _ = h.try(append([]string{"run", "-d", "--net-host", "--label", "weir.refuse=1", "--privileged", "--rootfs", rootfs, "refused"}, h.sends(text, port)...)...)
		h.until("ctr run --privileged is found", func() bool { return slices.Contains(got("refused"), "privileged") })
		h.killed("refused")
		h.world.Nothing(t, mark, text, port)
	})
	t.Run("refused, and running already", func(t *testing.T) {
		port := h.world.Port()
		text := fmt.Sprintf("early.%d.", port)
		s.KillBoth(t)
		h.run("early", []string{"--label", "weir.refuse=1", "--privileged"}, h.sends(text, port)...)
		if !h.world.WaitGot(text, rig.Late) {
			t.Error("without the sensor nothing gets out: the attempt proves nothing")
		}
		s.Restart(t) // ready: all that runs was looked at
		mark := h.world.Mark(t)
		e := s.Event(t, func(e event.Event) bool {
			return e.Kind == event.Found && e.Container.RuntimeID == "early" && e.Finding.ID == "privileged"
		})
		if e.Finding.Severity != "critical" || !e.Finding.Refused {
			t.Errorf("found %+v", e.Finding)
		}
		h.killed("early")
		h.world.Quiet(t, mark, port)
	})
	t.Run("B28", func(t *testing.T) { // a process of a tainted container is moved out by root of the host
		h.run("leaves", []string{"--label", "weir.taint=1"}, "/bin/sleep", "1000")
		h.run("stays", []string{"--label", "weir.guard=1"}, "/bin/sleep", "1000")
		for _, to := range []string{"", "/default/stays"} {
			port := h.world.Port()
			text := fmt.Sprintf("moved.%d.", port)
			argv := append([]string{"task", "exec", "--exec-id", fmt.Sprint("x", port), "leaves"}, h.sends(text, port)...)
			cmd := exec.Command("ctr", argv...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var pid string // of the shell: what it forks looks the same until it executes, and is younger
			h.until("the shell runs", func() bool {
				pid = strings.TrimSpace(rig.Must(t, "for p in $(sort -n /sys/fs/cgroup/default/leaves/cgroup.procs); do tr '\\0' ' ' < /proc/$p/cmdline | grep -q '^/bin/sh -c while' && echo $p && break; done 2>/dev/null; true"))
				return pid != ""
			})
			h.tries(s, "/default/leaves", 1)
			rig.Must(t, "echo "+pid+" > /sys/fs/cgroup"+to+"/cgroup.procs")
			_ = cmd.Wait() // it was killed
			s.Event(t, func(e event.Event) bool { return strings.Contains(e.Message, "process "+pid+" left its container") })
			h.world.Nothing(t, rig.Marks{}, text, port)
		}
	})
	t.Run("B34", func(t *testing.T) {
		const volume = "type=bind,src=/tmp/rootfs/shared,dst=/data,options=rbind:rw"
		h.run("writer", []string{"--label", "weir.taint=1", "--mount", volume}, "/bin/sleep", "1000")
		h.run("reader", []string{"--label", "weir.guard=1", "--mount", volume}, "/bin/sleep", "1000")
		s.Event(t, func(e event.Event) bool {
			return e.Kind == event.Found && e.Finding.ID == "shared_volume" && e.Container.Name == "writer"
		})

		// what the tainted one writes taints one that may only read, before it has it
		h.run("late", []string{"--label", "weir.guard=1", "--mount", "type=bind,src=/tmp/rootfs/shared,dst=/data,options=rbind:ro"}, "/bin/sleep", "1000")
		port := h.world.Port()
		text := fmt.Sprintf("volume.%d.", port)
		h.world.World.Listen(t, "udp", fmt.Sprintf("[::]:%d", port))
		h.ctr("task", "exec", "--exec-id", "write", "writer", "/bin/sh", "-c", "echo -n "+text+" >/data/f")
		mark := h.world.Mark(t)
		out, _ := h.try("task", "exec", "--exec-id", "read", "late", "/bin/egress", "file", "-path", "/data/f", "-to", fmt.Sprintf("%s:%d", rig.World4, port))
		s.Event(t, func(e event.Event) bool {
			return e.Change != nil && e.Change.Source == "volume" && e.Change.Volume == "/tmp/rootfs/shared" && e.Container.Name == "late"
		})
		h.world.Nothing(t, mark, text, port)
		if t.Failed() {
			t.Log(out)
		}
	})
	t.Run("B34_chain", func(t *testing.T) { // through two volumes, and descriptors that are open already
		const one, two = "/tmp/rootfs/one", "/tmp/rootfs/two"
		rig.Must(t, "mkdir -p "+one+" "+two+"; : >"+one+"/f; : >"+two+"/f")
		port := h.world.Port()
		h.world.World.Listen(t, "udp", fmt.Sprintf("[::]:%d", port))
		run := func(id, command string, mounts ...string) {
			flags := []string{"--label", "weir.guard=1"}
			for _, m := range mounts {
				flags = append(flags, "--mount", "type=bind,"+m)
			}
			h.run(id, flags, "/bin/sh", "-c", command)
			h.known(s, id, func(c control.Container) bool { return c.Live })
		}
		const read, write = ",options=rbind:ro", ",options=rbind:rw"
		run("chain-1", "exec /bin/sleep 1000", "src="+one+",dst=/one"+write)
		run("chain-2", "exec busybox tail -f /one/f >/two/f", "src="+one+",dst=/one"+read, "src="+two+",dst=/two"+write)
		run("chain-3", fmt.Sprintf("busybox tail -f /two/f | while read x; do egress udp-sendto -to %s:%d -say $x; done", rig.World4, port), "src="+two+",dst=/two"+read)
		say := func(text string) {
			h.ctr("task", "exec", "--exec-id", text, "chain-1", "/bin/sh", "-c", "echo "+text+" >>/one/f")
		}
		clean, text := fmt.Sprintf("chain.clean.%d", port), fmt.Sprintf("chain.secret.%d", port)
		say(clean)
		if !h.world.WaitGot(clean, rig.Late/2) {
			t.Fatal("what a clean container writes does not come through the others: the attempt proves nothing")
		}
		mark := h.world.Mark(t)
		s.Taint(t, "chain-1", "secret")
		say(text)
		s.Event(t, func(e event.Event) bool {
			return e.Container != nil && e.Container.Name == "chain-3" && e.Verdict != nil && e.Verdict.Decision == "deny"
		})
		h.world.Nothing(t, mark, text, port)
		for _, id := range []string{"chain-1", "chain-2", "chain-3"} {
			h.known(s, id, func(c control.Container) bool { return slices.Contains(c.Taint, "secret") })
		}
		why := ""
		defer func() { t.Logf("weir why chain-3: %s", why) }()
		h.until("weir why tells the way", func() bool {
			why = s.Must(t, "why", "chain-3")
			rest := why
			for _, want := range []string{"chain-3", two, "chain-2", one, "chain-1", "(operator)"} {
				_, after, found := strings.Cut(rest, want)
				if !found {
					return false
				}
				rest = after
			}
			return true
		})
		for _, id := range []string{"chain-1", "chain-2", "chain-3"} {
			h.remove(id)
		}
	})
	t.Run("B26", func(t *testing.T) {
		port := h.world.Port()
		at := fmt.Sprintf("127.0.0.1:%d", port)
		h.world.Here.Listen(t, "tcp", at)
		text := fmt.Sprintf("loop.%d.", port)
		mark := h.world.Mark(t)
		if out, err := h.try("task", "exec", "--exec-id", "loop", "writer", "/bin/egress", "tcp", "-to", at, "-say", text); err == nil {
			t.Errorf("a tainted container on the host's network connects to a service of the host: %s", out)
		}
		h.world.Nothing(t, mark, text, port)
		clean := fmt.Sprintf("clean.%d.", port)
		_, _ = h.try("task", "exec", "--exec-id", "loop", "reader", "/bin/egress", "tcp", "-to", at, "-say", clean)
		if !h.world.WaitGot(clean, rig.Late) {
			t.Error("a clean container does not reach it: the attempt proves nothing")
		}

		// nor a container on the same network that would pass on what it hears
		port = h.world.Port()
		relay, far := fmt.Sprintf("127.0.0.1:%d", h.world.Port()), fmt.Sprintf("%s %d", rig.World4, port)
		h.world.World.Listen(t, "tcp", fmt.Sprintf("[::]:%d", port))
		_, at, _ = strings.Cut(relay, ":")
		h.run("relay", []string{"--label", "weir.guard=1"}, "/bin/sh", "-c", "while :; do busybox nc -l -p "+at+" | busybox nc "+far+"; done")
		clean, text = fmt.Sprintf("relayed.%d.", port), fmt.Sprintf("laundered.%d.", port)
		h.until("a clean container is passed on", func() bool {
			_, _ = h.try("task", "exec", "--exec-id", "relayed", "reader", "/bin/egress", "tcp", "-to", relay, "-say", clean)
			return h.world.Got(clean)
		})
		for range 3 { // the relay listens again after each connection
			if out, err := h.try("task", "exec", "--exec-id", "relayed", "writer", "/bin/egress", "tcp", "-to", relay, "-say", text); err == nil {
				t.Errorf("a tainted container connects to another one on loopback: %s", out)
			}
		}
		h.world.Nothing(t, rig.Marks{}, text, 0)
	})
	t.Run("G3_pod", func(t *testing.T) { // labels as Kubernetes sets them, one cgroup for the pod
		pod := func(id string, flags ...string) {
			flags = append(flags, "--label", "io.kubernetes.pod.uid=0a1b-2c", "--label", "io.kubernetes.pod.name=web-0", "--label", "io.kubernetes.pod.namespace=shop", "--cgroup", "/kubepods/pod0a1b-2c/"+id)
			h.run(id, flags, "/bin/sleep", "1000")
		}
		pod("one", "--label", "weir.taint=1")
		pod("two")
		c := h.known(s, "web-0", func(c control.Container) bool { return c.Live && slices.Contains(c.Taint, "secret") })
		if c.Cgroup != "/kubepods/pod0a1b-2c" || c.PodNamespace != "shop" {
			t.Errorf("the pod is %+v", c)
		}
		port := h.world.Port()
		at, text := fmt.Sprintf("%s:%d", rig.World4, port), fmt.Sprintf("pod.%d.", port)
		h.world.World.Listen(t, "tcp", fmt.Sprintf("[::]:%d", port))
		mark := h.world.Mark(t)
		if out, err := h.try("task", "exec", "--exec-id", "x", "two", "/bin/egress", "tcp", "-to", at, "-say", text); err == nil {
			t.Errorf("the other container of a tainted pod gets out: %s", out)
		}
		h.world.Nothing(t, mark, text, port)
	})
}

// loops is how many containers come and go: a hundred take minutes, and make load has them.
func loops() int {
	if os.Getenv("WEIR_LOAD") != "" {
		return 100
	}
	return 4
}

// Containers come and go: nothing stays of them.
func TestNoLeak(t *testing.T) {
	h := newHost(t)
	s := rig.StartSensor(t, refuses+labels+"    - labels: {weir.guard: \"*\"}\n")
	round := func(id string) {
		h.run(id, []string{"--label", "weir.guard=1"}, "/bin/sleep", "1000")
		h.known(s, id, func(c control.Container) bool { return c.Live })
		h.remove(id)
	}
	gone := func() {
		h.until("the sensor has forgotten them", func() bool {
			return !slices.ContainsFunc(s.Containers(t), func(c control.Container) bool { return strings.HasPrefix(c.Name, "leak") })
		})
	}
	round("leak-first")
	gone()
	type left struct{ Cgroups, Links, States, Starts, FDs int }
	look := func() left {
		return left{entries(t, "cgroups"), entries(t, "links"), count(t, "cgroups"), count(t, "initial_taint"), fds(t, s.Pid())}
	}
	same := func(a, b left) bool { a.FDs = b.FDs; return a == b } // connections of who asked come and go
	before, since := look(), time.Now()
	h.until("nothing of the first one goes any more", func() bool { // for longer than what is forgotten by itself
		now := look()
		if !same(now, before) {
			before, since = now, time.Now()
		}
		return time.Since(since) > 6*time.Second
	})
	for i := range loops() {
		round(fmt.Sprintf("leak-%d", i))
	}
	gone()
	var after left
	for end := time.Now().Add(rig.Late); ; time.Sleep(500 * time.Millisecond) { // some goes a while after its container
		if after = look(); same(after, before) && after.FDs <= before.FDs+2 || time.Now().After(end) {
			break
		}
	}
	t.Logf("%d containers: before %+v, after %+v", loops(), before, after)
	if after.FDs > before.FDs+2 {
		t.Errorf("descriptors: %d before, %d after", before.FDs, after.FDs)
	}
	after.FDs = before.FDs
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("before - after +\n%s", diff)
	}
}

// count is how many entries a pinned map has.
func count(t *testing.T, name string) int {
	t.Helper()
	m, err := ebpf.LoadPinnedMap("/sys/fs/bpf/weir/"+name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	n := 0
	var key, value []byte
	for it := m.Iterate(); it.Next(&key, &value); n++ {
	}
	return n
}
