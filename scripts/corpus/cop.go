package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"weir/internal/classify"
	"weir/internal/cop"
)

// reviewed is a set of commands with what the static reviewer should think of it.
type reviewed struct {
	name, what string
	rows       []string
	flagged    bool
}

// notBash are the techniques of the attack set that are for other systems, or start no connection.
var notBash = []string{"Powershell", "Windows", "Spawn TTY Shell"}

func reviews(dir string) ([]reviewed, error) {
	attack, err := read(dir, "attack_shell.jsonl")
	if err != nil {
		return nil, err
	}
	bins, err := read(dir, "gtfobins.jsonl")
	if err != nil {
		return nil, err
	}
	benign, err := read(dir, "benign_shell.jsonl")
	if err != nil {
		return nil, err
	}
	technique := func(prefixes ...string) func(row) bool {
		return func(r row) bool {
			return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(r.Technique, p) }) &&
				!slices.ContainsFunc(notBash, func(n string) bool { return strings.Contains(r.Technique, n) })
		}
	}
	function := func(names ...string) func(row) bool {
		return func(r row) bool { return slices.Contains(names, r.Function) }
	}
	return []reviewed{
		{"shells", "reverse and bind shells, techniques", pick(attack, technique("revshell/", "bindshell/")), true},
		{"gtfoshells", "reverse and bind shells, GTFOBins", pick(bins, function("reverse-shell", "bind-shell")), true},
		{"exfil", "exfiltration and command channels, techniques",
			pick(attack, technique("T1048", "T1567", "T1041", "T1020", "T1030", "T1132", "T1071", "T1102", "T1105", "cmdinj/Dns Based")), true},
		{"gtfoupload", "uploads, GTFOBins", pick(bins, function("upload")), true},
		{"gtfodownload", "downloads, GTFOBins; a plain download is no upload", pick(bins, function("download")), true},
		{"agents", "agents' commands", pick(benign, func(r row) bool { return strings.HasPrefix(r.Source, "agent/") }), false},
		{"people", "people's commands; some send files", pick(benign, func(r row) bool { return r.Source == "nl2bash" }), false},
	}, nil
}

// wrong gives the rows of which the static reviewer thinks otherwise, with its reasons.
func (s reviewed) wrong(taint cop.Taint) (rows, reasons []string, err error) {
	c, err := cop.New(cop.Options{})
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	for _, r := range s.rows {
		o, err := c.Review(context.Background(), cop.Case{Command: r, Taint: taint, Judged: classify.Shell(r, workspace)})
		if err != nil {
			return nil, nil, fmt.Errorf("review %q: %w", r, err)
		}
		if o.Flagged != s.flagged {
			rows, reasons = append(rows, r), append(reasons, o.Reason)
		}
	}
	return rows, reasons, nil
}

// confusion prints how the static reviewer does: each row without a destination, as before it runs.
func confusion(out io.Writer, dir string) error {
	sets, err := reviews(dir)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "\nThe static reviewer, for one taint bit:")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SET\tROWS\tWANTED\tWRONG: corruption\t\tWRONG: secret\t\tWHAT")
	for _, s := range sets {
		line := fmt.Sprintf("%s\t%d\t%s", s.name, len(s.rows), map[bool]string{true: "flagged", false: "passed"}[s.flagged])
		for _, taint := range []cop.Taint{{Corruption: true}, {Secret: true}} {
			rows, _, err := s.wrong(taint)
			if err != nil {
				return err
			}
			line += fmt.Sprintf("\t%d\t%.1f %%", len(rows), 100*float64(len(rows))/float64(max(1, len(s.rows))))
		}
		fmt.Fprintf(w, "%s\t%s\n", line, s.what)
	}
	return w.Flush()
}

// listReviews prints the rows of a set that are judged otherwise, for the corruption bit; false if there is no such set.
func listReviews(out io.Writer, dir, name string) (bool, error) {
	sets, err := reviews(dir)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(sets, func(s reviewed) bool { return s.name == name })
	if i < 0 {
		return false, nil
	}
	rows, reasons, err := sets[i].wrong(cop.Taint{Corruption: true})
	for j, r := range rows {
		fmt.Fprintf(out, "%q\n\t\t%s\n", r, reasons[j])
	}
	return true, err
}
