//go:build vmguest

package egress

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"weir/test/vm/guest/rig"
)

// hooks are links of programs that the whole host passes, of each kind.
var hooks = []string{"weir_connect", "weir_sendmsg", "weir_create", "weir_unix", "weir_attach", "weir_open", "weir_rename"}

// attached says which of them are pinned.
func attached(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/sys/fs/bpf/weir/links")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		if slices.Contains(hooks, e.Name()) {
			found = append(found, e.Name())
		}
	}
	return found
}

const rawSocket = "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)"

// refusedAll checks that nothing of a session gets out, by what the packet check sees and by what it does not.
func refusedAll(t *testing.T, world *rig.Outside, s *rig.Session) {
	t.Helper()
	to := world.Raw(t)
	for _, argv := range [][]string{to.Egress("tcp"), to.Egress("udp-sendto"), {"python3", "-c", rawSocket}} {
		if r := s.Run(t, argv...); r.Exit == 0 {
			t.Errorf("%s is not refused: %s", argv, r)
		}
	}
	to.Nothing(t)
}

// The programs that the whole host passes are attached before the first container is there: none has a moment without them.
func TestHooks(t *testing.T) {
	world := rig.NewOutside(t)
	rig.Must(t, "echo key > "+secretFile)
	sensor := rig.StartSensor(t, policy)
	if found := attached(t); len(found) > 0 {
		t.Errorf("nothing is guarded, and %v are attached", found)
	}
	t.Run("first", func(t *testing.T) {
		// at once, while the kernel still verifies them
		var all sync.WaitGroup
		sessions := make([]*rig.Session, 3)
		for i, name := range []string{"one", "two", "three"} {
			all.Go(func() { sessions[i] = sensor.Guard(t, name, "--taint", "corruption") })
		}
		all.Wait()
		if found := attached(t); len(found) < len(hooks) {
			t.Errorf("something is guarded, and only %v are attached", found)
		}
		for _, s := range sessions {
			if s != nil {
				refusedAll(t, world, s)
			}
		}
		reader := sensor.Guard(t, "reader")
		if r := reader.Run(t, "cat", secretFile); !strings.Contains(r.Stdout, "key") {
			t.Error(r)
		}
		refusedAll(t, world, reader)
		sensor.Kill(t)
		refusedAll(t, world, reader)
		sensor.Restart(t)
		if found := attached(t); len(found) < len(hooks) {
			t.Errorf("something is guarded after a restart, and only %v are attached", found)
		}
		refusedAll(t, world, reader)
	})
	t.Run("last", func(t *testing.T) {
		rig.Eventually(t, "the sessions are over", func() bool { return len(sensor.Containers(t)) == 0 })
		sensor.Stop(t)
		sensor.Restart(t)
		if found := attached(t); len(found) > 0 {
			t.Errorf("nothing is guarded any more, and %v are attached", found)
		}
	})
	t.Run("by_hand", func(t *testing.T) { // below /weir, where the sensor makes its own
		const dir = "/sys/fs/cgroup/weir/hand"
		rig.Must(t, "mkdir "+dir)
		hand := rig.BareIn(t, "hand", dir)
		rig.Eventually(t, "all are attached", func() bool { return len(attached(t)) == len(hooks) })
		if r := hand.Run(t, "cat", secretFile); !strings.Contains(r.Stdout, "key") {
			t.Error(r)
		}
		refusedAll(t, world, hand)
	})
	t.Run("policy", func(t *testing.T) { // a parent of the policy needs no daemon
		rig.Eventually(t, "the kernel forgets the cgroup", func() bool { _, err := os.Stat("/sys/fs/cgroup/weir/hand"); return err != nil })
		rig.Must(t, "mkdir -p /sys/fs/cgroup/hooks")
		t.Cleanup(func() { rig.RemoveCgroup(t, "/sys/fs/cgroup/hooks") })
		sensor.Stop(t)
		sensor.Configure(t, policy+"guard:\n  parents: [/hooks]\n")
		sensor.Restart(t)
		if found := attached(t); len(found) < len(hooks) {
			t.Errorf("the policy guards a parent, and only %v are attached", found)
		}
	})
}
