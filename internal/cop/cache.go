package cop

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// cacheKey stands for all that a reviewer is shown: a verdict never serves for a case
// that a reviewer could have told apart, but for the layout of the command's text (normal).
type cacheKey [sha256.Size]byte

func keyOf(c Case) cacheKey {
	var rules []string
	for _, r := range c.Judged.Reasons {
		rules = append(rules, r.Rule)
	}
	d := c.Destination
	// Go syntax quotes each text, so that no two cases are written alike.
	return sha256.Sum256(fmt.Appendf(nil, "%#v", []any{c.Policy, c.Command, c.Argv, c.Truncated, c.Taint, c.Dir, c.Container, c.Image,
		d.Address.String(), d.Port, d.Protocol, d.Name, c.Ancestry, c.Judged.Class, c.Judged.Facts, rules}))
}

// maxNormal bounds the text that is brought into a common layout.
const maxNormal = 4 << 10

// normal writes a command in one layout: blanks, line ends and indentation as the parser
// knows them to be without meaning. Comments stay: a model reads them too.
func normal(command string) string {
	if len(command) > maxNormal {
		return command
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(command), "")
	if err != nil {
		return command
	}
	var b strings.Builder
	if err := syntax.NewPrinter().Print(&b, f); err != nil {
		return command
	}
	return b.String()
}
