package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/linux"
	"weir/internal/policy"
)

func (s *system) suggestCommand() *cobra.Command {
	var file string
	var least int
	cmd := &cobra.Command{
		Use:   "suggest EVENTS [--policy FILE]",
		Short: "tell which lines of a policy would have let through what people approved, as a diff",
		Long: `Prints the smallest lines of a policy with which people would not have been asked, and a diff. EVENTS is an event log, with its
rotated files beside it. The lines are destinations that a person approved or that the mode observe let through, and the networks
and secret files whose taint a person cleared. Each line says how often, by whom and for which commands, and what it newly opens.
What a person denied as well is left out.

No file is changed. Make a new policy with the diff, and take out what you do not mean before you use it.`,
		Example: "  sudo weir policy suggest /var/log/weir/events.jsonl --policy /etc/weir/policy.yaml > suggested\n  sudo patch -o new.yaml /etc/weir/policy.yaml suggested",
		Args:    args(1, 1, "an event log"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if least < 1 {
				return usage(cmd, "--least is %d: give a number from 1", least)
			}
			name, data := "policy.yaml", []byte("version: 1\n")
			if file != "" {
				read, err := linux.ReadInput(file, policy.MaxFile)
				if err != nil {
					return err
				}
				name, data = file, read
			}
			return s.suggest(cmd.Context(), args[0], name, data, uint64(least))
		},
	}
	cmd.Flags().StringVar(&file, "policy", "", "the policy `file` to add to; without it, the defaults")
	cmd.Flags().IntVar(&least, "least", 1, "only what was let through at least this `number` of times")
	return cmd
}

func (s *system) suggest(ctx context.Context, log, name string, data []byte, least uint64) error {
	result, err := gate.Suggest(ctx, fileLog(log), name, data, least)
	bad, isBad := errors.AsType[*event.BadLines](err)
	if err != nil && !isBad {
		return noEvents(log, err)
	}
	if err := s.answer(result, func(w io.Writer) { printSuggested(w, result) }); err != nil {
		return err
	}
	if isBad {
		return fmt.Errorf("%w\nthese lines are passed over: the suggestion is from the others", bad)
	}
	return nil
}

func printSuggested(w io.Writer, r gate.Suggestion) {
	if len(r.Lessons)+len(r.ByHand) == 0 {
		fmt.Fprintln(w, "nothing is suggested: no line of a policy would have let through what people approved")
	}
	line := func(l gate.Lesson) string {
		if l.Edit.Remove != "" {
			return "without " + l.Edit.Remove
		}
		return strings.Join(l.Edit.Add, ", ")
	}
	for _, part := range []struct {
		title string
		list  []gate.Lesson
	}{{"suggested; nothing is changed:", r.Lessons}, {"to be written by hand, since the file cannot be edited there:", r.ByHand}} {
		if len(part.list) == 0 {
			continue
		}
		fmt.Fprintln(w, part.title)
		for _, l := range part.list {
			fmt.Fprintf(w, "  %s: %s\n", l.Edit.Key, event.Visible(line(l)))
			fmt.Fprintf(w, "    opens     %s\n    evidence  %s\n", l.Opens, l.Evidence())
		}
		fmt.Fprintln(w)
	}
	io.WriteString(w, visibleLines(r.Diff))
	if r.LeftOut > 0 {
		fmt.Fprintf(w, "\n%d more are left out: a person denied them as well, or never cleared their taint\n", r.LeftOut)
	}
	if len(r.Lessons) > 0 {
		fmt.Fprintf(w, "\nreplayed: %d questions to people before, %d with it (what a name opens a replay cannot tell)\n", r.Before.Now[gate.ReplayPerson], r.After.Now[gate.ReplayPerson])
	}
}

// visibleLines is a text of lines in which nothing else moves a terminal's cursor.
func visibleLines(text string) string {
	var b strings.Builder
	for l := range strings.Lines(text) {
		b.WriteString(event.Visible(strings.TrimSuffix(l, "\n")) + "\n")
	}
	return b.String()
}
