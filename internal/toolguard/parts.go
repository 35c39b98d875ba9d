package toolguard

import "strings"

// partsPOSIX cuts a text at the ends of lines at which a shell is done with all that stands before: statements of one part are in no loop, function
// or quote of another, and pipe nothing into it. What cannot be told so is one last part. All parts together are the text.
func partsPOSIX(text string) []string {
	c := cutter{s: text, command: true}
	var out []string
	from := 0
	for c.line() {
		out = append(out, text[from:c.i])
		from = c.i
	}
	if from < len(text) {
		out = append(out, text[from:])
	}
	return out
}

// cutter reads a shell's words as far as it takes to know where statements end.
type cutter struct {
	s       string
	i       int
	open    []byte // what must come yet, innermost last
	command bool   // the next word is a command's first
	more    bool   // an operator wants another command, on a later line if need be
	inner   int    // how many $( … ) this is in
	heres   []here // documents that begin at the next line
}

// here is a here-document that is still to come.
type here struct {
	end     string
	tabs    bool // before the end are left out
	literal bool
}

const maxOpen = 32 // $( … ) within each other

// line reads up to the end of a line at which nothing is open, or of the $( … ) that is read; false: that is not told, or there is none.
func (c *cutter) line() bool {
	for c.i < len(c.s) {
		if c.top() == 'p' {
			if !c.pattern() {
				return false
			}
			continue
		}
		switch b := c.s[c.i]; b {
		case ' ', '\t':
			c.i++
		case '\n':
			c.i++
			c.command = true
			if !c.documents() {
				return false
			}
			if len(c.open) == 0 && !c.more {
				return true
			}
		case '#':
			c.comment()
		case ';', '&', '|':
			if !c.operator(b) {
				return false
			}
		case '\\':
			if c.next("\\\n") {
				c.i += 2
				continue
			}
			if !c.word() {
				return false
			}
		case '>', '<':
			if !c.redirection() {
				return false
			}
		case '(':
			if !c.command && c.next("()") { // behind the name of a function
				c.i += 2
				c.command, c.more = true, true
				continue
			}
			if !c.command || c.next("((") {
				return false
			}
			c.i++
			c.push(')')
		case ')':
			if !c.pop(')') {
				return false
			}
			c.i++
			if c.inner > 0 && len(c.open) == 0 {
				return len(c.heres) == 0
			}
		default:
			if !c.word() {
				return false
			}
		}
	}
	return false
}

func (c *cutter) comment() {
	n := strings.IndexByte(c.s[c.i:], '\n')
	if n < 0 {
		n = len(c.s) - c.i
	}
	c.i += n
}

func (c *cutter) top() byte {
	if n := len(c.open); n > 0 {
		return c.open[n-1]
	}
	return 0
}

// push opens something in which commands stand.
func (c *cutter) push(end byte) {
	c.open = append(c.open, end)
	c.command, c.more = true, false
}

func (c *cutter) pop(end byte) bool {
	if c.top() != end || c.more {
		return false
	}
	c.open = c.open[:len(c.open)-1]
	c.command = false
	return true
}

func (c *cutter) next(text string) bool { return strings.HasPrefix(c.s[c.i:], text) }

func (c *cutter) operator(b byte) bool {
	if c.next(";;") || c.next(";&") { // of case
		if c.top() != 'b' {
			return false
		}
		c.i += 2
		if c.i < len(c.s) && c.s[c.i] == '&' {
			c.i++
		}
		c.open[len(c.open)-1] = 'p'
		return true
	}
	if c.next("&>") {
		c.i++
		return c.redirection()
	}
	c.more = b == '|' || c.next("&&")
	c.command = true
	c.i++
	if c.i < len(c.s) && (c.s[c.i] == b || b == '|' && c.s[c.i] == '&') {
		c.i++
	}
	return true
}

func (c *cutter) redirection() bool {
	if c.next("<<") && !c.next("<<<") {
		return c.document()
	}
	for c.i < len(c.s) && (c.s[c.i] == '<' || c.s[c.i] == '>') {
		c.i++
	}
	if c.i < len(c.s) && (c.s[c.i] == '&' || c.s[c.i] == '|') {
		c.i++
	}
	if c.i < len(c.s) && c.s[c.i] == '(' {
		c.i++
		c.push(')')
		return true
	}
	if c.command { // a keyword behind it would be a word
		return false
	}
	c.blanks()
	return c.word()
}

func (c *cutter) blanks() {
	for c.i < len(c.s) && (c.s[c.i] == ' ' || c.s[c.i] == '\t') || c.next("\\\n") {
		if c.s[c.i] == '\\' {
			c.i++
		}
		c.i++
	}
}

// document notes a here-document.
func (c *cutter) document() bool {
	h := here{tabs: c.next("<<-")}
	c.i += 2
	if h.tabs {
		c.i++
	}
	c.blanks()
	from := c.i
	for c.i < len(c.s) && strings.IndexByte(ends, c.s[c.i]) < 0 {
		c.i++
	}
	h.end = c.s[from:c.i]
	if n := len(h.end); n > 2 && (h.end[0] == '\'' || h.end[0] == '"') && h.end[n-1] == h.end[0] {
		h.end, h.literal = h.end[1:n-1], true
	}
	c.heres = append(c.heres, h)
	return c.inner == 0 && !c.command && h.end != "" && !strings.ContainsAny(h.end, "\"'\\$`")
}

// documents passes over those that begin here.
func (c *cutter) documents() bool {
	for _, h := range c.heres {
		for end := false; !end; {
			n := strings.IndexByte(c.s[c.i:], '\n')
			if n < 0 {
				return false
			}
			line := c.s[c.i : c.i+n]
			c.i += n + 1
			if !h.literal && (strings.IndexByte(line, '`') >= 0 || strings.Contains(line, "$(") || strings.HasSuffix(line, `\`)) {
				return false
			}
			if h.tabs {
				line = strings.TrimLeft(line, "\t")
			}
			end = line == h.end
		}
	}
	c.heres = c.heres[:0]
	return true
}

// pattern reads one of a case, or its end.
func (c *cutter) pattern() bool {
	for c.i < len(c.s) && strings.IndexByte(" \t\n", c.s[c.i]) >= 0 {
		if c.s[c.i] == '\n' && len(c.heres) > 0 {
			return false
		}
		c.i++
	}
	if c.i < len(c.s) && c.s[c.i] == '#' {
		c.comment()
		return true
	}
	c.command, c.more = false, false
	if c.next("(") {
		c.i++
	}
	for from := c.i; ; {
		if !c.word() {
			return false
		}
		if c.s[from:c.i] == "esac" {
			return c.pop('p')
		}
		c.blanks()
		switch {
		case c.next("|"):
			c.i++
			c.blanks()
		case c.next(")"):
			c.i++
			c.open[len(c.open)-1] = 'b'
			c.command = true
			return true
		default:
			return false
		}
	}
}
