package toolguard

import "strings"

// maxDepthPowerShell bounds nesting; brackets that are deeper are passed over, and what is in them is read as if they were not there.
const maxDepthPowerShell = 100

// maxChain bounds assignments of assignments below that.
const maxChain = 50

// eachPowerShell gives the commands of a text, in the order in which they stand there, a statement's at a time, for as long as go on says so.
func eachPowerShell(text string, goOn func([]*Command) bool) {
	p := &parserPowerShell{s: psPlain(text), vars: map[string]Value{}, names: map[string]string{}, goOn: goOn}
	p.budget = 4*len(p.s) + MaxValue
	for p.i < len(p.s) {
		p.block(0, nil)
		p.i++ // a closing bracket that nothing opened
	}
	p.flush()
}

// flush gives away what was read; when nobody wants more the text is at its end.
func (p *parserPowerShell) flush() {
	if len(p.out) > 0 && !p.goOn(p.out) {
		p.i, p.goOn = len(p.s), func([]*Command) bool { return false }
	}
	p.out = p.out[:0]
}

type parserPowerShell struct {
	room   slab
	names  map[string]string // canonical names, as they were written
	own    map[string]string // aliases that the script makes
	s      string
	i      int
	depth  int
	out    []*Command
	goOn   func([]*Command) bool
	vars   map[string]Value
	budget int // bytes that evaluation may still make
	// piped is what $_ stands for.
	piped *Command
}

// block reads statements up to a closing bracket, which stays; its value is the last statement's.
func (p *parserPowerShell) block(closer byte, upstream *Command) Value {
	if upstream != nil {
		defer func(was *Command) { p.piped = was }(p.piped)
		p.piped = upstream
	}
	var last Value
	for {
		p.gap()
		if p.i >= len(p.s) {
			return last
		}
		c := p.s[p.i]
		if c == closer && closer != 0 {
			return last
		}
		switch c {
		case '}', ')', ']':
			if closer == 0 || c != ']' {
				return last
			}
			p.i++
			continue
		case '{':
			p.scriptBlock(nil)
			continue
		}
		from := p.i
		if v, some := p.statement(); some {
			last = v
		}
		if p.depth == 0 {
			p.flush()
		}
		if p.i == from {
			p.i = min(p.i+1, len(p.s))
		}
	}
}

// gap skips blanks, newlines, comments and separators between statements.
func (p *parserPowerShell) gap() {
	for p.i < len(p.s) {
		switch c := p.s[p.i]; c {
		case ' ', '\t', '\n', '\r', ';', '\f', '\v', ',', '|':
			p.i++
		case '`':
			p.i += 2
			p.i = min(p.i, len(p.s))
		case '#':
			p.line()
		case '<':
			if !strings.HasPrefix(p.s[p.i:], "<#") {
				return
			}
			p.comment()
		case '&':
			if !strings.HasPrefix(p.s[p.i:], "&&") {
				return
			}
			p.i += 2
		default:
			return
		}
	}
}

func (p *parserPowerShell) line() {
	n := strings.IndexByte(p.s[p.i:], '\n')
	if n < 0 {
		n = len(p.s) - p.i
	}
	p.i += n
}

func (p *parserPowerShell) comment() {
	n := strings.Index(p.s[p.i+2:], "#>")
	if n < 0 {
		p.i = len(p.s)
		return
	}
	p.i += n + 4
}

// blanks skips what separates words on a line, comments and continued lines too.
func (p *parserPowerShell) blanks() {
	for p.i < len(p.s) {
		switch c := p.s[p.i]; {
		case c == ' ' || c == '\t' || c == '\f' || c == '\v':
			p.i++
		case c == '`' && p.newlineAt(p.i+1) > 0:
			p.i += 1 + p.newlineAt(p.i+1)
		case c == '<' && strings.HasPrefix(p.s[p.i:], "<#"):
			p.comment()
		case c == '#':
			p.line()
		default:
			return
		}
	}
}

// newlineAt is the length of a newline at i.
func (p *parserPowerShell) newlineAt(i int) int {
	switch {
	case strings.HasPrefix(p.s[min(i, len(p.s)):], "\r\n"):
		return 2
	case i < len(p.s) && p.s[i] == '\n':
		return 1
	}
	return 0
}

// spread skips blanks and newlines, as inside brackets.
func (p *parserPowerShell) spread() {
	for p.i < len(p.s) {
		p.blanks()
		if p.i < len(p.s) && (p.s[p.i] == '\n' || p.s[p.i] == '\r') {
			p.i++
			continue
		}
		return
	}
}

