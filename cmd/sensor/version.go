package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (s *system) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "show the version",
		Args:  args(0, 0, ""),
		RunE:  func(*cobra.Command, []string) error { return s.tellVersion() },
	}
}

func (s *system) tellVersion() error {
	v := version()
	return s.answer(map[string]string{"version": v, "go": runtime.Version()}, func(w io.Writer) {
		fmt.Fprintf(w, "weir %s (%s)\n", v, runtime.Version())
	})
}

// version is what the build says of itself: a tag, or a time and a revision.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
