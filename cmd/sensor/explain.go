package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/classify"
	"weir/internal/event"
)

func (s *system) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain COMMAND",
		Short: "tell how a command is seen, part by part: local, network or grey",
		Long: `COMMAND is a shell text, as one argument. With more arguments, they are the words of an observed command line.
Nothing is run.`,
		Example: `  weir explain 'grep -r main . | head; curl example.com'
  weir explain -- find . -name '*.go' -delete`,
		Args: args(1, -1, "a command, in quotes"),
		RunE: func(_ *cobra.Command, list []string) error {
			text := list[0]
			r := classify.Shell(text)
			if len(list) > 1 {
				text = strings.Join(list, " ")
				r = classify.Argv(classify.Observed{Argv: list})
			}
			e := explain(text, r)
			return s.answer(e, func(w io.Writer) { printExplained(w, e) })
		},
	}
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
