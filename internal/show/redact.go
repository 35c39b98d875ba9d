package show

import (
	"regexp"
	"slices"
	"strings"

	"weir/internal/event"
	"weir/internal/gate"
)

// Hidden stands for what Redact took out.
const Hidden = "[hidden]"

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
	}
	q.Text, any = redactInto(q.Text, any)
	q.Note, any = redactInto(q.Note, any)
	q.Process.Script, any = redactInto(q.Process.Script, any)
	q.Process.Exe, any = redactFile(q.Process.Exe, any)
	return q, any
}

// Text is a command line in one piece without what looks like a secret.
func Text(s string) string { return redactText(s) }

func redactInto(s string, any bool) (string, bool) {
	r := redactText(s)
	return r, any || r != s
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
	return redactText(a)
}

const secretWords = `pass(?:word|wd|phrase)?|pwd|secret|token|api[-_]?key|apikey|access[-_]?key|private[-_]?key|client[-_]?secret|credentials?|auth(?:orization)?|session[-_]?id|cookie|sig(?:nature)?`

// lineEnd is a blank or the end of a line, also as it is written in a string.
const lineEnd = `(?:\s|\\[nr])`

var (
	secretName   = regexp.MustCompile(`(?i)(?:^|[-_.])(?:` + secretWords + `)$`)
	secretHeader = regexp.MustCompile(`(?i)(?:auth|cookie|token|secret|key|signature)`)
)

// patterns are forms of secrets in a text, with what replaces each.
var patterns = []struct {
	form *regexp.Regexp
	by   string
}{
	// No more than what a key can consist of, or a command could hide behind its first line.
	{regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----(?:` + lineEnd + `*(?:Proc-Type|DEK-Info): [A-Za-z0-9,-]+)*(?:` + lineEnd + `|[A-Za-z0-9+/=])*(?:-----END [A-Z ]*PRIVATE KEY-----)?`), Hidden},
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`), Hidden}, // a JSON web token
	{regexp.MustCompile(`\b(?:gh[pousr]_|github_pat_|glpat-|npm_|pypi-|dop_v1_|shpat_|hf_|xox[abeprs]-|xapp-|sk-|sk_live_|rk_live_|pk_live_|whsec_|SG\.|ya29\.|AGE-SECRET-KEY-)[A-Za-z0-9_.=-]{8,}`), Hidden},
	{regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`), Hidden},
	{regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{30,}`), Hidden},
	{regexp.MustCompile(`(?i)\b((?:proxy-)?authorization["']?\s*[:=]\s*["']?(?:(?:bearer|basic|token|digest|negotiate)\s+)?)[^\s"']+`), "${1}" + Hidden},
	{regexp.MustCompile(`(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{8,}`), "${1}" + Hidden},
	{regexp.MustCompile(`(?i)\b(x-[a-z-]*(?:token|key|secret|auth)[a-z-]*\s*:\s*)[^\s"']+`), "${1}" + Hidden},
	{regexp.MustCompile(`(\s(?:-u|-U|--user|--proxy-user)[\s=]\s*["']?[^\s:"']+:)[^\s"']+`), "${1}" + Hidden},
	{regexp.MustCompile(`(?i)(\s--?(?:[a-z0-9]+[-_])*(?:` + secretWords + `)\s+["']?)[^\s"'-][^\s"']*`), "${1}" + Hidden},
	{regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^/\s:@]*:)[^/\s@]+@`), "${1}" + Hidden + "@"},
	{regexp.MustCompile(`(?i)((?:^|[^A-Za-z0-9])(?:[A-Za-z0-9]+[-_.])*(?:` + secretWords + `)["']?\s*[=:]\s*["']?)(?:\[hidden\]|[^\s&"';,)}\]]+)`), "${1}" + Hidden},
}

// harmless is what stands where a secret is expected and is none: a shell's variable, or how a header's secret is meant.
var harmless = regexp.MustCompile(`[\s:="']\$\{?[A-Z_][A-Z0-9_]*\}?$|(?i:authorization)["']?\s*[:=]\s*["']?(?i:bearer|basic|token|digest|negotiate)$`)

func redactText(s string) string {
	for _, p := range patterns {
		s = p.form.ReplaceAllStringFunc(s, func(found string) string {
			if harmless.MatchString(found) {
				return found
			}
			return p.form.ReplaceAllString(found, p.by)
		})
	}
	return s
}
