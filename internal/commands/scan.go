package commands

// maxNames bounds the files and functions of a text.
const maxNames = 1000

// scan is a text that is read from the left, and what was found in it. All of a
// refusal counts that came first.
type scan struct {
	s   string
	i   int
	out Script
}

// peek gives the next byte, or 0 at the end.
func (p *scan) peek() byte {
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

func (p *scan) blanks() {
	for p.i < len(p.s) && (p.s[p.i] == ' ' || p.s[p.i] == '\t') {
		p.i++
	}
}

func (p *scan) digits() {
	for p.i < len(p.s) && p.s[p.i] >= '0' && p.s[p.i] <= '9' {
		p.i++
	}
}

// line goes to the end of the line.
func (p *scan) line() {
	for p.i < len(p.s) && p.s[p.i] != '\n' {
		p.i++
	}
}

func (p *scan) refuse(why string) { p.refuseAt(p.i, why) }

func (p *scan) refuseAt(at int, why string) {
	if !p.out.OK {
		return
	}
	p.out.OK, p.out.Why, p.out.At = false, why, min(at, len(p.s))
}

// isWord tells whether c may stand in a name.
func isWord(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// bracketEnd gives the place of the ] that ends the bracket expression at i, or -1.
// With escapes, a backslash takes away the meaning of what follows.
func bracketEnd(s string, i int, escapes bool) int {
	i++
	if i < len(s) && s[i] == '^' {
		i++
	}
	if i < len(s) && s[i] == ']' {
		i++
	}
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\n':
			return -1
		case c == ']':
			return i
		case c == '\\' && escapes:
			i++
		case c == '[' && i+1 < len(s) && (s[i+1] == ':' || s[i+1] == '.' || s[i+1] == '='):
			k := s[i+1]
			for i += 2; i+1 < len(s) && (s[i] != k || s[i+1] != ']'); i++ {
				if s[i] == '\n' {
					return -1
				}
			}
			i++
		}
	}
	return -1
}
