//go:build vmguest

package containers

import (
	"fmt"
	"slices"
	"testing"

	"weir/internal/control"
	"weir/test/vm/guest/rig"
)

const podRules = labels + tainted + "    - labels: {weir.guard: \"*\"}\n"

// Pods as a kubelet has them made, on a bridge: found by the labels of their sandbox, guarded as one (G3), tainted by what one of
// their containers does, denied on the host's side of the bridge, granted by a person.
func TestPods(t *testing.T) {
	for _, driver := range drivers {
		t.Run(driver, func(t *testing.T) {
			k := newKubelet(t, driver, false)
			s := rig.StartSensor(t, refuses+"taint:\n  secret_files: [/secret/key]\n"+podRules)
			_, cgroup := k.parent("0a1b-2c")
			port, other := k.world.Port(), k.world.Port()
			one, two := fmt.Sprintf("one.%d.", port), fmt.Sprintf("two.%d.", other)
			web := k.pod("web-0", "0a1b-2c", map[string]string{"weir.guard": "1"})
			first := web.start("one", k.sends(one, port)...)
			web.start("two", k.sends(two, other)...)
			if !k.world.Here.WaitGot(one, slow) || !k.world.Here.WaitGot(two, slow) {
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
}
