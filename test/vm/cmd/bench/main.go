package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
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

// part is what one VM measures.
type part struct {
	name    string // as the guest knows it
	machine vm.Machine
}

// parts are all, in order; without arguments each is measured.
func parts() []part {
	return []part{
		{"count", vm.Machine{Counted: true}},
		{"feel", vm.Machine{}},
		{"memory", vm.Machine{}},
		{"daemon", vm.Machine{Counted: true}},
		{"containers", vm.Machine{Counted: true, Root: "containers"}},
		{"idle", vm.Machine{Counted: true}},
		{"crowd", vm.Machine{Root: "containers", MemMiB: 4096}},
		{"names", vm.Machine{Counted: true}},
		{"people", vm.Machine{Counted: true}},
	}
}

// chosen are the parts that the arguments name.
func chosen(args []string) ([]part, error) {
	all := parts()
	if len(args) == 0 {
		return all, nil
	}
	var some []part
	for _, arg := range args {
		at := slices.IndexFunc(all, func(p part) bool { return p.name == arg })
		if at < 0 {
			return nil, fmt.Errorf("unknown part %q: count, feel, memory, daemon, containers, idle, crowd, names or people, or picture alone; VMTEST_KERNELS chooses the kernel", arg)
		}
		some = append(some, all[at])
	}
	return some, nil
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	if slices.Equal(args, []string{"picture"}) {
		return write(".", nil, true)
	}
	some, err := chosen(args)
	if err != nil {
		return err
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
	var results []result
	for _, p := range some {
		fmt.Fprintf(stdout, "Measuring in a VM with kernel %s: %s ...\n", version, p.name)
		samples, err := measure(ctx, host, kernel, bin, p, stdout)
		if err != nil {
			return err
		}
		results = append(results, evaluate(p.name, samples)...)
	}
	if slices.ContainsFunc(some, func(p part) bool { return p.name == "names" }) {
		more, err := onHost(ctx, host.Repo)
		if err != nil {
			return err
		}
		results = append(results, more...)
	}
	if err := table(stdout, results); err != nil {
		return err
	}
	if err := write(host.Repo, results, len(args) > 0); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\nKernel %s, bench/results.json and docs/performance.svg are written. It took %.0f s.\n", version, time.Since(start).Seconds())
	return nil
}

// measure boots one VM and takes what its guest leaves.
func measure(ctx context.Context, host *vm.Host, k vm.Kernel, bin string, p part, stdout io.Writer) (s bench.Samples, err error) {
	out, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return s, fmt.Errorf("make the shared directory: %w", err)
	}
	defer os.RemoveAll(out)
	m := p.machine
	m.Kernel, m.CPUs, m.Timeout, m.Dir, m.Out, m.Output = k, 2, 30*time.Minute, "/", out, stdout
	m.Shares, m.Args = []vm.Share{{Dir: bin, Path: vm.GuestBin}}, []string{vm.GuestBin + "/bench", p.name}
	code, err := host.Run(ctx, m)
	if err != nil {
		return s, err
	}
	if code != 0 {
		return s, fmt.Errorf("measure, %s: the guest ended with status %d", p.name, code)
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

// write leaves all results and their picture; with keep, those of an earlier run that were not measured now stay.
func write(repo string, results []result, keep bool) error {
	file := filepath.Join(repo, "bench/results.json")
	byName := map[string]result{}
	if keep {
		data, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, &byName)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read earlier results: %w", err)
		}
	}
	for _, r := range results {
		byName[r.Name] = r
	}
	data, err := json.MarshalIndent(byName, "", "  ")
	if err != nil {
		return fmt.Errorf("encode results: %w", err)
	}
	return errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, append(data, '\n'), 0o644),
		os.WriteFile(filepath.Join(repo, "docs/performance.svg"), picture(byName), 0o644))
}
