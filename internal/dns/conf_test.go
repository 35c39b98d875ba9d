package dns

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Who makes a user namespace may change its root, and mount over /etc/resolv.conf: what is seen there is nobody's word (B24).
func TestOwnUserNamespace(t *testing.T) {
	believed := func(pid int) bool {
		t.Helper()
		its := configOf(pid, time.Time{})
		if its.err != nil {
			t.Fatal(its.err)
		}
		return its.believed
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

// Who enters a user namespace and mounts something there meanwhile is seen in it afterwards (B24).
func TestOwnUserNamespaceAfterwards(t *testing.T) {
	dir := t.TempDir()
	put := func(text string) {
		t.Helper()
		name := filepath.Join(dir, confPath)
		if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "etc"), 0o700); err != nil {
		t.Fatal(err)
	}
	put("nameserver 192.0.2.1\n")
	root, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, ours := range []bool{true, false} {
		conf, believed, err := confIn(root, time.Time{}, func() (bool, error) {
			put("nameserver 192.0.2.2\n") // from here on it counts as chosen by others
			return ours, nil
		})
		put("nameserver 192.0.2.1\n")
		if err != nil || believed != ours || len(conf.Servers) != 1 || conf.Servers[0].String() != "192.0.2.1" {
			t.Errorf("ours %v: believed %v, %v, %v", ours, believed, conf, err)
		}
	}
}
