package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"weir/test/vm"
	"weir/test/vm/bench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q: there are none; VMTEST_KERNELS chooses the kernel", args[0])
	}
	version := cmp.Or(os.Getenv("VMTEST_KERNELS"), "6.12")
	if strings.Contains(version, ",") {
		return fmt.Errorf("VMTEST_KERNELS=%s: one kernel is measured at a time", version)
	}
	start := time.Now()
	host, err := vm.NewHost(ctx)
	if err != nil {
		return err
	}
	kernel, err := vm.FindKernel(host.Repo, version)
	if err != nil {
		return err
	}
	bin, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return fmt.Errorf("make a directory for the programs: %w", err)
	}
	defer os.RemoveAll(bin)
	for name, pkg := range map[string]string{"weir": "./cmd/sensor", "bench": "./test/vm/bench/guest"} {
		if err := host.Build(ctx, filepath.Join(bin, name), pkg, "amd64", false); err != nil {
			return err
		}
	}
	measured := map[string]bench.Samples{}
	for _, order := range []string{"count", "feel"} {
		fmt.Fprintf(stdout, "Measuring in a VM with kernel %s: %s ...\n", version, order)
		if measured[order], err = measure(ctx, host, kernel, bin, order, stdout); err != nil {
			return err
		}
	}
	results := evaluate(measured["count"], measured["feel"])
	if err := table(stdout, results); err != nil {
		return err
	}
	if err := write(filepath.Join(host.Repo, "bench/results.json"), results); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\nLinux %s, bench/results.json is written. It took %.0f s.\n", measured["count"].Kernel, time.Since(start).Seconds())
	return nil
}

// measure boots one VM and takes what its guest leaves.
func measure(ctx context.Context, host *vm.Host, k vm.Kernel, bin, order string, stdout io.Writer) (s bench.Samples, err error) {
	out, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return s, fmt.Errorf("make the shared directory: %w", err)
	}
	defer os.RemoveAll(out)
	code, err := host.Run(ctx, vm.Machine{
		Kernel: k, Counted: order == "count", CPUs: 2, Timeout: 20 * time.Minute, Dir: "/", Out: out, Output: stdout,
		Shares: []vm.Share{{Dir: bin, Path: vm.GuestBin}}, Args: []string{vm.GuestBin + "/bench", order},
	})
	if err != nil {
		return s, err
	}
	if code != 0 {
		return s, fmt.Errorf("measure, %s: the guest ended with status %d", order, code)
	}
	data, err := os.ReadFile(filepath.Join(out, bench.SampleFile))
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return s, fmt.Errorf("read samples: %w", err)
	}
	return s, nil
}

func write(file string, results []result) error {
	byName := map[string]result{}
	for _, r := range results {
		byName[r.Name] = r
	}
	data, err := json.MarshalIndent(byName, "", "  ")
	if err != nil {
		return fmt.Errorf("encode results: %w", err)
	}
	return errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, append(data, '\n'), 0o644))
}
