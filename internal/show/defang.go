package show

import (
	"regexp"
	"strings"
)

var (
	// dots are those inside names and addresses; browsers take the full stops of Chinese and Japanese for one.
	dots = regexp.MustCompile(`([^\s.。．｡․\[])[.。．｡․]([^\s.。．｡․\]])`)
	// schemes are what makes a link of any text: mailto:, javascript:, http://.
	schemes = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*):([^\s:])`)
	// entities are what a renderer of Markdown reads as a character: &#58; is a colon.
	entities = regexp.MustCompile(`&(#?[A-Za-z0-9]+;)`)
	marks    = strings.NewReplacer("@", "[at]", "://", "[:]//")
)

// Defang breaks what a chat, a terminal or a reader of Markdown would make live, or a model might follow: URLs of any scheme, names of hosts, addresses,
// mentions, links and images (B50, F13). It takes visible text. Applying it twice changes nothing.
func Defang(s string) string {
	s = entities.ReplaceAllString(s, "[&]$1")
	for range 2 { // neighbours share a character: a.b.c
		s = schemes.ReplaceAllString(s, "$1[:]$2")
	}
	for range 2 {
		s = dots.ReplaceAllString(s, "$1[.]$2")
	}
	return strings.ReplaceAll(marks.Replace(s), "](", "] (") // the last: what stands for a dot can come before a parenthesis
}
