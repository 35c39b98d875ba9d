package toolguard

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"weir/internal/bridge/wire"
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
	if !ok {
		what = strings.TrimSuffix(what, " --")
	}
	words := append(strings.Fields(what), "")
	kind, words := words[0], words[1:len(words)-1]
	r := Rule{Group: OnOperator, Instead: "Ask the user."}
	switch reason = strings.TrimSpace(reason); {
	case kind != "command" && kind != "path" && kind != "tool":
		return r, fmt.Sprintf("it begins with %.64q: a rule begins with command, path or tool, for example command terraform destroy -- ask the platform team", kind)
	case len(words) == 0:
		return r, fmt.Sprintf("%s is not followed by what it refuses: write for example %s", kind, ruleExamples[kind])
	case reason == "":
		return r, "it gives no reason: end it with -- and why this is refused"
	}
	r.Why = reason + "."
	switch kind {
	case "command":
		name := psCanonical(words[0])
		if strings.ContainsAny(name, "*?") {
			return r, "the name of a command has no wildcards: write one rule for each name"
		}
		cond := always
		if len(words) > 1 {
			list := make([]string, 0, len(words)-1)
			for _, w := range words[1:] {
				list = append(list, word(w))
			}
			cond = hasWords(list...)
		}
		r.Refuses = "runs " + strings.Join(words, " ")
		r.On = []trigger{{Names: slices.Compact([]string{strings.ToLower(name), strings.ToLower(words[0])}), When: cond}}
	case "path":
		pattern := strings.Join(words, " ")
		if r.Files = readPattern(pattern); r.Files == nil {
			return r, "the pattern cannot be read, or stands for every path: write for example " + ruleExamples[kind]
		}
		r.Refuses = "opens " + pattern
	case "tool":
		if len(words) > 1 || strings.ContainsAny(words[0], "*?(") {
			return r, "it names no tool: write one name without wildcards and brackets, for example " + ruleExamples[kind]
		}
		r.Refuses, r.Tools = "calls the tool "+words[0], []string{wire.Canonical(words[0])}
	}
	return r, ""
}

// ruleExamples shows each kind of rule.
var ruleExamples = map[string]string{
	"command": "command terraform destroy -- ask the platform team", "path": "path /srv/payroll/** -- personal data", "tool": "tool mcp__mail__send -- mail goes out through people",
}

// readPattern gives a path with wildcards in the form in which paths are compared (cleanPath); none: it cannot be read, or stands for every path.
func readPattern(p string) []string {
	p = strings.ReplaceAll(strings.ToLower(strings.Trim(p, `"'`)), `\`, "/")
	homes := []string{""}
	for _, name := range []string{"~", "$home", "${home}", "%userprofile%", "$env:userprofile"} {
		if rest, ok := strings.CutPrefix(p, name); ok && (rest == "" || rest[0] == '/') {
			p, homes = rest, []string{"/root", "/home/*", "/users/*"} // whoever it is
		}
	}
	p = vars.Replace(p)
	if isDrive(p) {
		p = p[2:]
	}
	var clean []string
	for part := range strings.SplitSeq(p, "/") {
		switch {
		case part == "..":
			clean = clean[:max(len(clean)-1, 0)]
		case part != "." && part != "":
			clean = append(clean, part)
		}
		if _, err := path.Match(part, ""); err != nil {
			return nil
		}
	}
	if len(homes) == 1 && strings.Trim(strings.Join(clean, ""), "*?.") == "" {
		return nil
	}
	out := make([]string, len(homes))
	for i, home := range homes {
		out[i] = path.Join(home+"/", strings.Join(clean, "/"))
	}
	return out
}
