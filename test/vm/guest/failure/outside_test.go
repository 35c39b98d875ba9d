//go:build vmguest

package failure

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"weir/test/vm/guest/rig"
)

const pins = "/sys/fs/bpf/weir"

func itoa(n int) string { return strconv.Itoa(n) }

// setClock sets the wall clock forward, or back.
func setClock(t *testing.T, by time.Duration) {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &now); err != nil {
		t.Fatal(err)
	}
	now.Sec += int64(by / time.Second)
	if err := unix.ClockSettime(unix.CLOCK_REALTIME, &now); err != nil {
		t.Fatal(err)
	}
}

// clock: grants, questions and taint do not go by the wall clock of a daemon that runs.
func (f *fixture) clock(t *testing.T) {
	l := f.leave(t)
	for _, by := range []time.Duration{time.Hour, -2 * time.Hour, 49 * time.Hour, -48 * time.Hour} {
		setClock(t, by)
		time.Sleep(500 * time.Millisecond)
		f.probe.Nothing(t)
	}
	f.remembered(t, l)
	l.waits.approve(t)
}

// container is a command in a cgroup below the guarded parent, as a runtime would start it.
func (f *fixture) container(t *testing.T, path string, to target) rig.Result {
	t.Helper()
	dir := "/sys/fs/cgroup" + path
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// It may not run before its taint is back: that comes with an event, just after.
	rig.Eventually(t, "admitted", func() bool { return f.known(t, path) })
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	argv := to.Egress("tcp")
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = &unix.SysProcAttr{UseCgroupFD: true, CgroupFD: int(d.Fd())}
	out, err := cmd.CombinedOutput()
	r := rig.Result{Exit: cmd.ProcessState.ExitCode(), Stdout: string(out)}
	if err == nil {
		r.Error = "it was let out"
	}
	return r
}

// known says whether the sensor knows the cgroup that is at a path now.
func (f *fixture) known(t *testing.T, path string) bool {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat("/sys/fs/cgroup"+path, &st); err != nil {
		t.Fatal(err)
	}
	m, err := ebpf.LoadPinnedMap(pins+"/cgroups", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	b, err := m.LookupBytes(st.Ino)
	if err != nil {
		t.Fatal(err)
	}
	return b != nil
}

// madeAgain: a container that is removed and made again under the same path has its taint (B45).
func (f *fixture) madeAgain(t *testing.T) {
	path := parent + "/one"
	first := f.target(t)
	if r := f.container(t, path, first); r.Exit != 0 {
		t.Errorf("untainted: %s", r)
	}
	f.sensor.Taint(t, path, "secret")
	for range 5 {
		rig.RemoveCgroup(t, "/sys/fs/cgroup"+path)
		to := f.target(t)
		if r := f.container(t, path, to); r.Exit != 3 || !strings.Contains(r.Stdout, "EPERM") {
			t.Errorf("made again: %s", r)
		}
		f.wantTaint(t, path, "secret")
		to.Nothing(t)
	}
	rig.RemoveCgroup(t, "/sys/fs/cgroup"+path)
}

// parentMadeAgain: so has one whose guarded parent was made again too.
func (f *fixture) parentMadeAgain(t *testing.T) {
	path := parent + "/two"
	if err := os.Mkdir("/sys/fs/cgroup"+path, 0o755); err != nil {
		t.Fatal(err)
	}
	rig.Eventually(t, "admitted", func() bool { return f.known(t, path) })
	f.sensor.Taint(t, path, "secret")
	rig.RemoveCgroup(t, "/sys/fs/cgroup"+parent)
	f.loaded(t, func() { write(t, whole(policy+"hold: true\n")) })      // one that is missed is no mistake in the policy
	if err := os.MkdirAll("/sys/fs/cgroup"+parent, 0o755); err != nil { // the sensor may have made it already
		t.Fatal(err)
	}
	f.message(t, "was made again")
	to := f.target(t)
	if r := f.container(t, path, to); r.Exit != 3 {
		t.Errorf("below a parent that was made again: %s", r)
	}
	to.Nothing(t)
	// what was sent below the one that is gone may still be queued: its programs stay for a while
	links, err := filepath.Glob(pins + "/links/weir_packet-*")
	if err != nil || len(links) != 3 {
		t.Errorf("links of the slice, of the parent and of the one before it are wanted, got %v %v", links, err)
	}
	rig.RemoveCgroup(t, "/sys/fs/cgroup"+path)
}

// unmounted: without a bpf file system all that is in force hangs on the daemon. It goes on, mounts one, and pins all again, so
// that it can be killed as before.
func (f *fixture) unmounted(t *testing.T) {
	l := f.leave(t)
	rig.Must(t, "umount -l /sys/fs/bpf")
	f.probe.Steady(t)
	f.remembered(t, l)
	l.waits.approve(t)
	f.message(t, "the pins are gone")
	f.message(t, "the pins are back")
	l = f.leave(t)
	began := time.Now()
	f.sensor.Kill(t)
	l.waits.fails(t, began, "when the daemon was killed after its pins were made again")
	f.probe.Steady(t)
	f.sensor.Restart(t)
	f.remembered(t, l)
	f.sensor.Deny(t, l.waits.q.ID)

	// killed before it could pin anything again, what is held is still woken: its maps are known
	h := f.hold(t)
	rig.Must(t, "rm -rf "+pins+"/holds "+pins+"/config")
	began = time.Now()
	f.sensor.Kill(t)
	h.fails(t, began, "when the daemon and the pins of what is held were gone")
}
