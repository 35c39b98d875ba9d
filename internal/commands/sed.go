package commands

import "strings"

// Sed judges a sed script; several of -e are joined by newlines. It reads the
// grammar of GNU sed, and refuses where busybox or an older GNU sed could read
// the text in another way. Files of r, R, w, W and s///w are listed.
func Sed(text string) Script {
	p := sedParser{scan: scan{s: text}}
	p.script()
	if p.out.OK && p.bracketed {
		// Some seds end a pattern at a delimiter inside brackets (s/[/]/x/). Fine
		// when they then refuse the script before they run it.
		q := sedParser{scan: scan{s: text}, flat: true}
		q.script()
		if !q.out.OK && !q.fatal {
			return q.out
		}
	}
	return p.out
}

type sedParser struct {
	scan
	flat      bool // a delimiter ends a pattern even inside brackets
	bracketed bool // a delimiter stood inside brackets
	labelled  bool // this line has a label before: old seds read labels to the end of the line
	fatal     bool // refused by every sed
	depth     int
}

func (p *sedParser) script() {
	p.out.OK = true
	if i := strings.IndexAny(p.s, "\r\v\f"); i >= 0 {
		p.refuseAt(i, "seds differ on whether this ends a line")
	}
	for p.out.OK {
		for p.i < len(p.s) && strings.IndexByte("; \t\n", p.s[p.i]) >= 0 {
			if p.s[p.i] == '\n' {
				p.labelled = false
			}
			p.i++
		}
		if p.i >= len(p.s) {
			if p.depth != 0 {
				p.refuse("a brace is not closed")
			}
			return
		}
		p.command()
	}
}

// command reads one command with its addresses.
func (p *sedParser) command() {
	start, labelled := p.i, p.labelled
	if p.address(false) {
		p.blanks()
		if p.peek() == ',' {
			p.i++
			p.blanks()
			if !p.address(true) && p.out.OK {
				p.refuse("an address is missing after a comma")
			}
			p.blanks()
		}
	}
	if p.peek() == '!' {
		p.i++
		p.blanks()
	}
	if !p.out.OK {
		return
	}
	c := p.peek()
	at := p.i
	p.i++
	switch c {
	case '{':
		p.depth++
	case '}':
		p.depth--
		if p.depth < 0 {
			p.refuse("a brace is closed that was not opened")
		}
		p.end()
	case '#':
		p.line()
	case '=', 'd', 'D', 'F', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'z', 'x':
		p.end()
	case 'q', 'Q', 'l', 'L':
		p.blanks()
		p.digits()
		p.end()
	case ':', 'b', 't', 'T':
		p.blanks()
		for p.i < len(p.s) && (isWord(p.s[p.i]) || p.s[p.i] == '-' || p.s[p.i] == '.') {
			p.i++
		}
		p.labelled = true
		p.end()
	case 'a', 'i', 'c':
		p.text()
	case 'r', 'R':
		p.out.Reads = append(p.out.Reads, p.file())
	case 'w', 'W':
		p.out.Writes = append(p.out.Writes, p.file())
	case 's':
		p.substitute()
	case 'y':
		d := p.delimiter()
		p.delimited(d, true)
		p.delimited(d, true)
		p.end()
	case 'e':
		p.out.Network = true
		p.refuseAt(at, "the command e of sed runs a program")
	default:
		p.refuseAt(at, "sed does not know this command")
		p.fatal = c != 'v' && !labelled // a sed that knows v goes on
	}
	if labelled && strings.Contains(strings.TrimSuffix(p.s[start:min(p.i, len(p.s))], "\n"), "\n") {
		p.refuseAt(start, "a label is followed by a command of several lines")
	}
}

// address reads one address, if there is one.
func (p *sedParser) address(second bool) bool {
	switch c := p.peek(); {
	case c >= '0' && c <= '9':
		p.digits()
		p.blanks()
		if p.peek() == '~' {
			p.i++
			p.blanks()
			p.digits()
		}
	case c == '$':
		p.i++
	case second && (c == '+' || c == '~'):
		p.i++
		p.digits()
	case c == '/' || c == '\\':
		p.i++
		d := byte('/')
		if c == '\\' {
			d = p.delimiter()
		}
		p.delimited(d, false)
		for p.blanks(); p.peek() == 'I' || p.peek() == 'M'; p.blanks() {
			p.i++
		}
	default:
		return false
	}
	return p.out.OK
}

