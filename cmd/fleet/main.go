//go:build !man

// Command weir-fleet lets people answer questions of sensors on other machines: it keeps their keys,
// and it is the link of a node to the servers between. It needs no rights, and the sensor has nothing of it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
