package main

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"weir/test/vm"
)

//go:embed guest.py agent.sh world.py
var scripts embed.FS

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q: there are none; WEIR_DEMO_KERNEL chooses the kernel", args[0])
	}
	start := time.Now()
	version := cmp.Or(os.Getenv("WEIR_DEMO_KERNEL"), "6.12")
	fmt.Fprintf(stdout, "Building weir and booting a VM with kernel %s ...\n", version)
	host, err := vm.NewHost(ctx)
	if err != nil {
		return err
	}
	m := vm.Machine{CPUs: 1, MemMiB: 1024, Timeout: 3 * time.Minute, Dir: "/", Output: stdout}
	if m.Kernel, err = vm.FindKernel(host.Repo, version); err != nil {
		return err
	}
	bin := filepath.Join(host.Repo, "bin")
	if err := host.Build(ctx, filepath.Join(bin, "weir"), "./cmd/sensor", "amd64", false); err != nil {
		return err
	}
	if m.Out, err = os.MkdirTemp("", "weir-demo-"); err != nil {
		return fmt.Errorf("make the shared directory: %w", err)
	}
	defer os.RemoveAll(m.Out)
	if err := os.CopyFS(m.Out, scripts); err != nil {
		return fmt.Errorf("hand over the scripts: %w", err)
	}
	m.Shares = []vm.Share{{Dir: bin, Path: vm.GuestBin}}
	// an emulated processor is slow: what can be spared there is garbage collection
	m.Env = []string{"GOGC=off", "GOMEMLIMIT=128MiB"}
	m.Args = []string{"python3", "-ISu", "/out/guest.py", vm.GuestBin + "/weir"}
	code, err := host.Run(ctx, m)
	if err != nil {
		return err
	}
	if code != 0 {
		return errors.New("not all steps behaved, see FAIL above")
	}
	fmt.Fprintf(stdout, "All steps behaved as they should. It took %.0f s.\n", time.Since(start).Seconds())
	return nil
}
