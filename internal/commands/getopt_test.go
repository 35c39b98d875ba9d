package commands

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var sorter = &Command{
	Names: "sorter", Class: Local, Short: "nrk:c::", Long: "numeric key= color=? output-all", Number: true,
	Refuse: []Refusal{{Options: "--compress-program= -x", Why: "runs a program", Class: Network}},
}

// TestSplitG5: options as getopt_long reads them; what is not accepted is found.
func TestSplitG5(t *testing.T) {
	for _, tt := range []struct{ words, options, operands, rules string }{
		{"-nr a", "-n -r", "a", ""},
		{"a -n b", "-n", "a b", ""},
		{"-k2 a", "-k=2", "a", ""},
		{"-nk 2 a", "-n -k=2", "a", ""},
		{"-c a", "-c", "a", ""},
		{"-cx a", "-c=x", "a", ""},
		{"-- -n", "", "-n", ""},
		{"- a", "", "- a", ""},
		{"-5 a", "-0=5", "a", ""},
		{"--key 2 a", "--key=2", "a", ""},
		{"--key=2 a", "--key=2", "a", ""},
		{"--num", "--numeric", "", ""},
		{"--color a", "--color", "a", ""},
		{"--co a", "", "a", "option-refused"},
		{"--compress-program=x", "", "", "option-refused"},
		{"--numeric=1", "", "", "option-unknown"},
		{"-nx", "-n", "", "option-refused"},
		{"-z", "", "", "option-unknown"},
		{"--nothing", "", "", "option-unknown"},
	} {
		c := &Call{Command: sorter, Name: "sorter"}
		for w := range strings.FieldsSeq(tt.words) {
			c.Words = append(c.Words, Lit(w))
		}
		ParseSplit(c, Word{})
		var options, operands, rules []string
		for _, o := range c.Options {
			s := o.Name
			if o.Has {
				s += "=" + o.Value.Text
			}
			options = append(options, s)
		}
		for _, w := range c.Operands {
			operands = append(operands, w.Text)
		}
		for _, f := range c.Found {
			rules = append(rules, f.Rule)
		}
		got := [3]string{strings.Join(options, " "), strings.Join(operands, " "), strings.Join(rules, " ")}
		if diff := cmp.Diff([3]string{tt.options, tt.operands, tt.rules}, got); diff != "" {
			t.Errorf("%s: %s", tt.words, diff)
		}
	}
}

// TestSplitUnknownG5: words that are not literal may be options, or more words than one.
func TestSplitUnknownG5(t *testing.T) {
	for _, tt := range []struct {
		name string
		word Word
		want string
	}{
		{"anything", Word{}, "word-unknown"},
		{"any words", Unknown(), "word-unknown"},
		{"files below src", Word{Text: "src/", Glob: true}, ""},
		{"the rest of a long option", Word{Text: "--key="}, ""},
		{"a long option that goes on", Word{Text: "--ke"}, "word-unknown"},
		{"a cluster that goes on", Word{Text: "-n"}, "word-unknown"},
		{"a value that goes on", Word{Text: "-k2"}, ""},
		{"a value that may be empty", Word{Text: "-k"}, "word-unknown"},
		{"a value that is split", Word{Text: "-k2", Split: true}, "word-unknown"},
	} {
		c := &Call{Command: sorter, Name: "sorter", Words: []Word{tt.word}}
		ParseSplit(c, Word{})
		got := ""
		if len(c.Found) > 0 {
			got = c.Found[0].Rule
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
