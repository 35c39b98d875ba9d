package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/event"
	"weir/internal/gate"
)

func (s *system) pendingCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pending",
		Short: "list the questions that wait for an answer",
		Args:  args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := s.client().Pending(cmd.Context())
			if err != nil {
				return err
			}
			if list == nil {
				list = []gate.Question{}
			}
			return s.answer(list, func(w io.Writer) { printPending(w, list, time.Now()) })
		},
	}
}

func printPending(w io.Writer, list []gate.Question, now time.Time) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no questions")
	}
	for i, q := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		printQuestion(w, q, now)
	}
}

// printQuestion shows all that an answer depends on. Every text of the container
// is quoted and visible, so that none can pose as another line (B51).
func printQuestion(w io.Writer, q gate.Question, now time.Time) {
	word := func(s string) string { return event.Command([]string{s}, 0, 0) }
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	held := "refused with EPERM; an approval is for its retry"
	if q.Held {
		held = "held: it waits for the answer"
	}
	fmt.Fprintf(w, "%s  asked %s ago, %s left\n", word(q.ID), span(now.Sub(q.Asked)), span(q.Deadline.Sub(now)))
	c := q.Container
	row("container", "%s, taint %s", word(cmp.Or(c.Name, c.ID)), event.Visible(orNone(c.Taint)))
	if c.Name != "" && c.Name != c.ID {
		row("", "id %s", word(c.ID))
	}
	p := q.Process
	row("program", "%s", program(p))
	row("command", "%s", commandLine(p))
	if p.Script != "" {
		row("script", "%s, run by %s", word(p.Script), word(p.Interp))
	}
	if len(p.Env) > 0 || p.EnvCut {
		more := ""
		if p.EnvCut {
			more = " (its environment was not read to the end)"
		}
		row("environment", "sets %s%s", event.Command(p.Env, 0, 0), more)
	}
	row("process", "pid %d, uid %d%s", p.PID, p.UID, ancestry(p))
	if q.Destination.DNS {
		row("destination", "DNS question, asked of %s: an approval opens the name servers", event.Destination{
			Address: q.Destination.Address, Port: q.Destination.Port, Protocol: q.Destination.Protocol,
		})
	} else {
		row("destination", "%s", q.Destination)
	}
	row("state", "%s", held)
	if q.Askers > 1 {
		row("askers", "%d processes; an approval is for one", q.Askers)
	}
	row("answer", "weir approve %s   or   weir deny %s", word(q.ID), word(q.ID))
}

func program(p event.Process) string {
	if p.Exe == nil {
		return "unknown; it calls itself " + event.Command([]string{p.Comm}, 0, 0)
	}
	s := fmt.Sprintf("%s (device %d, inode %d)", event.Command([]string{p.Exe.Path}, 0, 0), p.Exe.Device, p.Exe.Inode)
	if p.Exe.Memfd {
		s += ", in memory only"
	}
	if p.Exe.Deleted {
		s += ", deleted"
	}
	return s
}

func commandLine(p event.Process) string {
	s := event.Command(p.Argv, 0, 0)
	switch {
	case len(p.Argv) == 0:
		s = "its arguments are not known"
	case p.Truncated:
		s += " (more arguments were not read)"
	}
	return s
}

func ancestry(p event.Process) string {
	var steps []string
	for _, a := range p.Ancestry {
		steps = append(steps, fmt.Sprintf("%s (%d)", event.Command([]string{a.Comm}, 0, 0), a.PID))
	}
	if len(steps) == 0 {
		return ""
	}
	return ", started by " + strings.Join(steps, " < ")
}
