package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

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

// replayed is the same change, of as many events as there were.
type replayed struct {
	gate.ReplayChange
	Count uint64 `json:"count"`
}

// maxChanges bounds how many different changes are told.
const maxChanges = 10_000

func (s *system) replay(ctx context.Context, log string, p policy.Policy) error {
	r, err := gate.NewReplay(p)
	if err != nil {
		return err
	}
	changes := []*replayed{} // in the order of the first
	same := map[string]*replayed{}
	left := uint64(0)
	err = event.ReadFile(log, event.Filter{}, func(e event.Event) error {
		c, changed := r.Event(ctx, e)
		if !changed {
			return ctx.Err()
		}
		key := changeKey(c)
		switch known := same[key]; {
		case known != nil:
			known.Count++
		case len(changes) == maxChanges:
			left++
		default:
			same[key] = &replayed{c, 1}
			changes = append(changes, same[key])
		}
		return ctx.Err()
	})
	var bad *event.BadLines
	if err != nil && !errors.As(err, &bad) {
		return err
	}
	if r.Totals.Events == 0 {
		return cmp.Or(err, fmt.Errorf("%s: there is no event in it: name an event log, usually %s", log, runner.Events))
	}
	result := map[string]any{"totals": r.Totals, "changes": changes, "changes_left_out": left}
	if err := s.answer(result, func(w io.Writer) { printReplay(w, r.Totals, changes, left) }); err != nil {
		return err
	}
	if bad != nil {
		return fmt.Errorf("%w\nthese lines are passed over: the report is about the others", bad)
	}
	return nil
}

// changeKey is what makes two changes the same for who reads them.
func changeKey(c gate.ReplayChange) string {
	parts := []string{string(c.Was), c.WasBy, string(c.Now), c.NowBy, c.Event.Container.ID, c.Event.Command}
	if d := c.Event.Destination; d != nil {
		parts = append(parts, d.String())
	}
	return strings.Join(append(parts, c.Event.Process.Argv...), "\x00")
}

func printReplay(w io.Writer, t gate.ReplayTotals, changes []*replayed, left uint64) {
	fmt.Fprintf(w, "%d of %d decisions would change (%d events; %d decisions follow an earlier answer or no policy)\n", t.Changed, t.Decisions, t.Events, t.Follow)
	fmt.Fprintf(w, "under the new policy: %d allow, %d deny, %d ask a person, %d ask the model\n",
		t.Now[gate.ReplayAllow], t.Now[gate.ReplayDeny], t.Now[gate.ReplayPerson], t.Now[gate.Model])
	if len(changes) == 0 {
		return
	}
	fmt.Fprintln(w)
	slices.SortStableFunc(changes, func(a, b *replayed) int { return cmp.Compare(b.Count, a.Count) })
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
	if left > 0 {
		fmt.Fprintf(w, "%d more changes are not shown\n", left)
	}
}
