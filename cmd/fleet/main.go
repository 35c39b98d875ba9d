//go:build !man

// Command weir-fleet lets people answer questions of sensors on other machines: it keeps their keys. It needs no rights, and the sensor has
// nothing of it.
package main

import (
	"context"
	"os"
)

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }
