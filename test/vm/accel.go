package vm

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// probeLimit is far above what a boot takes with KVM (two seconds) and short enough to wait for once.
const probeLimit = 20 * time.Second

// software is what always works. QEMU before 8.1, such as Debian 12's, can run stale code on another virtual CPU when the kernel
// patches itself (static keys, ftrace, every attached program), which ends in "Oops: int3": so one thread runs both in turn.
// The CPU is all that QEMU has, less what costs it most: with erms the kernel copies and clears memory byte by byte, with AVX so do libraries
// by helper calls; a fifth level of page tables and the checks of SMAP and SMEP make each miss of its TLB dearer. A third of the time.
const software = "-accel tcg,thread=single -cpu max,-erms,-la57,-avx,-avx2,-smap,-smep"

// counted makes the clock of a VM in software count instructions; while it is idle, real time passes. Its CPU stays as it was, so that
// figures can be compared with those of earlier builds.
const counted = "-accel tcg,thread=single -cpu max -icount shift=0,sleep=on"

// accelerator gives QEMU's arguments: KVM only if a VM really booted with it, since a /dev/kvm that exists may still hang. The
// answer is kept until the machine itself boots anew.
func accelerator(ctx context.Context, repo string, k Kernel, initrd string) string {
	if f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0); err != nil {
		return software
	} else {
		f.Close()
	}
	const kvm = "-accel kvm -cpu host"
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	yes, no := strings.TrimSpace(string(boot))+" works", strings.TrimSpace(string(boot))+" fails"
	cache := filepath.Join(repo, ".cache/vm/kvm")
	known, _ := os.ReadFile(cache)
	switch string(known) {
	case yes:
		return kvm
	case no:
		return software
	}
	args, answer := software, no
	if probe(ctx, kvm, k, initrd) {
		args, answer = kvm, yes
	} else if ctx.Err() != nil {
		return software // interrupted: that says nothing of KVM
	}
	// A failure to keep the answer only costs the next probe.
	_ = os.WriteFile(cache, []byte(answer), 0o644)
	return args
}

// probe says whether a VM boots to init and powers off.
func probe(ctx context.Context, accel string, k Kernel, initrd string) bool {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	done := make(chan error, 1)
	args := append(strings.Fields(accel), "-m", "512", "-nodefaults", "-display", "none", "-no-reboot",
		"-kernel", k.Image(), "-initrd", initrd, "-append", kernelArgs+" "+probeArgs)
	cmd := exec.Command(qemuProgram, args...)
	if err := cmd.Start(); err != nil {
		return false
	}
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		return err == nil
	case <-ctx.Done():
		// A process stuck in the kernel does not end even so; nobody waits for it.
		_ = cmd.Process.Kill()
		return false
	}
}
