package toolguard

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of a file of appended rules.
const (
	maxAppended = 1000    // rules
	maxRule     = 4 << 10 // bytes of one
)

// Problem is a line of a file of appended rules that is no rule. The others are in force.
type Problem struct {
	File string
	Line int
	What string // what is wrong, and what to do
}

// String is FILE:LINE: what.
func (p Problem) String() string { return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.What) }

// Appended reads the operator's own rules (K12), one a line: what it is about, then -- and a reason for people. They can only refuse more.
//
//	command NAME [WORD…] -- REASON   a command with these words, in this order
//	path PATTERN -- REASON           a path that a tool takes; ** stands for any directories
//	tool NAME -- REASON              every call of a tool
func Appended(file string, data []byte) (rules []Rule, problems []Problem) {
	for n, line := range bytes.Split(data, []byte("\n")) {
		text := strings.TrimSpace(string(line))
		if text == "" || text[0] == '#' {
			continue
		}
		r, why := appended(text)
		switch {
		case why == "" && len(rules) == maxAppended:
			why = fmt.Sprintf("there are more than %d rules: put some together", maxAppended)
		case why == "":
			r.ID = fmt.Sprintf("operator-%d", n+1)
			rules = append(rules, r)
			continue
		}
		problems = append(problems, Problem{file, n + 1, why + "; this rule is skipped"})
	}
	return rules, problems
}

func appended(text string) (Rule, string) {
	if len(text) > maxRule || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return Rule{}, fmt.Sprintf("the line is longer than %d bytes or no UTF-8", maxRule)
	}
	what, reason, ok := strings.Cut(text, " -- ")
	if reason = strings.TrimSpace(reason); !ok || reason == "" {
		return Rule{}, "it gives no reason: end it with -- and why this is refused"
	}
	words := strings.Fields(what)
	r := Rule{Group: OnOperator, Why: reason + ".", Instead: "Ask the user."}
	switch kind := words[0]; {
	case len(words) < 2:
		return r, fmt.Sprintf("%q is not followed by what it refuses", kind)
	case kind == "command":
		name := psCanonical(words[1])
		if strings.ContainsAny(name, "*?") {
			return r, "the name of a command has no wildcards: write one rule for each name"
		}
		cond := always
		if len(words) > 2 {
			list := make([]string, 0, len(words)-2)
			for _, w := range words[2:] {
				list = append(list, strings.ToLower(strings.TrimLeft(w, "-/")))
			}
			cond = hasWords(list...)
		}
		r.Refuses = "runs " + strings.Join(words[1:], " ")
		r.On = []trigger{{Names: slices.Compact([]string{name, strings.ToLower(words[1])}), When: cond}}
	case kind == "path":
		pattern := strings.ToLower(strings.Join(words[1:], " "))
		if _, err := path.Match(pattern, ""); err != nil || strings.Trim(pattern, "*/?.") == "" {
			return r, "the pattern cannot be read, or stands for every path"
		}
		r.Refuses = "opens " + pattern
		r.Files = []string{strings.ReplaceAll(pattern, `\`, "/")}
	case kind == "tool" && len(words) == 2:
		r.Refuses, r.Tools = "calls the tool "+words[1], []string{words[1]}
	default:
		return r, fmt.Sprintf("%q is none of command, path and tool", kind)
	}
	return r, ""
}
