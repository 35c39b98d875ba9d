package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/show"
)

func (s *system) approvalsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "approvals",
		Short: "list the approvals that go on, and what each still covers",
		Args:  args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := s.client().Approvals(cmd.Context())
			if err != nil {
				return err
			}
			if list == nil {
				list = []gate.StandingApproval{}
			}
			return s.answer(list, func(w io.Writer) { printApprovals(w, list, time.Now()) })
		},
	}
}

func printApprovals(w io.Writer, list []gate.StandingApproval, now time.Time) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no approvals go on")
	}
	for i, a := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		row := rows(w)
		end := "until the container ends"
		if !a.Until.IsZero() {
			end = span(a.Until.Sub(now)) + " left"
		}
		fmt.Fprintf(w, "%s  given %s ago, %s\n", event.Visible(a.ID), span(now.Sub(a.Given)), end)
		row("covers", "%s", event.Visible(a.Adds))
		row("so far", "let out %d %s; %d of %d bytes are left; what open grants do not use comes back", a.Uses, show.Plural(int(min(a.Uses, 2)), "time", "times"), a.Left, a.Bytes)
		row("given by", "%s", event.Command([]string{a.By}, 0, 0))
		if a.Why != "" {
			row("why", "%s", event.Command([]string{a.Why}, 0, 0))
		}
		row("end it", "weir revoke %s", event.Visible(a.ID))
	}
}

func (s *system) revokeCommand() *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "end an approval that goes on, and close what it has opened",
		Long: `Ends an approval that goes on; weir approvals lists them. What is open to its destination in its container closes at once, also where another
approval opened it: that command is asked about again.`,
		Args: args(1, 1, "the approval's id; weir approvals lists them"),
		RunE: func(cmd *cobra.Command, ids []string) error {
			a, err := s.client().Revoke(cmd.Context(), strings.TrimSpace(ids[0]), s.operator(), why)
			if err != nil {
				return err
			}
			return s.answer(a, func(w io.Writer) { fmt.Fprintf(w, "revoked: %s\n", show.Covered(a)) })
		},
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		list, err := s.client().Approvals(cmd.Context())
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var ids []string
		for _, a := range list {
			ids = append(ids, a.ID+"\t"+event.Visible(a.Adds))
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
	whyFlag(cmd, &why, false)
	cmd.Flags().StringVar(&why, "reason", "", "the same as --why")
	return cmd
}
