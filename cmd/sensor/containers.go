package main

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/control"
	"weir/internal/event"
)

func (s *system) containersCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "containers",
		Short: "list guarded containers, their taint and their open grants",
		Args:  args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := s.client().Containers(cmd.Context())
			if err != nil {
				return err
			}
			if list == nil {
				list = []control.Container{}
			}
			return s.answer(list, func(w io.Writer) { printContainers(w, list) })
		},
	}
}

// runs names the runtime and the start of its id, as the runtime itself shows it; empty: it is not known.
func runs(c control.Container) string {
	if c.Runtime == "" {
		return ""
	}
	return c.Runtime + " " + c.RuntimeID[:min(12, len(c.RuntimeID))]
}

func printContainers(w io.Writer, list []control.Container) {
	if len(list) == 0 {
		fmt.Fprintln(w, "nothing is guarded: run a command with `sudo weir guard -- CMD`, or name guarded parents in the policy")
		return
	}
	var rows [][]string
	for _, c := range list {
		since, live, agent := "-", "ended", "-"
		if !c.Since.IsZero() {
			since = c.Since.Local().Format("2006-01-02 15:04:05")
		}
		if c.Live {
			live = "live"
		}
		if c.Agent > 0 {
			agent = fmt.Sprint(c.Agent)
		}
		rows = append(rows, []string{
			c.ID, cmp.Or(c.Name, "-"), cmp.Or(c.Pod, c.Image, runs(c), "-"), live, orNone(c.Taint), since, cmp.Or(c.By, "-"), agent, fmt.Sprint(len(c.Grants)), c.Cgroup,
		})
	}
	table(w, []string{"ID", "NAME", "POD OR IMAGE", "STATE", "TAINT", "SINCE", "BY", "AGENT", "GRANTS", "CGROUP"}, rows)
	for _, c := range list {
		for _, g := range c.Grants {
			fmt.Fprintf(w, "%s: %s\n", c.ID, grant(g))
		}
	}
}

// grant says what a grant opens, and to whom.
func grant(g event.GrantInfo) string {
	to := ""
	for _, d := range g.To {
		to += " " + d.String()
	}
	left := ""
	if !g.Expires.IsZero() {
		left = " and " + span(time.Until(g.Expires))
	}
	return fmt.Sprintf("grant %d %s: to%s, %d bytes%s left", g.ID, whom(g), to, g.Bytes, left)
}

// whom says who a grant lets out, or what it waits for.
func whom(g event.GrantInfo) string {
	switch p := g.Process; {
	case g.Kind == "claim" && len(g.PIDs) > 0:
		return fmt.Sprintf("waits for the next try of process %d or of the same command", g.PIDs[0])
	case g.Kind == "claim":
		return "waits for the next try of the same command"
	case p != nil && g.Kind == "cgroup":
		return fmt.Sprintf("lets out %s (pid %d) and what it starts", p.Command(160, 480), p.PID)
	case p != nil:
		return fmt.Sprintf("lets out %s (pid %d)", p.Command(160, 480), p.PID)
	case g.Kind == "cgroup":
		return "lets out the command that it was made for"
	case len(g.PIDs) > 0:
		return fmt.Sprintf("lets out connections of process %d", g.PIDs[0])
	}
	return "lets open connections go on"
}
