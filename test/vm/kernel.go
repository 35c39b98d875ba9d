package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// defaultKernels is the matrix: the oldest kernel that is supported and a current one.
const defaultKernels = "6.1,6.12"

// Kernel is one unpacked Debian kernel.
type Kernel struct {
	Version string // major.minor, as in 6.12
	Release string // what uname -r prints
	dir     string
}

// Image is the path of the bootable kernel.
func (k Kernel) Image() string { return filepath.Join(k.dir, "vmlinuz") }

func (k Kernel) modules() string { return filepath.Join(k.dir, "lib/modules", k.Release) }

// Kernels gives the kernels that VMTEST_KERNELS names (default "6.1,6.12"), in that order, after Prepare.
func Kernels(repo string) ([]Kernel, error) {
	list := os.Getenv("VMTEST_KERNELS")
	if list == "" {
		list = defaultKernels
	}
	var ks []Kernel
	for v := range strings.SplitSeq(list, ",") {
		k, err := FindKernel(repo, strings.TrimSpace(v))
		if err != nil {
			return nil, err
		}
		ks = append(ks, k)
	}
	return ks, nil
}

// FindKernel gives the kernel with a version such as "6.12".
func FindKernel(repo, version string) (Kernel, error) {
	base := filepath.Join(repo, ".cache/vm/kernels")
	dir := filepath.Join(base, version)
	b, err := os.ReadFile(filepath.Join(dir, "release"))
	if errors.Is(err, os.ErrNotExist) || version == "" {
		have, _ := filepath.Glob(filepath.Join(base, "*", "release"))
		for i, h := range have {
			have[i] = filepath.Base(filepath.Dir(h))
		}
		slices.Sort(have)
		return Kernel{}, fmt.Errorf("find kernel %q: have %s: fix VMTEST_KERNELS or run scripts/vm", version, strings.Join(have, ", "))
	}
	if err != nil {
		return Kernel{}, fmt.Errorf("find kernel %q: %w", version, err)
	}
	return Kernel{Version: version, Release: strings.TrimSpace(string(b)), dir: dir}, nil
}

// Prepare fetches and builds what VMs need and returns the repository's directory. It is quick when all is there.
func Prepare(ctx context.Context) (repo string, err error) {
	repo, err = repository()
	if err != nil {
		return "", err
	}
	return repo, prepare(ctx, repo, "root")
}

// prepare has the packages, the kernels and one root image made.
func prepare(ctx context.Context, repo, image string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(repo, "scripts/vm"), image)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("prepare VMs with scripts/vm: %w", err)
	}
	return nil
}

// repository is the nearest directory upwards that has this module's go.mod.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for d := dir; ; d = filepath.Dir(d) {
		b, err := os.ReadFile(filepath.Join(d, "go.mod"))
		if err == nil && strings.HasPrefix(string(b), "module weir\n") {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("find the repository: no go.mod of module weir above %s", dir)
		}
	}
}
