// Command weir-hook runs inside a container, beside an agent: it asks the sensor on the host before a tool call is made.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"weir/internal/agenthook"
)

func main() {
	// Its status would let the call pass. It is caught, not ignored: a shell's command would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(agenthook.World{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Self: "weir-hook", Home: os.Getenv("HOME"),
	}.Main(context.Background(), os.Args))
}
