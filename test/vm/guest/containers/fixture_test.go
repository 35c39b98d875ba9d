//go:build vmguest

// Package containers runs the packaged containerd and runc with a sensor that follows them.
package containers

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/control"
	"weir/internal/event"
	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) { inside.Main(m) }

const (
	rootfs  = "/tmp/rootfs"
	socket  = "/run/containerd/containerd.sock"
	labels  = "containers:\n  containerd: " + socket + "\n  match:\n"
	tainted = "    - labels: {weir.taint: secret}\n      taint: [secret]\n"
)

// host is a machine with containerd on it.
type host struct {
	t      *testing.T
	world  *rig.Outside
	config string // containerd's; empty: the package's
	runs   *exec.Cmd
	ended  chan error
}

// newHost starts containerd, and has an empty root file system with a shell and what sends.
func newHost(t *testing.T) *host {
	t.Helper()
	return newHostOf(t, "")
}

// newHostOf has containerd run with a configuration file.
func newHostOf(t *testing.T, config string) *host {
	t.Helper()
	h := &host{t: t, world: rig.NewOutside(t), config: config}
	rig.Must(t, "mkdir -p "+rootfs+"/bin "+rootfs+"/proc "+rootfs+"/sys "+rootfs+"/dev "+rootfs+"/tmp "+rootfs+"/shared")
	rig.Must(t, "cp /bin/busybox $(command -v egress) "+rootfs+"/bin/ && for a in sh sleep cat echo; do ln -sf busybox "+rootfs+"/bin/$a; done")
	h.start()
	t.Cleanup(func() {
		for _, id := range strings.Fields(h.ctr("container", "ls", "-q")) {
			h.remove(id)
		}
		h.stop()
	})
	return h
}

func (h *host) start() {
	h.t.Helper()
	h.runs = exec.Command("containerd", "--log-level", "warn")
	if h.config != "" {
		h.runs.Args = append(h.runs.Args, "--config", h.config)
	}
	h.runs.Stderr = os.Stderr
	h.runs.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := h.runs.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.ended = make(chan error, 1)
	go func(c *exec.Cmd, ended chan error) { ended <- c.Wait() }(h.runs, h.ended)
	h.until("containerd answers", func() bool { return exec.Command("ctr", "version").Run() == nil })
}

func (h *host) stop() {
	h.t.Helper()
	if err := h.runs.Process.Signal(syscall.SIGTERM); err != nil {
		h.t.Fatal(err)
	}
	<-h.ended
}

func (h *host) ctr(args ...string) string {
	h.t.Helper()
	out, err := h.try(args...)
	if err != nil {
		h.t.Fatalf("ctr %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

func (h *host) try(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := exec.Command("ctr", args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// sends is a command that tries to get text out to a port, again and again.
func (h *host) sends(text string, port int) []string {
	at := fmt.Sprintf("%s:%d", rig.World4, port)
	h.world.World.Listen(h.t, "tcp", fmt.Sprintf("[::]:%d", port))
	h.world.World.Listen(h.t, "udp", fmt.Sprintf("[::]:%d", port))
	return []string{"/bin/sh", "-c", fmt.Sprintf("while :; do egress udp-sendto -to %s -say %s; egress tcp -to %s -say %s; sleep 0.2; done", at, text, at, text)}
}

// run starts a container on the host's network; flags are of ctr run.
func (h *host) run(id string, flags []string, argv ...string) {
	h.t.Helper()
	h.ctr(append(append([]string{"run", "-d", "--net-host"}, flags...), append([]string{"--rootfs", rootfs, id}, argv...)...)...)
}

// remove ends a container and deletes it. It may have ended.
func (h *host) remove(id string) {
	_, _ = h.try("task", "rm", "-f", id)
	h.until("the task of "+id+" is gone", func() bool {
		out, err := h.try("task", "ls", "-q")
		return err == nil && !strings.Contains("\n"+out, "\n"+id+"\n")
	})
	if out, err := h.try("container", "rm", id); err != nil {
		h.t.Errorf("remove %s: %v: %s", id, err, out)
	}
}

// killed waits until no process of a container's runs.
func (h *host) killed(id string) {
	h.t.Helper()
	h.until("container "+id+" is killed", func() bool {
		out, err := h.try("task", "ls")
		for line := range strings.Lines(out) { // id, process, state
			if f := strings.Fields(line); len(f) == 3 && f[0] == id && f[2] != "STOPPED" {
				return false
			}
		}
		return err == nil
	})
}

// again is what a runtime does when a container has ended: the same container gets a new first process.
func (h *host) again(id string) {
	h.t.Helper()
	_, _ = h.try("task", "kill", "-s", "KILL", id)
	h.until("the first process of "+id+" has ended", func() bool {
		_, err := h.try("task", "rm", id)
		return err == nil
	})
	h.ctr("task", "start", "-d", id)
}

func (h *host) until(what string, done func() bool) {
	h.t.Helper()
	const limit = 3 * rig.Late // the runtime and its client are large programs
	for end := time.Now().Add(limit); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// known waits until the sensor knows a container by its name.
func (h *host) known(s *rig.Sensor, name string, want func(control.Container) bool) control.Container {
	h.t.Helper()
	var found control.Container
	h.until("the sensor knows "+name, func() bool {
		for _, c := range s.Containers(h.t) {
			if c.Name == name && want(c) {
				found = c
				return true
			}
		}
		return false
	})
	return found
}

// tries waits until the container was refused n times more: it runs, and does what it is there for.
func (h *host) tries(s *rig.Sensor, cgroup string, n int) {
	h.t.Helper()
	count := func() (seen int) {
		for _, e := range s.Events(h.t, event.Connect, event.Hold) {
			if e.Container != nil && e.Container.Cgroup == cgroup {
				seen++
			}
		}
		return seen
	}
	before := count()
	h.until(cgroup+" tries to get out", func() bool { return count() >= before+n })
}

func entries(t *testing.T, name string) int {
	t.Helper()
	out := rig.Must(t, "ls /sys/fs/bpf/weir/links | wc -l; find /sys/fs/cgroup -type d | wc -l")
	var links, cgroups int
	if _, err := fmt.Sscan(out, &links, &cgroups); err != nil {
		t.Fatal(err)
	}
	if name == "links" {
		return links
	}
	return cgroups
}

func fds(t *testing.T, pid int) int {
	t.Helper()
	all, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
