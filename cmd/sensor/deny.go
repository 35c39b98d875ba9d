package main

import "github.com/spf13/cobra"

func (s *system) denyCommand() *cobra.Command {
	return s.answerCommand(false, &cobra.Command{
		Use:   "deny ID",
		Short: "refuse a question: its command gets EPERM",
	})
}
