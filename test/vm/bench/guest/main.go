//go:build linux

// Command guest is the half of the benchmark that runs in a VM, and nowhere else.
//
//	guest count        what the kernel's side costs, where the clock counts instructions
//	guest feel         what a user feels
//	guest containers   the start of containers; the clock counts instructions
//	guest memory       the memory of daemon and watcher with 200 guarded cgroups
//	guest daemon       what the daemon does for each event, and while nothing is guarded; the clock counts instructions
//	guest idle         500 guarded cgroups; the clock counts instructions
//	guest crowd        500 containers
//	guest names        the resolver; the clock counts instructions
//	guest people       those who answer, and what looking costs while much happens; the clock counts instructions
//
// The other orders are for itself: work (does the operations in one cgroup), serve (the world outside), connect.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"weir/test/vm/bench"
	"weir/test/vm/guest/inside"
	"weir/test/vm/handover"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

const knownOrders = "count, feel, memory, daemon, containers, idle, crowd, names or people"

func run(args []string) error {
	if err := inside.Check(); err != nil {
		return fmt.Errorf("refuse to measure: %w: run it with make bench", err)
	}
	if len(args) == 0 {
		return errors.New("no order given: " + knownOrders)
	}
	switch args[0] {
	case "count":
		return measure(counting)
	case "feel":
		return measure(feeling)
	case "memory":
		return measure(remembering)
	case "daemon":
		return measure(serving)
	case "containers":
		return measure(containing)
	case "idle":
		return measure(idling)
	case "crowd":
		return measure(crowding)
	case "names":
		return measure(naming)
	case "people":
		return measure(deciding)
	case "work":
		return work(os.Stdin, os.Stdout)
	case "serve":
		return serve(args[1:])
	case "connect":
		return connectOnce(args[1:])
	}
	return fmt.Errorf("unknown order %q: %s", args[0], knownOrders)
}

// measure runs one plan in a fresh world and leaves its samples for the host.
func measure(plan func(*bed) error) error {
	b, err := newBed()
	if err != nil {
		return err
	}
	if err := plan(b); err != nil {
		return errors.Join(err, b.close())
	}
	if err := b.close(); err != nil {
		return err
	}
	data, err := json.Marshal(b.samples)
	if err != nil {
		return fmt.Errorf("encode samples: %w", err)
	}
	if err := os.WriteFile(filepath.Join(handover.OutDir, bench.SampleFile), data, 0o644); err != nil {
		return fmt.Errorf("leave samples: %w", err)
	}
	return nil
}
