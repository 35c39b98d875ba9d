//go:build !man

// Command weir-otel sends the events and figures of the sensor on this node to a collector, by OpenTelemetry's protocol. It needs no rights, and
// the sensor has nothing of it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
