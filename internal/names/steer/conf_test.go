package steer

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// Who makes a user namespace may change its root, and mount over /etc/resolv.conf: what is seen there is nobody's word (B24).
func TestOwnUserNamespace(t *testing.T) {
	believed := func(pid int) bool {
		t.Helper()
		_, ok, err := configOf(pid, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	start := func(attr *syscall.SysProcAttr) int {
		t.Helper()
		cmd := exec.Command("sleep", "60")
		cmd.SysProcAttr = attr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
		return cmd.Process.Pid
	}
	st, err := os.Stat("/etc/resolv.conf")
	if there := err == nil && st.Mode().IsRegular(); believed(start(nil)) != there {
		t.Errorf("in the same one: believed %v", !there)
	}
	if believed(start(&syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER})) {
		t.Error("in one of its own: believed")
	}
}
