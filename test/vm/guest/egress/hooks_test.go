//go:build vmguest

package egress

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"weir/internal/linux"
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

// late says whether a cgroup may have run before it was guarded.
func late(t *testing.T, dir string) bool {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	m, err := ebpf.LoadPinnedMap("/sys/fs/bpf/weir/cgroups", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	state, err := m.LookupBytes(st.Ino)
	return err == nil && len(state) > 8 && binary.NativeEndian.Uint32(state[4:])&8 != 0 // STATE_LATE
}

// forget takes what sessions left out of the kernel, as a sensor does after an hour.
func forget(t *testing.T) {
	t.Helper()
	m, err := ebpf.LoadPinnedMap("/sys/fs/bpf/weir/cgroups", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var left []uint64
	var id uint64
	var state []byte
	for all := m.Iterate(); all.Next(&id, &state); {
		left = append(left, id)
	}
	for _, id := range left {
		if _, err := linux.CgroupPath(id); err == nil {
			continue
		}
		if err := m.Delete(id); err != nil {
			t.Error(err)
		}
	}
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
		if found := attached(t); len(found) < len(hooks) {
			t.Errorf("somebody outside may yet get what tainted sessions left, and only %v are attached (B96)", found)
		}
		sensor.Stop(t)
		forget(t)
		sensor.Restart(t)
		if found := attached(t); len(found) > 0 {
			t.Errorf("nothing is guarded any more, and %v are attached", found)
		}
	})
	t.Run("by_hand", func(t *testing.T) { // below /weir, where the sensor makes its own
		const dir = "/sys/fs/cgroup/weir/hand"
		rig.Must(t, "mkdir "+dir)
		hand := rig.BareIn(t, "hand", dir)
		// whoever is made meanwhile may have had Unix sockets that no program saw
		early, made := []string{dir}, 0
		rig.Eventually(t, "all are attached", func() bool {
			next := fmt.Sprintf("%s-%d", dir, made)
			made++
			rig.Must(t, "mkdir "+next)
			t.Cleanup(func() { rig.RemoveCgroup(t, next) })
			found := attached(t)
			if !slices.Contains(found, "weir_connect") || !slices.Contains(found, "weir_unix") {
				early = append(early, next)
			}
			return len(found) == len(hooks)
		})
		for _, dir := range early {
			if !late(t, dir) {
				t.Errorf("%s, of %d that were made before all was attached, counts as guarded from the start", dir, len(early))
			}
		}
		if r := hand.Run(t, "cat", secretFile); !strings.Contains(r.Stdout, "key") {
			t.Error(r)
		}
		refusedAll(t, world, hand)
	})
	t.Run("lost", func(t *testing.T) { // what only the kernel knows is guarded, too
		const dir = "/sys/fs/cgroup/lost"
		rig.Must(t, "mkdir "+dir)
		lost := rig.BareIn(t, "lost", dir)
		if out, exit := sensor.Weir(t, "guard", "--cgroup", "/lost"); exit != 0 {
			t.Fatal(out)
		}
		sensor.Taint(t, "/lost", "corruption")
		sensor.Stop(t)
		rig.Must(t, "rm -r /var/lib/weir")
		sensor.Restart(t)
		if found := attached(t); len(found) < len(hooks) {
			t.Errorf("the kernel has a tainted container, and only %v are attached", found)
		}
		refusedAll(t, world, lost)
	})
	t.Run("policy", func(t *testing.T) { // a parent of the policy needs no daemon
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
