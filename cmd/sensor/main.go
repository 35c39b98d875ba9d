//go:build !man

// Command weir is a host sensor: it lets agents run commands, and denies the
// egress of those that have read what must not leave, in the kernel.
package main

import (
	"context"
	"os"

	"weir/internal/daemon"
	"weir/internal/doctor"
	"weir/internal/netegress"
	"weir/internal/runner"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], &system{
		stdin:   os.Stdin,
		stdout:  os.Stdout,
		stderr:  os.Stderr,
		environ: os.Environ(),
		euid:    os.Geteuid(),
		log:     runner.Events,
		kernel:  doctor.Kernel,
		daemon:  daemon.Run,
		watch:   netegress.Watch,
		outlive: runner.Outlive,
		detach:  netegress.Detach,
		try:     daemon.SelfTest,
	}))
}
