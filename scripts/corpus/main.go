// Command corpus measures the command classifier on labelled commands, prints each figure beside the one that is wanted,
// and fails when one that must hold does not. The data is not part of the project.
//
//	corpus [-list SET | -why SET] DIR
//
// -list prints the rows of a set that are not judged as wanted, -why counts the reasons.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"weir/internal/classify"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "corpus:", err)
		os.Exit(1)
	}
}

var errMissed = errors.New("a figure that must hold does not")

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("corpus", flag.ContinueOnError)
	list := flags.String("list", "", "print the rows of this set that are not as wanted")
	why := flags.String("why", "", "count the reasons of the rows of this set that are not as wanted")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || flags.Arg(0) == "" {
		return errors.New("no data: say where it is, as in make corpus CORPORA=DIR")
	}
	sets, err := load(flags.Arg(0))
	if err != nil {
		return err
	}
	if found, err := listGuard(out, flags.Arg(0), *list); found || err != nil {
		return err
	}
	if found, err := listReviews(out, flags.Arg(0), *list); found || err != nil {
		return err
	}
	if name := *list + *why; name != "" {
		i := slices.IndexFunc(sets, func(s set) bool { return s.name == name })
		if i < 0 {
			return fmt.Errorf("no set %q: use one of %s", name, names(sets))
		}
		if *list != "" {
			printRows(out, sets[i])
		} else {
			printReasons(out, sets[i])
		}
		return nil
	}
	return errors.Join(table(out, sets), confusion(out, flags.Arg(0)), calls(out, flags.Arg(0)), guard(out, flags.Arg(0)))
}

func names(sets []set) string {
	var out []string
	for _, s := range sets {
		out = append(out, s.name)
	}
	return strings.Join(out, ", ")
}

// table prints a line for each set and an attack row for each that is called local.
func table(out io.Writer, sets []set) error {
	missed := false
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SET\tROWS\tLOCAL\tNETWORK\tGREY\tSHARE LOCAL\tWANTED\t\tWHAT")
	for _, s := range sets {
		var n [3]int
		for _, r := range s.rows {
			n[s.judge(r).Class]++
		}
		share := 100 * float64(n[classify.Local]) / float64(max(1, len(s.rows)))
		verdict := ""
		if s.goal.text != "" {
			verdict = "met"
			if !s.goal.met(n[classify.Local], len(s.rows)) {
				verdict = "missed"
				missed = missed || s.goal.must
			}
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%.1f %%\t%s\t%s\t%s\n", s.name, len(s.rows), n[classify.Local], n[classify.Network], n[classify.Grey],
			share, s.goal.text, verdict, s.what)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range sets {
		if s.name == "attack" {
			fmt.Fprintln(out, "\nAttack rows that are called local, for inspection:")
			printRows(out, s)
		}
	}
	if missed {
		return errMissed
	}
	return nil
}

func printRows(out io.Writer, s set) {
	for _, r := range s.rows {
		got := s.judge(r)
		if (got.Class == classify.Local) == s.wantLocal {
			continue
		}
		fmt.Fprintf(out, "%s\t%q", got.Class, r)
		for _, reason := range got.Reasons {
			if got.Class == classify.Local || reason.Rule == "local" {
				continue
			}
			fmt.Fprintf(out, "\n\t\t%s at %d %q: %s", reason.Rule, reason.Offset, part(r, reason), reason.Text)
		}
		fmt.Fprintln(out)
	}
}

// printReasons counts, for the rows that are not as wanted, the first reason together with the text that it points to.
func printReasons(out io.Writer, s set) {
	count := map[string]int{}
	for _, r := range s.rows {
		got := s.judge(r)
		if (got.Class == classify.Local) == s.wantLocal {
			continue
		}
		key := "(none)"
		for _, reason := range got.Reasons {
			if reason.Rule != "local" {
				key = fmt.Sprintf("%s\t%.40q\t%s", reason.Rule, part(r, reason), reason.Text)
				break
			}
		}
		count[key]++
	}
	keys := make([]string, 0, len(count))
	for k := range count {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if count[a] != count[b] {
			return count[b] - count[a]
		}
		return strings.Compare(a, b)
	})
	for _, k := range keys {
		fmt.Fprintf(out, "%6d\t%s\n", count[k], k)
	}
}

func part(text string, r classify.Reason) string {
	start := min(max(r.Offset, 0), len(text))
	return text[start:min(len(text), start+max(0, r.Length))]
}
