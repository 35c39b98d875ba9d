// Command vmrun runs one command in a fresh test VM: the repository is at /weir (read-only), a directory to write to at /out.
//
//	go run ./test/vm/cmd/vmrun [-kernel 6.12] [-root clients] [-systemd] [-share DIR:/PATH] [-out DIR] [-v] -- COMMAND [ARGUMENT...]
//
// It prints the command's output as it comes and exits with its status, or with 125 and one line when there is none.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"weir/test/vm"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "vmrun:", err)
		code = 125
	}
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (int, error) {
	var m vm.Machine
	fs := flag.NewFlagSet("vmrun", flag.ContinueOnError)
	fs.SetOutput(stderr)
	version := fs.String("kernel", "6.12", "kernel `VERSION`")
	verbose := fs.Bool("v", false, "print the kernel's messages to standard error")
	fs.StringVar(&m.Out, "out", "", "`DIR` that the guest may write to, at /out (default: one that is removed)")
	fs.StringVar(&m.Root, "root", "root", "root `IMAGE`, as scripts/rootfs names them")
	fs.BoolVar(&m.Systemd, "systemd", false, "boot systemd, which the root image must have (containers)")
	fs.IntVar(&m.CPUs, "cpus", 2, "virtual CPUs")
	fs.IntVar(&m.MemMiB, "mem", 2048, "memory in MiB")
	fs.DurationVar(&m.Timeout, "timeout", 5*time.Minute, "time limit of the command")
	fs.StringVar(&m.Dir, "dir", "/weir", "working directory in the guest")
	fs.Func("env", "`NAME=VALUE` for the guest; may be repeated", func(s string) error { m.Env = append(m.Env, s); return nil })
	fs.Func("share", "`DIR[:/PATH]` to share read-only, at /share by default; may be repeated", func(s string) error {
		dir, path, ok := strings.Cut(s, ":")
		if !ok {
			path = "/share"
		}
		abs, err := filepath.Abs(dir)
		m.Shares = append(m.Shares, vm.Share{Dir: abs, Path: path})
		return err
	})
	if err := fs.Parse(args); err != nil {
		return 0, err
	}
	if m.Args = fs.Args(); len(m.Args) == 0 {
		return 0, errors.New("no command: give one after --")
	}
	host, err := vm.NewHost(ctx)
	if err != nil {
		return 0, err
	}
	if m.Kernel, err = vm.FindKernel(host.Repo, *version); err != nil {
		return 0, err
	}
	if m.Out == "" {
		if m.Out, err = os.MkdirTemp("", "vmrun-"); err != nil {
			return 0, fmt.Errorf("make the output directory: %w", err)
		}
		defer os.RemoveAll(m.Out)
	} else if m.Out, err = filepath.Abs(m.Out); err != nil {
		return 0, fmt.Errorf("find the output directory: %w", err)
	}
	m.Shares = append(m.Shares, vm.Share{Dir: host.Repo, Path: "/weir"})
	m.Output = stdout
	if *verbose {
		m.Console = stderr
	}
	return host.Run(ctx, m)
}
