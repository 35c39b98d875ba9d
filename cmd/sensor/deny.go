package main

import "github.com/spf13/cobra"

func (s *system) denyCommand() *cobra.Command {
	return s.answerCommand(false, &cobra.Command{
		Use:   "deny ID... | --all",
		Short: "deny a command what it asks for: it gets EPERM",
		Example: `  sudo weir deny abc234 --reason "not known here"
  sudo weir deny --to 'example.org*'`,
	})
}
