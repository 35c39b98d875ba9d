package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/policy"
	"weir/internal/runner"
)

func (s *system) replayCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "replay EVENTS --policy NEW",
		Short: "decide recorded events again under another policy, and show what would change",
		Long: `EVENTS is an event log, with its rotated files beside it. Nobody is asked and nothing changes: a model that the policy names is not
contacted, and "model" stands for its answer. A line that is no event is reported, and the exit code is 1.`,
		Args: args(1, 1, "an event log"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if file == "" {
				return usage(cmd, "give --policy, the file to decide by")
			}
			p, err := policy.Load(file)
			if err != nil {
				return err
			}
			return s.replay(cmd.Context(), args[0], p)
		},
	}
	cmd.Flags().StringVar(&file, "policy", "", "the policy `file` to decide by")
	return cmd
}

func (s *system) replay(ctx context.Context, log string, p policy.Policy) error {
	report, err := gate.ReplayLog(ctx, fileLog(log), p)
	bad, isBad := errors.AsType[*event.BadLines](err)
	if err != nil && !isBad || report.Totals.Events == 0 {
		return noEvents(log, err)
	}
	if err := s.answer(report, func(w io.Writer) { printReplay(w, report) }); err != nil {
		return err
	}
	if isBad {
		return fmt.Errorf("%w\nthese lines are passed over: the report is about the others", bad)
	}
	return nil
}

// fileLog is an event log by its path.
func fileLog(path string) gate.Log {
	return func(fn func(event.Event) error) error { return event.ReadFile(path, event.Filter{}, fn) }
}

// noEvents says of a log without events what to do.
func noEvents(log string, err error) error {
	if errors.Is(err, gate.ErrNoEvents) {
		return fmt.Errorf("%s: %w: name an event log, usually %s", log, err, runner.Events)
	}
	return err
}

func printReplay(w io.Writer, r gate.ReplayReport) {
	t, changes := r.Totals, r.Changes
	fmt.Fprintf(w, "%d of %d decisions would change (%d events; %d decisions follow an earlier answer or no policy)\n", t.Changed, t.Decisions, t.Events, t.Follow)
	fmt.Fprintf(w, "under the new policy: %d allow, %d deny, %d ask a person, %d ask the model\n",
		t.Now[gate.ReplayAllow], t.Now[gate.ReplayDeny], t.Now[gate.ReplayPerson], t.Now[gate.Model])
	if len(changes) == 0 {
		return
	}
	fmt.Fprintln(w)
	slices.SortStableFunc(changes, func(a, b *gate.CountedChange) int { return cmp.Compare(b.Count, a.Count) })
	rows := make([][]string, len(changes))
	for i, c := range changes {
		to := "-"
		if c.Event.Destination != nil {
			to = c.Event.Destination.String()
		}
		what := event.Command(c.Event.Process.Argv, 60, 120)
		if c.Event.Command != "" {
			what = event.Command([]string{c.Event.Command}, 120, 120)
		}
		rows[i] = []string{
			fmt.Sprint(c.Count), fmt.Sprintf("%s (%s)", c.Was, c.WasBy), fmt.Sprintf("%s (%s)", c.Now, c.NowBy),
			cmp.Or(c.Event.Container.Name, c.Event.Container.ID), to, what, c.Reason,
		}
	}
	table(w, []string{"COUNT", "WAS", "WOULD BE", "CONTAINER", "DESTINATION", "COMMAND", "WHY"}, rows)
	if r.Left > 0 {
		fmt.Fprintf(w, "%d more changes are not shown\n", r.Left)
	}
}
