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

// software is what always works.
const software = "-accel tcg,thread=multi -cpu max"

// accelerator gives QEMU's arguments: KVM only if a VM really booted with it, since a /dev/kvm that exists may still hang. The
// answer is kept until the machine itself boots anew.
func accelerator(ctx context.Context, repo string, k Kernel, initrd string) string {
	if f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0); err != nil {
		return software
	} else {
		f.Close()
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	cache := filepath.Join(repo, ".cache/vm/accel")
	if b, err := os.ReadFile(cache); err == nil {
		if id, args, ok := strings.Cut(string(b), " "); ok && id == strings.TrimSpace(string(boot)) {
			return args
		}
	}
	const kvm = "-accel kvm -cpu host"
	args := software
	if probe(ctx, kvm, k, initrd) {
		args = kvm
	}
	// A failure to keep the answer only costs the next probe.
	_ = os.WriteFile(cache, []byte(strings.TrimSpace(string(boot))+" "+args), 0o644)
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