func (p *sedParser) substitute() {
	d := p.delimiter()
	p.delimited(d, false)
	p.delimited(d, true)
	for p.out.OK {
		at := p.i
		c := p.peek()
		p.i++
		switch {
		case at >= len(p.s):
			return
		case c == '\n', c == ';':
			p.i = at
			p.end()
			return
		case c == '}', c == '#':
			p.i = at
			return
		case strings.IndexByte("gpiImM \t", c) >= 0, c >= '0' && c <= '9':
		case c == 'w':
			p.out.Writes = append(p.out.Writes, p.file())
			return
		case c == 'e':
			p.out.Network = true
			p.refuseAt(at, "the flag e of s runs the text as a program")
		default:
			p.refuseAt(at, "sed does not know this flag of s")
			p.fatal = !p.labelled
		}
	}
}

// delimiter reads the character that bounds a pattern.
func (p *sedParser) delimiter() byte {
	c := p.peek()
	if strings.IndexByte("/|,#:;@!%_~+=^&.\"'<>?-*$", c) < 0 || c == 0 {
		p.refuse("this delimiter is not one that every sed reads in the same way")
		return '/'
	}
	p.i++
	return c
}

// delimited reads up to the delimiter; plain when brackets mean nothing.
func (p *sedParser) delimited(d byte, plain bool) {
	if !p.out.OK {
		return
	}
	flat := p.until(d, false, false)
	if plain || p.flat {
		p.ended(flat)
		return
	}
	posix, escaped := p.until(d, true, false), p.until(d, true, true)
	if posix != escaped {
		p.refuse("seds differ on where this pattern ends")
		return
	}
	if flat != posix {
		p.bracketed = true
	}
	p.ended(posix)
}

func (p *sedParser) ended(i int) {
	if i < 0 {
		p.refuse("a pattern is not closed")
		p.fatal = true
		return
	}
	p.i = i + 1
}

// until gives the place of the delimiter that ends a pattern, or -1. With brackets,
// one inside of [ ] does not; with escapes, a backslash counts inside of them, too.
func (p *sedParser) until(d byte, brackets, escapes bool) int {
	for i := p.i; i < len(p.s); i++ {
		switch c := p.s[i]; {
		case c == '\\':
			i++
		case c == '\n':
			return -1
		case c == d:
			return i
		case c == '[' && brackets:
			if i = bracketEnd(p.s, i, escapes); i < 0 {
				return -1
			}
		}
	}
	return -1
}

// text reads what a, i and c print: to the end of the line, and on after a backslash.
func (p *sedParser) text() {
	p.blanks()
	whole := false // the text stands on the line of its command, behind a backslash
	if p.peek() == '\\' {
		p.i++
		at := p.i
		p.blanks()
		if whole = p.peek() != '\n'; !whole {
			if p.i != at {
				p.refuse("blanks stand between a backslash and the end of its line")
				return
			}
			p.i++
		}
	} else if p.peek() == '\n' {
		p.refuse("a text is missing")
		return
	}
	if p.i >= len(p.s) {
		p.refuse("a text is missing")
		return
	}
	if p.peek() == '\\' {
		p.refuse("seds differ on what a backslash means where a text begins")
		return
	}
	for ; p.i < len(p.s) && p.s[p.i] != '\n'; p.i++ {
		if p.s[p.i] != '\\' {
			continue
		}
		p.i++
		if p.i >= len(p.s) || whole && p.s[p.i] == '\n' || p.s[p.i] == '\\' && p.i+1 < len(p.s) && p.s[p.i+1] == '\n' {
			p.refuse("seds differ on where this text ends")
			return
		}
	}
}

// file reads a file's name, which goes to the end of the line.
func (p *sedParser) file() string {
	p.blanks()
	start := p.i
	p.line()
	name := p.s[start:p.i]
	if name == "" || strings.ContainsAny(name, ";}\\") || strings.TrimSpace(name) != name {
		p.refuseAt(start, "a file's name ends elsewhere in other seds")
	}
	if len(p.out.Reads)+len(p.out.Writes) > maxNames {
		p.refuseAt(start, "the script is too long to be judged")
	}
	return name
}

// end reads what ends a command.
func (p *sedParser) end() {
	p.blanks()
	switch p.peek() {
	case '}', '#':
	case ';', '\n':
		if p.peek() == '\n' {
			p.labelled = false
		}
		p.i++
	default:
		if p.i < len(p.s) && p.out.OK {
			p.refuse("sed does not expect this after a command")
			p.fatal = !p.labelled
		}
	}
}
