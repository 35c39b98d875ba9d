package show

import (
	"regexp"
	"slices"
	"strings"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/redact"
)

// Hidden stands for what Redact took out.
const Hidden = redact.Hidden

// Redact returns q without what looks like a secret in its command line, and
// whether there was any. It knows secrets by their form or by the word before
// them; what has neither stays.
func Redact(q gate.Question) (gate.Question, bool) {
	any := false
	q.Process.Argv, any = redactArgv(q.Process.Argv, any)
	q.Chain = slices.Clone(q.Chain)
	for i := range q.Chain {
		q.Chain[i].Argv, any = redactArgv(q.Chain[i].Argv, any)
		q.Chain[i].Exe, any = redactInto(q.Chain[i].Exe, any)
	}
	q.Causes = slices.Clone(q.Causes)
	for i := range q.Causes {
		q.Causes[i].Why, any = redactInto(q.Causes[i].Why, any)
		q.Causes[i].Argv, any = redactArgv(q.Causes[i].Argv, any)
		q.Causes[i].Above, any = redactEach(q.Causes[i].Above, any)
		q.Causes[i].From, any = redactEach(q.Causes[i].From, any)
	}
	q.Text, any = redactInto(q.Text, any)
	q.Note, any = redactInto(q.Note, any)
	q.Process.Script, any = redactInto(q.Process.Script, any)
	q.Process.Exe, any = redactFile(q.Process.Exe, any)
	return q, any
}

func redactInto(s string, any bool) (string, bool) {
	r := redact.Likely(s)
	return r, any || r != s
}

func redactEach(list []string, any bool) ([]string, bool) {
	list = slices.Clone(list)
	for i := range list {
		list[i], any = redactInto(list[i], any)
	}
	return list, any
}

func redactFile(f *event.File, any bool) (*event.File, bool) {
	if f == nil {
		return nil, any
	}
	c := *f
	c.Path, any = redactInto(f.Path, any)
	return &c, any
}

func redactArgv(argv []string, any bool) ([]string, bool) {
	if argv == nil {
		return nil, any
	}
	out := make([]string, len(argv))
	follows := "" // the option that the last word was
	for i, a := range argv {
		out[i] = redactWord(a, follows)
		any = any || out[i] != a
		follows = a
	}
	return out, any
}

// redactWord handles one argument; before is the one before it.
func redactWord(a, before string) string {
	if a == "" {
		return a
	}
	switch {
	case before == "-u" || before == "--user" || before == "--proxy-user" || before == "-U":
		if name, _, ok := strings.Cut(a, ":"); ok {
			return name + ":" + Hidden
		}
	case strings.HasPrefix(before, "-") && !strings.Contains(before, "=") && secretName.MatchString(before) && !strings.HasPrefix(a, "-"):
		return Hidden
	case before == "-H" || before == "--header":
		if name, _, ok := strings.Cut(a, ":"); ok && secretHeader.MatchString(name) {
			return name + ": " + Hidden
		}
	}
	return redact.Likely(a)
}

var (
	secretName   = regexp.MustCompile(`(?i)(?:^|[-_.])(?:` + redact.SecretWords + `)$`)
	secretHeader = regexp.MustCompile(`(?i)(?:auth|cookie|token|secret|key|signature)`)
)
