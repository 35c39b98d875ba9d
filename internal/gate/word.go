package gate

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/policy"
	"weir/internal/shell"
)

// word is what a word of a text can become: texts, with anything between them.
type word struct {
	parts []string // one more than there are expansions
	many  bool     // it may become no word, or several
}

func callOf(args []*syntax.Word) formCall {
	c := make(formCall, len(args))
	for i, a := range args {
		c[i] = wordOf(a)
	}
	return c
}

func wordOf(w *syntax.Word) (out word) {
	if shell.Braced(w) { // a{b,c}
		return word{parts: []string{"", ""}, many: true}
	}
	var text strings.Builder
	for i, p := range w.Parts {
		if l, ok := p.(*syntax.Lit); ok {
			out.pattern(&text, l.Value, i == 0)
			continue
		}
		text.WriteString(shell.Text(&syntax.Word{Parts: w.Parts[i : i+1]}, func(p syntax.WordPart, quoted bool) string {
			out.many = out.many || !quoted || shell.Multiple(p)
			return shell.Hole
		}))
	}
	out.parts = strings.Split(text.String(), shell.Hole)
	return out
}

// pattern adds an unquoted literal with holes for a home directory and for wildcards.
func (w *word) pattern(text *strings.Builder, s string, first bool) {
	if first && strings.HasPrefix(s, "~") {
		text.WriteString(shell.Hole)
		s = s[strings.IndexByte(s+"/", '/'):]
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			if s[i] != '\n' {
				text.WriteByte(s[i])
			}
		case c == '*' || c == '?' || c == '[':
			text.WriteString(shell.Hole)
			w.many = true
		default:
			text.WriteByte(c)
		}
	}
}

// literal is the word's one text, if it has no expansion.
func (w word) literal() (string, bool) {
	if len(w.parts) != 1 {
		return "", false
	}
	return w.parts[0], true
}

func literal(w *syntax.Word) (string, bool) {
	if w == nil {
		return "", false
	}
	return wordOf(w).literal()
}

// is says whether the word can become s.
func (w word) is(s string) bool { return policy.Between(w.parts, s) }

// cost is how many steps it takes at most to say whether the word can become n bytes.
func (w word) cost(n int) int {
	first, last := w.parts[0], w.parts[len(w.parts)-1]
	if len(w.parts) > 2 { // it is searched
		return len(w.parts) + n/stepBytes
	}
	return 1 + min(n, len(first)+len(last))/stepBytes
}

// matchSteps are what comparisons may still take; below zero they are used up.
type matchSteps int

// maxSteps bounds the comparison of a process and its ancestors with forms: what would take more is not recognised, and asked about again (B11).
const maxSteps matchSteps = 1 << 17

// stepBytes are looked at in one step.
const stepBytes = 64

// take uses n steps up; false: there were not as many.
func (s *matchSteps) take(n int) bool {
	if *s >= 0 {
		*s -= matchSteps(n)
	}
	return *s >= 0
}

// fits says whether words can become these arguments. It takes its steps from those that are left.
func fits(words []word, args []string, left *matchSteps) bool {
	is := func(w word, s string) bool { return left.take(w.cost(len(s))) && w.is(s) }
	// What stands before the first and behind the last word that may become several has one place only.
	for len(words) > 0 && !words[0].many {
		if len(args) == 0 || !is(words[0], args[0]) {
			return false
		}
		words, args = words[1:], args[1:]
	}
	for n := len(words); n > 0 && !words[n-1].many; n = len(words) {
		if len(args) == 0 || !is(words[n-1], args[len(args)-1]) {
			return false
		}
		words, args = words[:n-1], args[:len(args)-1]
	}
	if len(words) == 0 {
		return len(args) == 0
	}
	if !left.take(len(args)) {
		return false
	}
	size := 0
	for _, a := range args {
		size += len(a) + 1
	}
	if !left.take(size / stepBytes) {
		return false
	}
	all := strings.Join(args, " ")
	begin := make([]int, len(args)+1) // of each argument in all
	for i, a := range args {
		begin[i+1] = begin[i] + len(a) + 1
	}
	// can[j]: the words so far can become args[:j].
	can := make([]bool, len(args)+1)
	can[0] = true
	for _, w := range words {
		if !left.take(len(can)) {
			return false
		}
		next := make([]bool, len(can))
		for j := range can {
			switch {
			case !can[j]:
			case w.many:
				// None, one, or several words: what stands around the expansion stays at its ends.
				next[j] = next[j] || w.parts[0] == "" && w.parts[len(w.parts)-1] == ""
				for k := j; k < len(args); k++ {
					s := all[begin[j] : begin[k+1]-1]
					if !left.take(w.cost(len(s))) {
						return false
					}
					next[k+1] = next[k+1] || w.is(s)
				}
			case j < len(args):
				next[j+1] = next[j+1] || is(w, args[j])
			}
		}
		can = next
	}
	return can[len(args)]
}
