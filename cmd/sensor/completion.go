package main

import (
	"github.com/spf13/cobra"

	"weir/internal/event"
	"weir/internal/taint"
)

// completeContainer offers ids, then bits. Names are left out: a container may
// have chosen them.
func (s *system) completeContainer(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return taintBits(), cobra.ShellCompDirectiveNoFileComp
	}
	list, err := s.client().Containers(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []string
	for _, c := range list {
		if event.Visible(c.ID) == c.ID {
			ids = append(ids, c.ID)
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

func taintBits() []string { return (taint.Corruption | taint.Secret).Names() }

// completeFlag offers fixed words for a flag.
func completeFlag[W ~string](cmd *cobra.Command, flag string, words []W) {
	offer := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var list []string
		for _, w := range words {
			list = append(list, string(w))
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
	if err := cmd.RegisterFlagCompletionFunc(flag, offer); err != nil {
		panic(err) // there is no such flag
	}
}
