package main

import "github.com/spf13/cobra"

func (s *system) denyCommand() *cobra.Command {
	return s.answerCommand(false, &cobra.Command{
		Use:   "deny ID... | --all",
		Short: "refuse questions: their commands get EPERM",
	})
}
