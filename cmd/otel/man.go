//go:build man

// Command weir-otel is not built of this: go run -tags man ./cmd/otel DIR writes the manual pages of its commands.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra/doc"
)

func main() {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err == nil {
		date := time.Unix(seconds, 0).UTC()
		err = doc.GenManTree(newRoot(), &doc.GenManHeader{Section: "1", Date: &date, Source: "Weir", Manual: "Weir"}, os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}
