package toolguard

import "strings"

// ends are the bytes that end a word.
const ends = " \t\n;&|<>()"

// plainByte are those that neither end a word nor begin something in it.
var plainByte = func() (t [256]bool) {
	for i := range t {
		t[i] = strings.IndexByte(ends+"\\'\"`$", byte(i)) < 0
	}
	return t
}()

// word reads one, and what it opens or closes if it is a keyword.
func (c *cutter) word() bool {
	from, plain := c.i, true
	for c.i < len(c.s) {
		if plainByte[c.s[c.i]] {
			c.i++
			continue
		}
		if strings.IndexByte(ends, c.s[c.i]) >= 0 {
			break
		}
		switch c.s[c.i] {
		case '\\':
			c.i, plain = c.i+2, false
			if c.i > len(c.s) {
				return false
			}
			continue
		case '\'':
			n := strings.IndexByte(c.s[c.i+1:], '\'')
			if n < 0 {
				return false
			}
			c.i, plain = c.i+n+2, false
			continue
		case '"':
			plain = false
			if c.i++; !c.quoted() {
				return false
			}
			continue
		case '`':
			return false
		case '$':
			plain = false
			if !c.dollar(false) {
				return false
			}
		}
	}
	if c.i == from || len(c.heres) > 0 && strings.IndexByte(c.s[from:c.i], '\n') >= 0 {
		return false
	}
	if c.i < len(c.s) && c.s[c.i] == '(' {
		return c.parenthesis(c.s[from:c.i], plain)
	}
	was := c.command
	c.command, c.more = false, false
	if !was || !plain {
		return true
	}
	return c.keyword(c.s[from:c.i])
}

// parenthesis reads ( behind a word: of an array, or of a function, whose body follows.
func (c *cutter) parenthesis(name string, plain bool) bool {
	if n := strings.IndexByte(name, '='); plain && n > 0 && n == len(name)-1 {
		return c.array()
	}
	rest := strings.TrimLeft(c.s[c.i+1:], " \t")
	if !c.command || !plain || name == "" || rest == "" || rest[0] != ')' || strings.ContainsAny(name, "=@!?*+$") {
		return false
	}
	c.i = len(c.s) - len(rest) + 1
	c.more = true
	return true
}

func (c *cutter) array() bool {
	c.i++
	for c.command = false; c.i < len(c.s); {
		switch c.s[c.i] {
		case ' ', '\t', '\n':
			if c.s[c.i] == '\n' && len(c.heres) > 0 {
				return false
			}
			c.i++
		case '#':
			c.comment()
		case ')':
			c.i++
			c.command, c.more = false, false
			return true
		default:
			if !c.word() {
				return false
			}
		}
	}
	return false
}

func (c *cutter) keyword(w string) bool {
	switch w {
	case "if":
		c.push('i')
	case "while", "until":
		c.push('w')
	case "for", "select":
		c.push('w')
		c.command = false
	case "{":
		c.push('}')
	case "then", "elif", "else":
		if c.top() != 'i' {
			return false
		}
		c.command = true
	case "do":
		if c.top() != 'w' {
			return false
		}
		c.command = true
	case "fi":
		return c.pop('i')
	case "done":
		return c.pop('w')
	case "}":
		return c.pop('}')
	case "!", "time":
		c.command, c.more = true, true
	case "case":
		c.command = false
		c.blanks()
		if !c.word() {
			return false
		}
		for c.i < len(c.s) && strings.IndexByte(" \t\n", c.s[c.i]) >= 0 {
			c.i++
		}
		if !c.next("in") || c.i+2 >= len(c.s) || strings.IndexByte(" \t\n", c.s[c.i+2]) < 0 || len(c.heres) > 0 {
			return false
		}
		c.i += 2
		c.push('p')
	case "esac":
		return c.pop('b')
	case "[[":
		return c.test()
	case "function", "coproc", "in":
		return false
	}
	return true
}

// quoted reads up to the end of a text in double quotes.
func (c *cutter) quoted() bool {
	for c.i < len(c.s) {
		switch c.s[c.i] {
		case '"':
			c.i++
			return true
		case '\\':
			c.i += 2
		case '`':
			return false
		case '$':
			if !c.dollar(true) {
				return false
			}
		default:
			c.i++
		}
	}
	return false
}

// dollar reads $name, ${name} or $( … ).
func (c *cutter) dollar(quoted bool) bool {
	c.i++
	switch {
	case c.next("'"), c.next(`"`) && !quoted, c.next("(("), c.next("["):
		return false
	case c.next("("):
		c.i++
		return c.substitution()
	case c.next("{"):
		n := strings.IndexAny(c.s[c.i+1:], "}{'\"\\`$\n(")
		if n < 0 || c.s[c.i+1+n] != '}' {
			return false
		}
		c.i += n + 2
	}
	return true
}

// substitution reads the commands of $( … ), which may have newlines.
func (c *cutter) substitution() bool {
	if c.inner >= maxOpen {
		return false
	}
	in := cutter{s: c.s, i: c.i, open: []byte{')'}, command: true, inner: c.inner + 1}
	ok := in.line()
	c.i = in.i
	return ok
}

// test reads the rest of [[ … ]], where it is plain.
func (c *cutter) test() bool {
	n := strings.Index(c.s[c.i:], " ]]")
	if n < 0 || strings.ContainsAny(c.s[c.i:c.i+n], "()<>;&|\\`'#\n{") || strings.Count(c.s[c.i:c.i+n], `"`)%2 != 0 {
		return false
	}
	c.i += n + 3
	return true
}
