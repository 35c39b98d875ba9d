package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/classify"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/gitguard"
	"weir/internal/linux"
)

func (s *system) explainCommand() *cobra.Command {
	var table bool
	cmd := &cobra.Command{
		Use:   "explain COMMAND | --table",
		Short: "show how a command is judged, part by part: local, network or grey",
		Long: `COMMAND is a shell text, as one argument. With more arguments, they are the words of an observed command line.
It is judged as if it ran in the directory that this command runs in, on this machine. Nothing is run. --table prints the table
by which every verdict is made, and what happens when something fails.`,
		Example: `  weir explain 'grep -r main . | head; curl example.com'
  weir explain -- find . -name '*.go' -delete
  weir explain --table`,
		Args: func(cmd *cobra.Command, list []string) error {
			if table {
				return args(0, 0, "")(cmd, list)
			}
			return args(1, -1, "a command, in quotes")(cmd, list)
		},
		RunE: func(_ *cobra.Command, list []string) error {
			if table {
				t := decisions()
				return s.answer(t, func(w io.Writer) { printTable(w, t) })
			}
			text := list[0]
			dir, _ := os.Getwd() // unknown is fine
			self, _ := linux.ReadStat(os.Getpid())
			look := gitguard.Repositories("", self.PID, self.Start)
			r := classify.ShellWith(text, dir, look)
			if len(list) > 1 {
				text = strings.Join(list, " ")
				r = classify.Argv(classify.Observed{Argv: list, Dir: dir, Git: look})
			}
			e := explain(text, r)
			return s.answer(e, func(w io.Writer) { printExplained(w, e) })
		},
	}
	cmd.Flags().BoolVar(&table, "table", false, "print the decision table")
	return cmd
}

// decided is the decision table as it is printed.
type decided struct {
	Rows     []decision     `json:"rows"`
	Failures []gate.Failure `json:"failures"`
}

type decision struct {
	gate.Row
	Classes []string `json:"classes"`
}

func decisions() decided {
	d := decided{Failures: gate.Failures()}
	for _, r := range gate.Table() {
		row := decision{Row: r}
		for _, c := range r.Classes {
			row.Classes = append(row.Classes, c.String())
		}
		d.Rows = append(d.Rows, row)
	}
	return d
}

func printTable(w io.Writer, d decided) {
	fmt.Fprint(w, "The first row that applies decides.\n\n")
	rows := make([][]string, len(d.Rows))
	for i, r := range d.Rows {
		verdict := string(r.Step)
		switch r.Step {
		case gate.Review:
			flagged := string(r.Flagged)
			if r.Flagged == gate.ByPolicy {
				flagged = "as cop.flagged says"
			}
			verdict = "reviewer: not flagged allow, flagged " + flagged
		case gate.Person:
			verdict = "a person is asked"
		}
		rows[i] = []string{each(r.Modes, 3), each(r.Levels, 3), each(r.Classes, 3), each(r.Points, 3), verdict, string(r.Reason), r.Why}
	}
	table(w, []string{"MODE", "TAINT", "CLASS", "WHEN", "VERDICT", "REASON", "WHY"}, rows)
	fmt.Fprint(w, `
TAINT is how many of the two bits are set. WHEN: seen, a command was seen to run and goes on, sealed; asked, it waits before it
goes on; out, it wants to get out. A failure never allows:

`)
	rows = make([][]string, len(d.Failures))
	for i, f := range d.Failures {
		then := "deny"
		if f.Then == gate.Person {
			then = "ask a person, else deny"
		}
		rows[i] = []string{string(f.Reason), then, f.What}
	}
	table(w, []string{"REASON", "THEN", "WHAT"}, rows)
}

// each lists what a column of the table applies to; all are "any".
func each[T ~string](list []T, all int) string {
	if len(list) == all {
		return "any"
	}
	words := make([]string, len(list))
	for i, l := range list {
		words[i] = string(l)
	}
	return strings.Join(words, ", ")
}

type explained struct {
	Class string         `json:"class"`
	Parts []part         `json:"parts"`
	Facts classify.Facts `json:"facts"`
}

type part struct {
	classify.Reason
	Class string `json:"class"`
	Part  string `json:"part"`
}

func explain(text string, r classify.Result) explained {
	e := explained{Class: r.Class.String(), Parts: []part{}, Facts: r.Facts}
	for _, reason := range r.Reasons {
		p := part{Reason: reason, Class: reason.Class.String()}
		if from, to := reason.Offset, reason.Offset+reason.Length; from >= 0 && from <= to && to <= len(text) {
			p.Part = text[from:to]
		}
		e.Parts = append(e.Parts, p)
	}
	return e
}

// meaning tells what follows from a class.
var meaning = map[string]string{
	"local":   "it may run in a tainted container; its egress stays denied",
	"network": "it reaches the network or runs code; in a tainted container its egress is denied until it is let out",
	"grey":    "what it does cannot be proved; in a tainted container its egress is denied until it is let out",
}

func printExplained(w io.Writer, e explained) {
	fmt.Fprintf(w, "%s: %s\n\n", e.Class, meaning[e.Class])
	rows := make([][]string, len(e.Parts))
	for i, p := range e.Parts {
		rows[i] = []string{shorten(p.Part), p.Class, p.Text, p.Rule}
	}
	if len(rows) > 0 {
		table(w, []string{"PART", "CLASS", "WHY", "RULE"}, rows)
	}
	for _, f := range []struct {
		name string
		list []string
	}{
		{"programs", e.Facts.Programs}, {"hosts", e.Facts.Hosts}, {"URLs", e.Facts.URLs}, {"reads", e.Facts.Reads}, {"writes", e.Facts.Writes},
		{"listens", e.Facts.Listens}, {"encodes with", e.Facts.Encoders},
	} {
		if len(f.list) > 0 {
			fmt.Fprintf(w, "%s: %s\n", f.name, event.Visible(strings.Join(f.list, " ")))
		}
	}
}

// shorten keeps a part of a command readable in a column.
func shorten(s string) string {
	const most = 48
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
