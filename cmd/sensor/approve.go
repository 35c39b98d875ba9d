package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/event"
	"weir/internal/gate"
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
	var why, lasts string
	var narrow bool
	scope := 1
	const what = "the question's id; weir pending lists them"
	cmd.Args = args(1, 1, what)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if args[0] == "" {
			return usage(cmd, "give %s", what)
		}
		if scope < 1 {
			return usage(cmd, "--scope is %d: give a number from 1, as the question lists them", scope)
		}
		if narrow && lasts == "" {
			return usage(cmd, "--narrow says what an approval for longer covers: give --for session or --for key, too")
		}
		if !cmd.Flags().Changed("scope") {
			scope = 0 // a tool's call has none
		}
		id, text := args[0], ""
		if q, ok := s.find(cmd.Context(), id); ok {
			text = show.Question(q)
		}
		r := gate.Reply{Allow: allow, By: s.operator(), Why: why, Scope: scope, For: lasts, Narrow: narrow, Shown: text}
		q, err := s.client().Answer(cmd.Context(), id, r)
		if err != nil {
			return err
		}
		if text != "" {
			s.note("%s", id)
			for line := range strings.Lines(indent(text)) {
				s.note("%s", strings.TrimSuffix(line, "\n"))
			}
		}
		verb := "denied"
		if allow {
			verb = "approved"
		}
		return s.answer(q, func(w io.Writer) { fmt.Fprintf(w, "%s: %s%s%s\n", verb, show.Subject(q), also(q), show.Again(q)) })
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		list, err := s.client().Pending(cmd.Context())
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var ids []string
		for _, q := range list {
			ids = append(ids, q.ID+"\t"+event.Command([]string{cmp.Or(q.Text, q.Process.Comm)}, 40, 80))
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
	if allow {
		cmd.Flags().IntVar(&scope, "scope", scope, "who is let out, by the `number` that the question gives: 1 is the process that asked")
		cmd.Flags().StringVar(&lasts, "for", "", "`session` or key: of a call of VaultHttpFetch or LocalMemoryRecall, let also others be made, as the question lists them")
		cmd.Flags().BoolVar(&narrow, "narrow", false, "with --for: only others with the same method and path")
	}
	cmd.Flags().StringVar(&why, "why", "", "`reason`, for the log")
	cmd.Flags().StringVar(&why, "reason", "", "the same as --why")
	return cmd
}

// also tells what else an approval of q lets be done.
func also(q gate.Question) string {
	i := slices.IndexFunc(q.Covers, func(c gate.Cover) bool { return q.For != "" && c.For == q.For && c.Rule == q.Rule })
	if i < 0 {
		return ""
	}
	return "; and " + event.Visible(q.Covers[i].Text)
}

// find gives the question that waits under id. What is wrong with id the sensor
// says when it is answered.
func (s *system) find(ctx context.Context, id string) (gate.Question, bool) {
	list, err := s.client().Pending(ctx)
	if i := slices.IndexFunc(list, func(q gate.Question) bool { return q.ID == id }); err == nil && i >= 0 {
		return list[i], true
	}
	return gate.Question{}, false
}
