package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/show"
)

func (s *system) whyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "why CONTAINER",
		Short: "tell why a container is tainted: what was read, when, by which command, below which parents",
		Long: `Tells why a container is tainted: what set each of its bits first and last, when, and by which command, then the changes that the event log
has. A command's parents in the container follow it, nearest first.
` + containerHelp,
		Args: args(1, 1, "a container"),
		RunE: func(cmd *cobra.Command, args []string) error {
			y, err := s.client().Why(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return s.answer(y, func(w io.Writer) { printWhy(w, y) })
		},
		ValidArgsFunction: s.completeContainer,
	}
}

func printWhy(w io.Writer, y control.Why) {
	c := y.Container
	fmt.Fprintf(w, "%s: taint %s\n", event.Command([]string{cmp.Or(c.Name, c.ID)}, 0, 0), orNone(c.Taint))
	for _, cause := range y.Causes {
		fmt.Fprintf(w, "  %s\n", show.Cause(cause))
	}
	if len(c.Taint) > 0 && len(y.Causes) == 0 {
		fmt.Fprintln(w, "  nothing tells why: it has its taint from an earlier version, or by a cgroup that has been removed")
	}
	switch {
	case y.NoLog:
		fmt.Fprintln(w, "\nnothing more is known: events go to no file (events.file in the policy)")
		return
	case len(y.History) == 0:
		fmt.Fprintln(w, "\nthe event log has no change of its taint")
		printUnread(w, y.Unread)
		return
	}
	fmt.Fprintln(w, "\nchanges, in the event log:")
	if y.Older {
		fmt.Fprintln(w, "  (older ones are not shown)")
	}
	for _, e := range y.History {
		for _, line := range changes(e) {
			fmt.Fprintf(w, "  %s\n", line)
		}
	}
	printUnread(w, y.Unread)
}

func printUnread(w io.Writer, lines int) {
	if lines > 0 {
		fmt.Fprintf(w, "\n%d %s of the event log could not be read, and may have told of more\n", lines, show.Plural(lines, "line", "lines"))
	}
}

// changes words an event of taint, each bit on a line.
func changes(e event.Event) []string {
	if e.Change == nil {
		return nil
	}
	cause := event.Cause{At: e.Time, Source: e.Change.Source, By: e.Change.By, Why: e.Change.Why}
	if p := e.Process; p != nil {
		cause.Argv = p.Argv
		for _, a := range p.Ancestry {
			if !a.Inside {
				break
			}
			cause.Above = append(cause.Above, event.Member{Comm: a.Comm, Argv: a.Argv}.Command(80, 160))
		}
	}
	var lines []string
	for _, bit := range slices.Concat(e.Change.Set, e.Change.Cleared) {
		cause.Bit = "+" + bit
		if !slices.Contains(e.Change.Set, bit) {
			cause.Bit = "-" + bit
		}
		lines = append(lines, show.Cause(cause))
	}
	return lines
}
