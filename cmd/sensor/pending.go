package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/show"
)

func (s *system) pendingCommand() *cobra.Command {
	var ended, follow, each, fleet bool
	var most int
	cmd := &cobra.Command{
		Use:   "pending",
		Short: "list the questions that wait for an answer, or those that were answered",
		Args:  args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if follow {
				return control.Errorf(control.Usage, "there is no -f any more: weir top follows the questions, with keys that answer")
			}
			if fleet {
				if ended || each {
					return usage(cmd, "--fleet lists what waits at every node: leave --ended and --each out")
				}
				return s.fleet(cmd)
			}
			if ended {
				return s.history(cmd, most)
			}
			if cmd.Flags().Changed("most") {
				return usage(cmd, "--most is for --ended")
			}
			list, err := s.client().Pending(cmd.Context())
			if err != nil {
				return err
			}
			if list == nil {
				list = []gate.Question{}
			}
			return s.answer(list, func(w io.Writer) {
				var b strings.Builder
				if each {
					printPending(&b, list, time.Now())
				} else {
					printGroups(&b, list, time.Now())
				}
				if show.Above(s.stdout, b.String()) {
					fmt.Fprint(&b, "\nthis is more than the screen has: read what is above, or use weir top\n")
				}
				io.WriteString(w, b.String())
			})
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "see weir top")
	_ = cmd.Flags().MarkHidden("follow") // of a flag that is there: it cannot fail
	cmd.Flags().BoolVar(&fleet, "fleet", false, "those of all nodes: the same as weir-fleet pending")
	cmd.Flags().BoolVar(&each, "each", false, "every question in full, also those of one program to one destination")
	cmd.Flags().BoolVar(&ended, "ended", false, "questions that ended, newest first: who answered, from where, when, why, and which text was shown")
	cmd.Flags().IntVar(&most, "most", 20, "with --ended, at most this `number`")
	return cmd
}

func (s *system) history(cmd *cobra.Command, most int) error {
	if most < 1 {
		return usage(cmd, "--most is %d: give a number from 1", most)
	}
	list, err := s.client().History(cmd.Context(), most)
	if err != nil {
		return err
	}
	if list == nil {
		list = []gate.Question{}
	}
	return s.answer(list, func(w io.Writer) {
		if len(list) == 0 {
			fmt.Fprintln(w, "no questions have ended")
		}
		for i, q := range list {
			if i > 0 {
				fmt.Fprintln(w)
			}
			printEnded(w, q)
		}
	})
}

// printGroups shows the questions as printPending, but of those that one program asks about one destination the first in full, and of each other
// its command.
func printGroups(w io.Writer, list []gate.Question, now time.Time) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no questions")
	}
	for i, group := range gate.Groups(list) {
		if i > 0 {
			fmt.Fprintln(w)
		}
		q, others := group[0], group[1:]
		printQuestion(w, q, now)
		for n, o := range others {
			name := ""
			if n == 0 {
				name = fmt.Sprintf("%d more", len(others))
			}
			fmt.Fprintf(w, "  %-12s %s  %s (pid %d), %s left\n", name, event.Visible(o.ID), show.Command(o.Process), o.Process.PID, span(o.Deadline.Sub(now)))
		}
		if len(others) > 0 {
			fmt.Fprintf(w, "  %-12s of the same program to the same destination; all of them: weir approve %s --for TIME --who program\n", "", event.Visible(q.ID))
		}
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

// printQuestion shows all that an answer depends on.
func printQuestion(w io.Writer, q gate.Question, now time.Time) {
	word := event.Command([]string{q.ID}, 0, 0)
	fmt.Fprintf(w, "%s  asked %s ago, %s left\n", word, span(now.Sub(q.Asked)), span(q.Deadline.Sub(now)))
	fmt.Fprint(w, indent(show.Question(q)))
	fmt.Fprint(w, indent(show.Askers(q)))
	wider := ""
	if len(q.Chain) > 1 {
		wider = fmt.Sprintf("   or   weir approve %s --scope 2", word)
	}
	fmt.Fprintf(w, "  %-12s weir approve %s%s   or   weir deny %s\n", "answer", word, wider, word)
}

// printEnded shows a question that has ended, and its answer.
func printEnded(w io.Writer, q gate.Question) {
	row := rows(w)
	at := func(t time.Time) string {
		if t.IsZero() {
			return "at an unknown time"
		}
		return show.Time(t)
	}
	fmt.Fprintf(w, "%s  %s %s\n", event.Command([]string{q.ID}, 0, 0), cmp.Or(string(q.Outcome), q.State), at(q.Answered))
	fmt.Fprint(w, indent(show.About(q)))
	row("asked", "%s, by %d %s", at(q.Asked), q.Askers, show.Plural(q.Askers, "process", "processes"))
	row("now", "%s", event.Visible(q.State))
	if q.By == "" {
		return
	}
	row("answered by", "%s", event.Command([]string{q.By}, 0, 0))
	if q.Scope > 0 && q.Outcome == gate.Approved {
		row("approved", "%s", show.Subject(q))
	}
	if q.From != nil {
		row("from", "%s", q.From)
	}
	if q.Why != "" {
		row("why", "%s", event.Command([]string{q.Why}, 0, 0))
	}
	switch {
	case q.Shown == nil:
		row("shown", "not known")
	case q.Shown.Text == show.Question(q):
		row("shown", "the lines above and the state that it was in, sha256 %s", event.Visible(q.Shown.SHA256))
	default:
		row("shown", "sha256 %s", event.Visible(q.Shown.SHA256))
		for line := range strings.Lines(q.Shown.Text) {
			fmt.Fprintf(w, "    | %s\n", event.Visible(strings.TrimSuffix(line, "\n")))
		}
		if q.Shown.Cut {
			fmt.Fprintln(w, "    | (the rest was not kept)")
		}
	}
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  " + line)
	}
	return b.String()
}
