package redact

import (
	"regexp"
	"sync"
)

// Hidden stands for what Likely took out.
const Hidden = "[hidden]"

// SecretWords are the words that name a secret, as alternatives of a regular expression.
const SecretWords = `pass(?:word|wd|phrase)?|pwd|secret|token|api[-_]?key|apikey|access[-_]?key|private[-_]?key|client[-_]?secret|credentials?|auth(?:orization)?|session[-_]?id|cookie|sig(?:nature)?`

// lineEnd is a blank or the end of a line, also as it is written in a string.
const lineEnd = `(?:\s|\\[nr])`

// likely is what a secret looks like in a text, and what replaces it.
type likely struct {
	of *regexp.Regexp
	by string
}

// patterns are the forms of secrets. They are compiled when a text is first looked at: most programs never do.
var patterns = sync.OnceValue(func() []likely {
	return []likely{
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
		{regexp.MustCompile(`(?i)(\s--?(?:[a-z0-9]+[-_])*(?:` + SecretWords + `)\s+["']?)[^\s"'-][^\s"']*`), "${1}" + Hidden},
		{regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^/\s:@]*:)[^/\s@]+@`), "${1}" + Hidden + "@"},
		{regexp.MustCompile(`(?i)((?:^|[^A-Za-z0-9])(?:[A-Za-z0-9]+[-_.])*(?:` + SecretWords + `)["']?\s*[=:]\s*["']?)(?:\[hidden\]|[^\s&"';,)}\]]+)`), "${1}" + Hidden},
	}
})

// harmless is what stands where a secret is expected and is none: a shell's variable, or how a header's secret is meant.
var harmless = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[\s:="']\$\{?[A-Z_][A-Z0-9_]*\}?$|(?i:authorization)["']?\s*[:=]\s*["']?(?i:bearer|basic|token|digest|negotiate)$`)
})

// Likely is a text without what looks like a secret: by its form, or by the word before it. What has neither stays.
func Likely(s string) string {
	for _, p := range patterns() {
		s = p.of.ReplaceAllStringFunc(s, func(found string) string {
			if harmless().MatchString(found) {
				return found
			}
			return p.of.ReplaceAllString(found, p.by)
		})
	}
	return s
}
