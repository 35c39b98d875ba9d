//go:build vmguest

package containers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"weir/internal/control"
	"weir/internal/event"
	"weir/test/vm/guest/rig"
)

const podRules = "containers:\n  containerd: " + socket + "\n  nri: " + nriSocket + "\n  match:\n" +
	"    - labels: {weir.refuse: \"*\"}\n      refuse: [privileged]\n" + tainted + "    - labels: {weir.guard: \"*\"}\n"

// Pods as a kubelet has them made, on a bridge: found by the labels of their sandbox, guarded as one (G3), tainted by what one of
// their containers does, denied on the host's side of the bridge, granted by a person. That the runtime does not ask before containers
// start is told, and changes nothing of this; where it can, it then does.
func TestPods(t *testing.T) {
	for _, driver := range drivers() {
		t.Run(driver, func(t *testing.T) {
			k := newKubelet(t, driver, false)
			s := rig.StartSensor(t, refuses+"taint:\n  secret_files: [/secret/key]\n"+podRules)
			s.Event(t, func(e event.Event) bool {
				return e.Kind == event.Error && strings.Contains(e.Message, "connect to NRI")
			})
			_, cgroup := k.parent("0a1b-2c")
			port, other := k.world.Port(), k.world.Port()
			one, two := fmt.Sprintf("one.%d.", port), fmt.Sprintf("two.%d.", other)
			web := k.pod("web-0", "0a1b-2c", map[string]string{"weir.guard": "1"})
			first := web.start("one", k.sends(one, port)...)
			web.start("two", k.sends(two, other)...)
			if !k.world.Here.WaitGot(one, rig.Late) || !k.world.Here.WaitGot(two, rig.Late) {
				t.Fatal("a clean pod gets nothing out: the attempt proves nothing")
			}
			found := k.known(s, "web-0", func(c control.Container) bool { return c.Live })
			if found.Cgroup != cgroup || found.PodNamespace != "shop" || found.Pod != "web-0" {
				t.Errorf("the pod is %+v, its cgroup should be %s", found, cgroup)
			}

			k.exec(first, "/bin/cat", "/secret/key") // one of its containers
			k.known(s, "web-0", func(c control.Container) bool { return slices.Contains(c.Taint, "secret") })
			k.tries(s, cgroup, 2) // what was on its way has arrived
			mark := k.world.Mark(t)
			k.tries(s, cgroup, 4)
			k.world.Nothing(t, mark, "never", port)
			k.world.Nothing(t, mark, "never", other)

			s.Policy(t, "hold: true\napprover: person\n"+podRules)
			port = k.world.Port()
			text := fmt.Sprintf("granted.%d.", port)
			web.start("three", k.sends(text, port)...)
			k.until("what was granted arrives", func() bool {
				for _, q := range s.Pending(t) {
					if q.Container.Name == "web-0" {
						s.Approve(t, q.ID)
					}
				}
				return k.world.Here.Got(text)
			})
		})
	}
	if offersNRI(t) {
		t.Run("NRI", testNRI)
	}
}

// offersNRI says whether this containerd asks plugins: 1.7 does, 1.6 does not.
func offersNRI(t *testing.T) bool {
	return !strings.Contains(rig.Must(t, "containerd --version"), " 1.6.")
}

const asking = `{"tool_name":"Bash","tool_input":{"command":"curl http://192.0.2.1/"}}`

// Where the runtime asks before a container of a pod is made and started, whoever makes its cgroup, there is no gap: it is guarded and
// has its taint, also what is stored of the pod (B45), before its first instruction, and the ways to ask are there.
func testNRI(t *testing.T) {
	for _, driver := range drivers() {
		t.Run(driver, func(t *testing.T) {
			k := newKubelet(t, driver, true)
			s := rig.StartSensor(t, refuses+"ipc: /workspace/ipc\n"+podRules)
			k.connected(t, s)
			k.asked(t, s)
			t.Run("refused", func(t *testing.T) { k.privileged(t) })
			t.Run("B45", func(t *testing.T) { k.restarted(t, s) })
			t.Run("sensor is restarted", func(t *testing.T) {
				s.Kill(t)
				s.Restart(t)
				k.connected(t, s)
				k.labelled(t, s, "2").remove()
			})
			t.Run("containerd is restarted", func(t *testing.T) {
				before := told(t, s, notAsked)
				k.stop()
				k.start()
				k.until("the runtime does not ask any more", func() bool { return told(t, s, notAsked) > before })
				k.connected(t, s)
				k.labelled(t, s, "3").remove()
			})
			for _, e := range s.Events(t, event.Error) {
				if strings.Contains(e.Message, "guarded late") {
					t.Errorf("there was a gap: %s", e.Message)
				}
			}
		})
	}
}

// What the log tells of the connection.
const (
	notAsked = "answer the runtime before containers start"
	askedNow = "the runtime asks before containers start"
)

// told counts what the log tells of.
func told(t *testing.T, s *rig.Sensor, message string) (n int) {
	t.Helper()
	for _, e := range s.Events(t, event.Error) {
		if strings.Contains(e.Message, message) {
			n++
		}
	}
	return n
}

// connected waits until the runtime asks: that it does not yet, or no more, is told before the sensor is ready.
func (k *kubelet) connected(t *testing.T, s *rig.Sensor) {
	t.Helper()
	k.until("the runtime asks", func() bool {
		asks := true
		for _, e := range s.Events(t, event.Error) {
			asks = asks && !strings.Contains(e.Message, notAsked) || strings.Contains(e.Message, askedNow)
		}
		return asks
	})
}

