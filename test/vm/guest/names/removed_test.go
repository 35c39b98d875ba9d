//go:build vmguest

package names

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"weir/test/vm/guest/rig"
)

const links = "/sys/fs/bpf/weir/links/"

// removed: when the cgroup of a container by itself is removed its names are forgotten, and its packets are judged for as long as a
// socket of it may still send (B21).
func (f *fixture) removed(t *testing.T) {
	const path = "/names-alone"
	dir := "/sys/fs/cgroup" + path
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var st syscall.Stat_t
	if err := syscall.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	at, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(at.Fd())}
	err = cmd.Start()
	at.Close()
	if err != nil {
		t.Fatal(err)
	}
	f.sensor.Must(t, "guard", "--cgroup", path)
	f.sensor.Taint(t, path, "secret")
	there := func(program string) bool {
		_, err := os.Stat(fmt.Sprintf("%s%s-%d", links, program, st.Ino))
		return err == nil
	}
	if !there("weir_name4") || !there("weir_packet") {
		t.Error("no programs are attached to the container: the test shows nothing")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	rig.RemoveCgroup(t, dir)
	rig.Eventually(t, "the names of the container are forgotten", func() bool { return !there("weir_name4") })
	time.Sleep(2500 * time.Millisecond) // once more
	for _, program := range []string{"weir_packet", "weir_connect4"} {
		if !there(program) {
			t.Errorf("%s is not attached any more", program)
		}
	}
}
