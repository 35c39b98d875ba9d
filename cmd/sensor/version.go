package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"weir/internal/taint"
)

func (s *system) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "show the version, the commit and the form of what the kernel keeps",
		Args:  args(0, 0, ""),
		RunE:  func(*cobra.Command, []string) error { return s.tellVersion() },
	}
}

func (s *system) tellVersion() error {
	v, commit := version(), commit()
	told := map[string]any{"version": v, "commit": commit, "abi": taint.ABI, "go": runtime.Version()}
	return s.answer(told, func(w io.Writer) {
		fmt.Fprintf(w, "weir %s (commit %s, ABI %d, %s)\n", v, cmp.Or(commit, "unknown"), taint.ABI, runtime.Version())
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

// commit is what the program was built of, with -dirty if files were not committed; empty: not known.
func commit() string {
	info, _ := debug.ReadBuildInfo()
	settings := map[string]string{}
	if info != nil {
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
	}
	if settings["vcs.revision"] != "" && settings["vcs.modified"] == "true" {
		return settings["vcs.revision"] + "-dirty"
	}
	return settings["vcs.revision"]
}