func (p *parserPowerShell) peek() byte {
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

func (p *parserPowerShell) at(prefix string) bool {
	return p.i < len(p.s) && strings.HasPrefix(p.s[p.i:], prefix)
}

// statement reads one pipeline, with what it is assigned to.
func (p *parserPowerShell) statement() (v Value, some bool) {
	if p.depth++; p.depth > maxDepthPowerShell+maxChain {
		p.depth--
		p.i = min(p.i+1, len(p.s))
		return v, false
	}
	defer func() { p.depth-- }()
	if psLetter(p.peek()) {
		if word, end := p.keyword(); end > 0 {
			switch psKeywords[word] {
			case psNamed:
				p.i = end
				p.blanks()
				for p.i < len(p.s) && !strings.ContainsRune(" \t\r\n({", rune(p.s[p.i])) {
					p.i++
				}
				return v, false
			case psBefore:
				p.i = end
				return v, false
			}
		}
	}
	return p.pipeline(), true
}

// keyword is the bare word at i in lower case and where it ends, if nothing of a command's name follows.
func (p *parserPowerShell) keyword() (string, int) {
	j := p.i
	for j < len(p.s) && psLetter(p.s[j]) {
		j++
	}
	if j-p.i > 13 || j < len(p.s) && strings.IndexByte(" \t\r\n({;}", p.s[j]) < 0 {
		return "", 0
	}
	return psLow(p.s[p.i:j]), j
}

// pipeline reads elements joined by |.
func (p *parserPowerShell) pipeline() Value {
	v := p.element(nil)
	for {
		p.blanks()
		if p.peek() != '|' || p.at("||") {
			if p.at("||") {
				p.i += 2
			}
			return v
		}
		p.i++
		p.spread()
		from := p.i
		up := v.Of
		if up == nil { // a value is piped: a command stands for it
			up = &Command{Dialect: PowerShell, Args: v.All()}
		}
		v = p.element(up)
		if p.i == from {
			return v
		}
	}
}

// element reads one part of a pipeline: a command, or an expression with what it is assigned.
func (p *parserPowerShell) element(upstream *Command) Value {
	switch c := p.peek(); {
	case c == '&' || c == '.' && p.i+1 < len(p.s) && strings.IndexByte(" \t$\"'({&", p.s[p.i+1]) >= 0:
		p.i++
		p.blanks()
		return p.command(upstream)
	case c == '$' || c == '"' || c == '\'' || c == '(' || c == '@' || c == '[' || c == '!' || c == '+' || c == '-' || c == ',' || c == '{' || c >= '0' && c <= '9' && !p.bareNumberName():
		return p.assignment(upstream)
	}
	return p.command(upstream)
}

// bareNumberName says whether a word that begins with a digit goes on with letters, as 7z.
func (p *parserPowerShell) bareNumberName() bool {
	for j := p.i; j < len(p.s); j++ {
		if c := p.s[j]; psLetter(c) {
			return !strings.HasPrefix(strings.ToLower(p.s[p.i:]), "0x")
		} else if c < '0' || c > '9' {
			return false
		}
	}
	return false
}

func (p *parserPowerShell) assignment(upstream *Command) Value {
	if upstream != nil {
		defer func(was *Command) { p.piped = was }(p.piped)
		p.piped = upstream
	}
	target := p.target()
	v := p.expression()
	p.blanks()
	op := ""
	switch {
	case p.peek() == '=' && !p.at("=="):
		op = "="
	case p.at("+="):
		op = "+="
	case p.at("-="), p.at("*="), p.at("/="), p.at("%="):
		op = p.s[p.i : p.i+2]
	case target != "" && p.i+2 < len(p.s) && strings.EqualFold(p.s[p.i:p.i+2], "in") && !psNameByte(p.s[p.i+2]): // foreach ($target in …)
		op = "in"
	}
	if op == "" {
		p.redirects(nil)
		return v
	}
	p.i += len(op)
	p.spread()
	r, _ := p.statement()
	if target == "" {
		return r
	}
	if op == "+=" {
		r = p.join(p.vars[target], r)
	} else if op != "=" && op != "in" {
		r = Value{Text: unknownText, Of: r.Of}
	}
	p.vars[target] = r
	return r
}

// target is the variable that stands at i, past casts; empty if there is none.
func (p *parserPowerShell) target() string {
	j := p.i
	for j < len(p.s) && p.s[j] == '[' {
		k := strings.IndexByte(p.s[j:min(len(p.s), j+200)], ']')
		if k < 0 {
			return ""
		}
		j += k + 1
		for j < len(p.s) && (p.s[j] == ' ' || p.s[j] == ']') {
			j++
		}
	}
	if j >= len(p.s) || p.s[j] != '$' {
		return ""
	}
	name, end := psVariable(p.s, j)
	if end < len(p.s) && strings.IndexByte(".[:", p.s[end]) >= 0 {
		return ""
	}
	return name
}

// maxNames bounds the names that are remembered.
const maxNames = 4096

// canonical is Canonical, remembered.
func (p *parserPowerShell) canonical(name string) string {
	if full, ok := p.own[strings.ToLower(name)]; ok {
		return full
	}
	c, ok := p.names[name]
	if !ok {
		if c = psCanonical(name); len(p.names) < maxNames {
			p.names[name] = c
		}
	}
	return c
}

// slab hands out commands from larger pieces: a script has thousands.
type slab struct {
	commands []Command
	values   []Value
}

// more makes room for a command's words.
func (s *slab) more(args []Value, v Value) []Value {
	if args == nil {
		if len(s.values) < 8 {
			s.values = make([]Value, 512)
		}
		args = s.values[:0:8]
		s.values = s.values[8:]
	}
	return append(args, v)
}

func (s *slab) command() *Command {
	if len(s.commands) == 0 {
		s.commands = make([]Command, 64)
	}
	c := &s.commands[0]
	s.commands = s.commands[1:]
	c.Dialect = PowerShell
	return c
}
