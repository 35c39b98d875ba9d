//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	containers "github.com/containerd/containerd/api/services/containers/v1"
	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	runc "github.com/containerd/containerd/api/types/runc/options"
	"github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

const (
	containerdSocket = "/run/containerd/containerd.sock"
	rootfs           = "/var/lib/bench-rootfs"
	stamp            = "/stamp" // a pipe, seen from within: the first thing that a container does is to open it
)

// containerd is the packaged one, and a client of it.
type containerd struct {
	cmd        *exec.Cmd
	conn       *grpc.ClientConn
	containers containers.ContainersClient
	tasks      tasks.TasksClient
	made       int
}

// startContainerd starts it, and makes a root file system with a shell.
func startContainerd() (*containerd, error) {
	const tree = "mkdir -p $0/bin $0/proc $0/sys $0/dev $0/etc $0/root $0/tmp && cp /bin/busybox $0/bin/ && mkfifo $0" + stamp
	if out, err := exec.Command("bash", "-ec", tree, rootfs).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make a root file system: %w: %s", err, out)
	}
	log, err := os.Create("/var/log/containerd.log") // its shims say much
	if err != nil {
		return nil, fmt.Errorf("start containerd: %w", err)
	}
	defer log.Close()
	cmd := exec.Command("containerd", "--log-level", "error")
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start containerd: %w", err)
	}
	conn, err := grpc.NewClient("unix://"+containerdSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connect to containerd: %w", err)
	}
	c := &containerd{cmd: cmd, conn: conn, containers: containers.NewContainersClient(conn), tasks: tasks.NewTasksClient(conn)}
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		if _, err = c.tasks.List(inNamespace(), &tasks.ListTasksRequest{}); err == nil {
			return c, nil
		}
		if time.Now().After(end) {
			return nil, errors.Join(fmt.Errorf("start containerd: %w", err), c.close())
		}
	}
}

func (c *containerd) close() error {
	err := errors.Join(c.conn.Close(), c.cmd.Process.Kill())
	_ = c.cmd.Wait() // it was killed
	return err
}

func inNamespace() context.Context {
	return metadata.AppendToOutgoingContext(context.Background(), "containerd-namespace", "default")
}

// wanted is a container to be made.
type wanted struct {
	id     string
	labels map[string]string
	argv   []string
	binary string // of the runtime; empty: runc
	group  string // containers of one group have one shim; empty: one of its own
}

// create makes a container and runs it, as ctr run does.
func (c *containerd) create(w wanted) error {
	spec, err := json.Marshal(specification(w))
	if err != nil {
		return fmt.Errorf("make container %s: %w", w.id, err)
	}
	options, err := proto.Marshal(&runc.Options{BinaryName: w.binary})
	if err != nil {
		return fmt.Errorf("make container %s: %w", w.id, err)
	}
	with := &anypb.Any{TypeUrl: "containerd.runc.v1.Options", Value: options}
	if _, err := c.containers.Create(inNamespace(), &containers.CreateContainerRequest{Container: &containers.Container{
		ID: w.id, Labels: w.labels, Runtime: &containers.Container_Runtime{Name: "io.containerd.runc.v2", Options: with},
		Spec: &anypb.Any{TypeUrl: "types.containerd.io/opencontainers/runtime-spec/1/Spec", Value: spec},
	}}); err != nil {
		return fmt.Errorf("make container %s: %w", w.id, err)
	}
	if _, err := c.tasks.Create(inNamespace(), &tasks.CreateTaskRequest{ContainerID: w.id, Options: with}); err != nil {
		return fmt.Errorf("make the task of %s: %w", w.id, err)
	}
	if _, err := c.tasks.Start(inNamespace(), &tasks.StartRequest{ContainerID: w.id}); err != nil {
		return fmt.Errorf("start %s: %w", w.id, err)
	}
	return nil
}

// remove ends a container and deletes it.
func (c *containerd) remove(id string) error {
	if _, err := c.tasks.Kill(inNamespace(), &tasks.KillRequest{ContainerID: id, Signal: 9, All: true}); err != nil {
		return fmt.Errorf("kill %s: %w", id, err)
	}
	if _, err := c.tasks.Wait(inNamespace(), &tasks.WaitRequest{ContainerID: id}); err != nil {
		return fmt.Errorf("wait for %s: %w", id, err)
	}
	if _, err := c.tasks.Delete(inNamespace(), &tasks.DeleteTaskRequest{ContainerID: id}); err != nil {
		return fmt.Errorf("delete the task of %s: %w", id, err)
	}
	if _, err := c.containers.Delete(inNamespace(), &containers.DeleteContainerRequest{ID: id}); err != nil {
		return fmt.Errorf("delete %s: %w", id, err)
	}
	return nil
}

// startOne gives the ns from the request for a container to the first instruction's effect: a pipe that it opens.
func (c *containerd) startOne(labels map[string]string) (int64, error) {
	c.made++
	id := fmt.Sprintf("one-%d", c.made)
	opened := make(chan int64, 1)
	failed := make(chan error, 1)
	go func() {
		f, err := os.Open(rootfs + stamp)
		at := monotonic()
		if err != nil {
			failed <- err
			return
		}
		opened <- at
		f.Close()
	}()
	time.Sleep(300 * time.Millisecond) // until nothing of the one before is left to do
	start := monotonic()
	if err := c.create(wanted{id: id, labels: labels, argv: []string{"/bin/busybox", "sh", "-c", ": >" + stamp + "; exec /bin/busybox sleep 1000"}}); err != nil {
		return 0, err
	}
	var end int64
	select {
	case end = <-opened:
	case err := <-failed:
		return 0, fmt.Errorf("start %s: %w", id, err)
	case <-time.After(patience):
		return 0, fmt.Errorf("start %s: its process does nothing", id)
	}
	if err := c.remove(id); err != nil {
		return 0, err
	}
	return end - start, nil
}

// specification is near to what ctr run asks for.
func specification(w wanted) *specs.Spec {
	capabilities := []string{
		"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID", "CAP_SETUID", "CAP_SETFCAP",
		"CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE",
	}
	s := &specs.Spec{
		Version: "1.0.2",
		Root:    &specs.Root{Path: rootfs},
		Process: &specs.Process{
			Args: w.argv, Cwd: "/", Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, NoNewPrivileges: true,
			Capabilities: &specs.LinuxCapabilities{Bounding: capabilities, Effective: capabilities, Permitted: capabilities},
			Rlimits:      []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Hard: 1024, Soft: 1024}},
		},
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
			{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
			{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"}},
			{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
			{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", "ro"}},
			{Destination: "/run", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
		},
		Linux: &specs.Linux{
			CgroupsPath:   filepath.Join("/default", w.id),
			Resources:     &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Access: "rwm"}}},
			MaskedPaths:   []string{"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/sched_debug", "/sys/firmware", "/proc/scsi"},
			ReadonlyPaths: []string{"/proc/asound", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
		},
	}
	for _, kind := range []specs.LinuxNamespaceType{specs.PIDNamespace, specs.IPCNamespace, specs.UTSNamespace, specs.MountNamespace, specs.NetworkNamespace} {
		s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: kind})
	}
	if w.group != "" {
		s.Annotations = map[string]string{"io.containerd.runc.v2.group": w.group}
	}
	return s
}
