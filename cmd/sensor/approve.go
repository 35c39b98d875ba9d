package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/event"
	"weir/internal/gate/question"
	"weir/internal/show"
)

func (s *system) approveCommand() *cobra.Command {
	return s.answerCommand(true, &cobra.Command{
		Use:   "approve ID",
		Short: "let one command reach one destination, once; or one call of a tool be made",
	})
}

// answerCommand makes cmd the one that answers a question.
func (s *system) answerCommand(allow bool, cmd *cobra.Command) *cobra.Command {
	var why, scope string
	cmd.Args = args(1, 1, "the question's id; weir pending lists them")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, text := args[0], ""
		if q, ok := s.find(cmd.Context(), id); ok {
			text = show.Question(q)
			s.note("%s", id)
			for line := range strings.Lines(indent(text)) {
				s.note("%s", strings.TrimSuffix(line, "\n"))
			}
		}
		r := question.Reply{Allow: allow, By: s.operator(), Why: why, Scope: scope, Shown: text}
		q, err := s.client().Answer(cmd.Context(), id, r)
		if err != nil {
			return err
		}
		verb := "denied"
		if allow {
			verb = "approved"
		}
		return s.answer(q, func(w io.Writer) {
			if q.Tool {
				fmt.Fprintf(w, "%s: %s\n", verb, event.Visible(q.Text))
				return
			}
			fmt.Fprintf(w, "%s: %s -> %s\n", verb, show.Command(q.Process), q.Destination)
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
	if allow {
		cmd.Flags().StringVar(&scope, "for", "", "`session` or key: of a call that uses a key of the vault, let also others with this key go to this host")
	}
	cmd.Flags().StringVar(&why, "why", "", "`reason`, for the log")
	cmd.Flags().StringVar(&why, "reason", "", "the same as --why")
	return cmd
}

// find gives the question that waits under id. What is wrong with id the sensor
// says when it is answered.
func (s *system) find(ctx context.Context, id string) (question.Question, bool) {
	list, err := s.client().Pending(ctx)
	if i := slices.IndexFunc(list, func(q question.Question) bool { return q.ID == id }); err == nil && i >= 0 {
		return list[i], true
	}
	return question.Question{}, false
}
