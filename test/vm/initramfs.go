package vm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/u-root/u-root/pkg/cpio"

	"weir/test/vm/handover"
)

// earlyModules are what init needs before the root is there; all else is loaded from the root on demand.
var earlyModules = []string{"virtio_pci", "virtio_blk", "virtio_console", "crc32c_generic", "ext4", "9p", "9pnet_virtio"}

// buildInit compiles process 1 of the VMs and returns its bytes.
func buildInit(ctx context.Context, repo string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "weir-init-")
	if err != nil {
		return nil, fmt.Errorf("build init: %w", err)
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "init")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", out, "./test/vm/init")
	cmd.Dir = repo
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build init: %w\n%s", err, b)
	}
	return os.ReadFile(out)
}

// initramfs returns the path of a kernel's initramfs, made anew when init or the kernel changed.
func initramfs(k Kernel, init []byte) (string, error) {
	files, err := moduleFiles(k)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	sum.Write(init)
	fmt.Fprintln(sum, k.Release, files)
	path := filepath.Join(k.dir, "initramfs-"+hex.EncodeToString(sum.Sum(nil))[:16])
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	records := []cpio.Record{
		cpio.StaticFile(handover.InitName, string(init), 0o755),
		cpio.Directory("dev", 0o755), cpio.CharDev("dev/console", 0o600, 5, 1),
	}
	for i, f := range files {
		b, err := os.ReadFile(filepath.Join(k.modules(), f))
		if err != nil {
			return "", fmt.Errorf("build initramfs: %w", err)
		}
		records = append(records, cpio.StaticFile(fmt.Sprintf("modules/%03d-%s", i, filepath.Base(f)), string(b), 0o644))
	}
	tmp, err := os.CreateTemp(k.dir, "new-")
	if err != nil {
		return "", fmt.Errorf("build initramfs: %w", err)
	}
	defer os.Remove(tmp.Name())
	w := cpio.Newc.Writer(tmp)
	if err := cpio.WriteRecordsAndDirs(w, records); err != nil {
		return "", fmt.Errorf("build initramfs: %w", err)
	}
	if err := cpio.WriteTrailer(w); err != nil {
		return "", fmt.Errorf("build initramfs: %w", err)
	}
	if err := tmp.Close(); err != nil {
		return "", fmt.Errorf("build initramfs: %w", err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return "", fmt.Errorf("build initramfs: %w", err)
	}
	return path, nil
}

// moduleFiles lists the early modules of a kernel with all that they need, needs first, as paths below its module directory.
func moduleFiles(k Kernel) ([]string, error) {
	dep, err := os.ReadFile(filepath.Join(k.modules(), "modules.dep"))
	if err != nil {
		return nil, fmt.Errorf("read module dependencies: %w", err)
	}
	builtin, err := os.ReadFile(filepath.Join(k.modules(), "modules.builtin"))
	if err != nil {
		return nil, fmt.Errorf("read built-in modules: %w", err)
	}
	needs := map[string][]string{} // path → paths, the most basic last
	paths := map[string]string{}   // name → path
	for line := range strings.Lines(string(dep)) {
		path, rest, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		needs[path] = strings.Fields(rest)
		paths[strings.ReplaceAll(strings.TrimSuffix(filepath.Base(path), ".ko"), "-", "_")] = path
	}
	var files []string
	for _, name := range earlyModules {
		path, ok := paths[name]
		switch {
		case ok:
		case strings.Contains(string(builtin), "/"+name+".ko\n"):
			continue
		default:
			return nil, fmt.Errorf("find module %s of kernel %s: neither a module nor built in", name, k.Release)
		}
		all := slices.Clone(needs[path])
		slices.Reverse(all)
		for _, p := range append(all, path) {
			if !slices.Contains(files, p) {
				files = append(files, p)
			}
		}
	}
	return files, nil
}
