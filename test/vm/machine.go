package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hugelgupf/vmtest/qemu"

	"weir/test/vm/handover"
)

const (
	qemuProgram = "qemu-system-x86_64"
	// The kernel's own messages go to the serial line from KERN_DEFAULT up, so that an oops is seen whole. Without norandmaps a library is
	// somewhere else in each process, and QEMU translates it anew each time: a process then takes three times as long.
	kernelArgs = "console=ttyS0 loglevel=5 edd=off no_timer_check nowatchdog oops=panic panic=-1 mitigations=off rcupdate.rcu_cpu_stall_timeout=120 " +
		"syscall.x32=y norandmaps rdinit=/" + handover.InitName + " " + handover.KernelFlag
	probeArgs = handover.ProbeFlag
	// bootLimit is how much longer than its job a VM may take, on a busy machine.
	bootLimit = 5 * time.Minute
)

// Share is a directory of the host that the guest sees, read-only, at Path.
type Share struct {
	Dir  string
	Path string
}

// Machine is a VM that runs one command. Zero values mean 2 CPUs, 2048 MiB, 5 minutes.
type Machine struct {
	Kernel  Kernel
	Root    string // image of scripts/rootfs; empty means root
	Systemd bool   // process 1 is systemd, which the root must have
	Counted bool   // the guest's clock counts instructions, 1 ns each, whatever the host does; one CPU, in software
	CPUs    int
	MemMiB  int
	Timeout time.Duration // of the command; the VM may take five minutes more
	Args    []string      // the command
	Env     []string
	Dir     string    // its working directory
	Out     string    // directory of the host that the guest may write to, at /out; required
	Shares  []Share   // more of the host, read-only
	Output  io.Writer // the command's output, live; nil discards it
	Console io.Writer // the kernel's messages, live; nil discards them
}

// Host has what machines are made of. NewHost makes it once, machines share it.
type Host struct {
	Repo string
	init []byte
}

// NewHost prepares this machine for VMs: packages, kernels, root image, init.
func NewHost(ctx context.Context) (*Host, error) {
	repo, err := Prepare(ctx)
	if err != nil {
		return nil, err
	}
	init, err := buildInit(ctx, repo)
	if err != nil {
		return nil, err
	}
	return &Host{Repo: repo, init: init}, nil
}

// Run boots the machine, waits until it is off, and returns the command's exit status. An error means that there is none: the VM
// did not boot, its kernel died, or the time was over.
func (h *Host) Run(ctx context.Context, m Machine) (int, error) {
	if m.Timeout == 0 {
		m.Timeout = 5 * time.Minute
	}
	if m.Root == "" {
		m.Root = "root"
	}
	if err := prepare(ctx, h.Repo, m.Root); err != nil {
		return 0, err
	}
	initrd, err := initramfs(m.Kernel, h.init)
	if err != nil {
		return 0, err
	}
	if err := m.writeJob(); err != nil {
		return 0, err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("boot %s: %w", m.Kernel.Version, err)
	}
	defer outR.Close()
	console := &console{next: m.Console}
	ctx, cancel := context.WithTimeout(ctx, m.Timeout+bootLimit)
	defer cancel()
	machine, err := qemu.StartContext(ctx, qemu.ArchAMD64,
		qemu.WithQEMUCommand(h.qemuCommand(ctx, m, initrd)), qemu.WithKernel(m.Kernel.Image()), qemu.WithInitramfs(initrd),
		qemu.WithAppendKernel(kernelArgs), qemu.WithSerialOutput(console), m.devices(h.Repo), outputPort(outW))
	outW.Close()
	if err != nil {
		return 0, fmt.Errorf("boot %s: %w", m.Kernel.Version, err)
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		w := m.Output
		if w == nil {
			w = io.Discard
		}
		_, _ = io.Copy(w, outR)
	}()
	waitErr := machine.Wait()
	<-copied
	if ctx.Err() != nil {
		return 0, fmt.Errorf("run in %s: no end after %s: %w\n%s", m.Kernel.Version, m.Timeout+bootLimit, ctx.Err(), console.tail())
	}
	status, err := readStatus(m.Out)
	switch {
	case console.trouble() != "":
		return 0, fmt.Errorf("run in %s: kernel trouble: %s\n%s", m.Kernel.Version, console.trouble(), console.tail())
	case err != nil:
		return 0, fmt.Errorf("run in %s: the VM left no status: %w\n%s", m.Kernel.Version, errors.Join(err, waitErr), console.tail())
	case status.Error != "":
		return 0, fmt.Errorf("run in %s: %s\n%s", m.Kernel.Version, status.Error, console.tail())
	case waitErr != nil:
		return 0, fmt.Errorf("run in %s: QEMU: %w\n%s", m.Kernel.Version, waitErr, console.tail())
	}
	return status.Exit, nil
}

