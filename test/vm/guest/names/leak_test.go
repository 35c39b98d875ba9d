//go:build vmguest

package names

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/event"
	"weir/test/vm/guest/rig"
)

const parent = "/namesleak" // guarded; what is made in it is a container

// loops is how many containers come and go; make load has more.
func loops() int {
	if os.Getenv("WEIR_LOAD") != "" {
		return 30
	}
	return 6
}

// nameMaps are those that packages of names fill.
var nameMaps = []string{"fake_ips", "dns_leases", "fake_targets", "resolvers"}

// asksOnce asks for a name when it is told to, in a network namespace of its own that is named on its standard output.
const asksOnce = `ip link set lo up && readlink /proc/self/ns/net && read -r go && busybox nslookup $0 203.0.113.53 >/dev/null; echo asked $?; read -r end`

// leak: containers that are tainted and removed take their resolvers along: sockets, goroutines, namespaces, links, entries.
func (f *fixture) leak(t *testing.T) {
	f.box(t, "leak0") // what is made once and kept
	many, seen := loops(), map[string]bool{}
	// what earlier tests opened by name ends by itself in a minute or two, perhaps just now: that happens once, a leak each time
	for try := 1; ; try++ {
		before := f.sensor.Settle(t, nil, nameMaps...)
		for i := range many {
			seen[f.box(t, fmt.Sprintf("leak%d-%d", try, i))] = true
		}
		after := f.sensor.Settle(t, &before, nameMaps...)
		t.Logf("%d containers: before %+v, after %+v", many, before, after)
		diff := cmp.Diff(before, after)
		if diff == "" {
			break
		}
		if try == 3 {
			t.Errorf("after %d containers: before - after +\n%s", many, diff)
			break
		}
	}
	if len(seen) < 2 {
		t.Errorf("the containers had no network namespaces of their own: %v", seen)
	}
}

// box is the life of one container, which has a resolver for some of it; it returns its network namespace.
func (f *fixture) box(t *testing.T, name string) string {
	t.Helper()
	dir := "/sys/fs/cgroup" + parent + "/" + name
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	at, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "-n", "bash", "-c", asksOnce, name+".evil.example")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(at.Fd())}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	at.Close()
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	line := func() string {
		l, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return strings.TrimSpace(l)
	}
	ns := line()
	f.sensor.Taint(t, parent+"/"+name, "secret")
	if _, err := io.WriteString(in, "\n"); err != nil {
		t.Fatal(err)
	}
	if l := line(); l != "asked 0" {
		t.Errorf("%s: %s: its resolver does not answer; errors: %+v", name, l, f.sensor.Events(t, event.Error))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	rig.RemoveCgroup(t, dir)
	return ns
}