// labelled runs a pod that is tainted by label: nothing gets out from its first instruction on.
func (k *kubelet) labelled(t *testing.T, s *rig.Sensor, uid string) *pod {
	t.Helper()
	_, cgroup := k.parent(uid)
	port := k.world.Port()
	text, mark := fmt.Sprintf("secret.%d.", port), k.world.Mark(t)
	p := k.pod("web-"+uid, uid, map[string]string{"weir.taint": "secret"})
	p.start("one", k.sends(text, port)...)
	k.tries(s, cgroup, 2)
	k.world.Nothing(t, mark, text, port)
	return p
}

// asked looks at what a container has been given before its process started.
func (k *kubelet) asked(t *testing.T, s *rig.Sensor) {
	t.Helper()
	k.labelled(t, s, "1").remove()
	p := k.pod("asks", "4", map[string]string{"weir.taint": "secret"}) // of a pod one folder is answered
	defer p.remove()
	const first = "stat -c bridge.%F /run/weir/bridge/shared.sock; stat -c folder.%u /workspace/ipc; echo '" + asking + "' | weir-hook generic; " +
		"until [ -e /workspace/ipc/sensor.alive ]; do sleep 0.2; done; echo '" + asking + "' | WEIR_BRIDGE=/none weir-hook generic; echo done; sleep 1000"
	_, err := p.tryStart(&cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: "asks"}, Command: []string{"/bin/sh", "-c", first},
		Linux: &cri.LinuxContainerConfig{SecurityContext: &cri.LinuxContainerSecurityContext{RunAsUser: &cri.Int64Value{Value: 1000}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	k.until("the container has asked", func() bool { return strings.Contains(p.log("asks"), " done\n") })
	said := p.log("asks")
	t.Logf("the container says:\n%s", said)
	if !strings.Contains(said, "bridge.socket\n") {
		t.Error("the bridge's socket is not there when the container begins")
	}
	if !strings.Contains(said, "folder.1000\n") {
		t.Error("the folder for requests is not the user's when the container begins")
	}
	if n := strings.Count(said, `"allowed":false`); n != 2 || strings.Contains(said, "cannot be asked") {
		t.Errorf("%d of two ways to ask are answered by a denial of the host", n)
	}
	free := k.pod("other", "9", nil)
	id := free.start("one", "/bin/sleep", "1000")
	if out, exit := k.exec(id, "/bin/ls", "/run/weir"); exit == 0 {
		t.Errorf("a pod that nothing matches has %s", out)
	}
	free.remove()
}

// privileged is what the policy refuses: its start fails.
func (k *kubelet) privileged(t *testing.T) {
	t.Helper()
	privileged := &cri.LinuxSandboxSecurityContext{Privileged: true}
	named, _ := k.parent("7")
	p := &pod{k: k, config: &cri.PodSandboxConfig{
		Metadata: &cri.PodSandboxMetadata{Name: "root", Uid: "7", Namespace: "shop"}, LogDirectory: t.TempDir(),
		Labels: map[string]string{"io.kubernetes.pod.name": "root", "io.kubernetes.pod.namespace": "shop", "io.kubernetes.pod.uid": "7", "weir.refuse": "1"},
		Linux:  &cri.LinuxPodSandboxConfig{CgroupParent: named, SecurityContext: privileged},
	}}
	p.run()
	port := k.world.Port()
	text, mark := fmt.Sprintf("refused.%d.", port), k.world.Mark(t)
	_, err := p.tryStart(&cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: "one"}, Command: k.sends(text, port),
		Linux: &cri.LinuxContainerConfig{SecurityContext: &cri.LinuxContainerSecurityContext{Privileged: true}},
	})
	if err == nil || !strings.Contains(err.Error(), "the policy refuses") {
		t.Errorf("a privileged container starts: %v", err)
	}
	k.world.Nothing(t, mark, text, port)
	p.remove()
}

// restarted runs a pod again that was tainted, removed with all its cgroups, and has no label that says so (B45).
func (k *kubelet) restarted(t *testing.T, s *rig.Sensor) {
	t.Helper()
	_, cgroup := k.parent("5")
	port, again := k.world.Port(), k.world.Port()
	text := fmt.Sprintf("clean.%d.", port)
	p := k.pod("web-5", "5", map[string]string{"weir.guard": "1"})
	p.start("one", k.sends(text, port)...)
	if !k.world.Here.WaitGot(text, rig.Late) {
		t.Fatal("a clean pod gets nothing out: the attempt proves nothing")
	}
	k.known(s, "web-5", func(c control.Container) bool { return c.Live })
	s.Taint(t, "web-5", "secret")
	p.remove()
	rig.Must(t, "rmdir /sys/fs/cgroup"+cgroup+" 2>/dev/null; true") // as a kubelet does
	text = fmt.Sprintf("again.%d.", again)
	mark := k.world.Mark(t)
	p.run()
	p.start("one", k.sends(text, again)...)
	k.tries(s, cgroup, 2)
	k.world.Nothing(t, mark, text, again)
	k.known(s, "web-5", func(c control.Container) bool { return c.Live && slices.Contains(c.Taint, "secret") })
	p.remove()
}