// qemuCommand is VMTEST_QEMU as it stands, or QEMU such that it does not outlive us.
func (h *Host) qemuCommand(ctx context.Context, m Machine, initrd string) string {
	const qemu = "setpriv --pdeathsig KILL " + qemuProgram + " "
	if m.Counted {
		return qemu + counted
	}
	if cmd := os.Getenv("VMTEST_QEMU"); cmd != "" {
		return cmd
	}
	return qemu + accelerator(ctx, h.Repo, m.Kernel, initrd)
}

func (m Machine) writeJob() error {
	job := handover.Job{Args: m.Args, Env: m.Env, Dir: m.Dir, Timeout: m.Timeout, Systemd: m.Systemd}
	for i, s := range m.Shares {
		job.Mounts = append(job.Mounts, handover.Mount{Tag: shareTag(i), Path: s.Path})
	}
	b, err := json.Marshal(job)
	if err != nil {
		return fmt.Errorf("write the job: %w", err)
	}
	if err := os.WriteFile(filepath.Join(m.Out, handover.JobFile), b, 0o644); err != nil {
		return fmt.Errorf("write the job: %w", err)
	}
	err = os.Remove(filepath.Join(m.Out, handover.StatusFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove an old status: %w", err)
	}
	return nil
}

func readStatus(out string) (s handover.Status, err error) {
	b, err := os.ReadFile(filepath.Join(out, handover.StatusFile))
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(b, &s)
}

func shareTag(i int) string { return fmt.Sprintf("share%d", i) }

// devices is what the VM has: CPUs, memory, the root as a private snapshot, the shares; no network but what the guest makes itself.
func (m Machine) devices(repo string) qemu.Fn {
	cpus, mem := m.CPUs, m.MemMiB
	if cpus == 0 {
		cpus = 2
	}
	if m.Counted {
		cpus = 1
	}
	if mem == 0 {
		mem = 2048
	}
	args := []string{
		"-m", fmt.Sprint(mem), "-smp", fmt.Sprint(cpus), "-no-reboot", "-nic", "none", "-vga", "none",
		"-drive", "if=virtio,format=raw,snapshot=on,cache=unsafe,file=" + escape(filepath.Join(repo, ".cache/vm", m.Root+".ext4")),
	}
	args = append(args, share("out", handover.OutTag, m.Out, "off")...)
	for i, s := range m.Shares {
		args = append(args, share("share"+fmt.Sprint(i), shareTag(i), s.Dir, "on")...)
	}
	return qemu.ArbitraryArgs(args...)
}

// share does without vmtest's P9Directory, which can neither share read-only nor keep files as they are (it maps their modes).
func share(id, tag, dir, readonly string) []string {
	return []string{
		"-fsdev", "local,security_model=none,multidevs=remap,id=" + id + ",readonly=" + readonly + ",path=" + escape(dir),
		"-device", "virtio-9p-pci,fsdev=" + id + ",mount_tag=" + tag,
	}
}

// escape doubles commas, as QEMU's option syntax wants.
func escape(path string) string { return strings.ReplaceAll(path, ",", ",,") }

// outputPort gives the guest a port whose other end is w: faster than a serial line, and free of the kernel's messages.
func outputPort(w *os.File) qemu.Fn {
	return func(_ *qemu.IDAllocator, o *qemu.Options) error {
		fd := o.AddFile(w)
		o.AppendQEMU(
			"-chardev", fmt.Sprintf("file,id=weirout,path=/dev/fd/%d", fd),
			"-device", "virtio-serial-pci", "-device", "virtserialport,chardev=weirout,name="+handover.Port)
		return nil
	}
}
