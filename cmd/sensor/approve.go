package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"weir/internal/event"
)

func (s *system) approveCommand() *cobra.Command {
	return s.answerCommand(true, &cobra.Command{
		Use:   "approve ID",
		Short: "let one command reach one destination, once",
	})
}

// answerCommand makes cmd the one that answers a question.
func (s *system) answerCommand(allow bool, cmd *cobra.Command) *cobra.Command {
	var why string
	cmd.Args = args(1, 1, "the question's id; weir pending lists them")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		q, err := s.client().Answer(cmd.Context(), args[0], allow, s.operator(), why)
		if err != nil {
			return err
		}
		verb := "denied"
		if allow {
			verb = "approved"
		}
		return s.answer(q, func(w io.Writer) {
			fmt.Fprintf(w, "%s: %s -> %s\n", verb, commandLine(q.Process), q.Destination)
		})
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		list, err := s.client().Pending(cmd.Context())
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var ids []string
		for _, q := range list {
			ids = append(ids, q.ID+"\t"+event.Visible(q.Process.Comm))
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
	cmd.Flags().StringVar(&why, "why", "", "`reason`, for the log")
	return cmd
}
