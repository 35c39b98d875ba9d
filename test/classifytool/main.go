// Command classifytool classifies one shell text and ends: 0 local, 1 grey, 2 network. It links only the classifier, as what runs inside a
// container does, so that its size and start can be measured.
package main

import (
	"fmt"
	"os"
	"strings"

	"weir/internal/classify"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "classifytool: give a command")
		os.Exit(64)
	}
	r := classify.Shell(strings.Join(os.Args[1:], " "), "/workspace")
	fmt.Println(r.Class)
	switch r.Class {
	case classify.Local:
	case classify.Network:
		os.Exit(2)
	default:
		os.Exit(1)
	}
}
