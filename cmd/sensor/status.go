package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/show"
)

func (s *system) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "show the running sensor: mode, policy, what is guarded, counters",
		Args:  args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			st, err := s.client().Status(cmd.Context())
			if err != nil {
				return err
			}
			return s.answer(st, func(w io.Writer) { printStatus(w, st) })
		},
	}
}

func printStatus(w io.Writer, st control.Status) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", name, event.Visible(fmt.Sprintf(format, args...)))
	}
	row("weir", "%s, pid %d, up %s", st.Version, st.PID, span(time.Duration(st.Uptime)*time.Second))
	row("mode", "%s", st.Mode)
	row("kernel", "%s", st.Kernel)
	row("policy", "%s", cmp.Or(st.Policy, "the default"))
	if r := st.Refused; r != nil {
		row("policy refused", "since %s, and the one before stays in force: correct the file", r.Since.Local().Format("2006-01-02 15:04:05"))
		for _, why := range r.Why {
			row("", "%s", why)
		}
	}
	row("events", "%s", cmp.Or(st.Events, "standard output of the sensor"))
	row("state", "%s", st.State)
	row("guarded parents", "%s", orNone(st.Parents))
	for _, v := range st.Volumes {
		row("volume", "%s: taint %s", v.Path, orNone(v.Taint))
		for _, c := range v.Causes {
			row("", "%s", show.Cause(c))
		}
	}
	row("containers", "%d", st.Containers)
	row("pending", "%d", st.Pending)
	for _, d := range st.Degraded {
		row("degraded", "%s", d)
	}
	for _, name := range slices.Sorted(maps.Keys(st.Counters)) {
		if n := st.Counters[name]; n > 0 {
			row("count "+event.Visible(name), "%d", n)
		}
	}
	t.Flush()
}
