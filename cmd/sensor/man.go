//go:build man

// Command weir is not built of this: go run -tags man ./cmd/sensor DIR writes the manual pages of its commands.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra/doc"
)

func main() {
	if err := manual(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

// manual writes a page for each command. Its date is SOURCE_DATE_EPOCH.
func manual(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("read arguments: want one directory, got %d", len(args))
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("read SOURCE_DATE_EPOCH: %w", err)
	}
	date := time.Unix(seconds, 0).UTC()
	header := &doc.GenManHeader{Section: "1", Date: &date, Source: "Weir", Manual: "Weir"}
	if err := doc.GenManTree(new(system).root(), header, args[0]); err != nil {
		return fmt.Errorf("write the manual: %w", err)
	}
	return nil
}
