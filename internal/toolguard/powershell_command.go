package toolguard

import (
	"path"
	"strings"
)

// command reads a command with its words.
func (p *parserPowerShell) command(upstream *Command) Value {
	c := p.room.command()
	c.From = upstream
	p.out = append(p.out, c)
	start := p.i
	name := p.argument(c)
	if p.i == start {
		p.i = min(p.i+1, len(p.s)) // nothing that begins a command
	}
	if name.Block {
		c.Args = append(c.Args, name)
	}
	c.Program = name.Text
	if !name.Known() {
		c.On = name // what is run
		name.Text = lookedUp(name.Of)
	}
	if name.Text != "" && name.Known() {
		c.Name = strings.TrimLeft(p.canonical(name.Text), ".") // .name is a method
	}
	p.arguments(c)
	if c.Name == "set-alias" || c.Name == "new-alias" {
		p.named(c.Words())
	}
	return Value{Text: unknownText, Of: c}
}

// lookedUp is the name of the command that Get-Command or Get-Alias finds, if that is told.
func lookedUp(c *Command) string {
	if c == nil || c.Name != "get-command" && c.Name != "get-alias" {
		return unknownText
	}
	w := strings.ToLower(first(c.Args).Text)
	if v, ok := paramOf(c, "name"); ok {
		w = strings.ToLower(v.Text)
	}
	if strings.ContainsAny(w, "*?[") {
		for _, name := range [...]string{"iex", "invoke-expression"} {
			if ok, err := path.Match(w, name); ok && err == nil {
				return name
			}
		}
	}
	return w
}

// arguments reads words up to the end of a command.
func (p *parserPowerShell) arguments(c *Command) {
	for {
		p.blanks()
		switch b := p.peek(); {
		case p.i >= len(p.s), b == '\n', b == '\r', b == ';', b == '|', b == ')', b == '}':
			return
		case b == '&':
			p.i++ // in the background, or another command
			if p.peek() == '&' {
				p.i++
			}
			return
		case p.at("--%"):
			p.raw(c)
			return
		case p.redirects(c):
			continue
		}
		from := p.i
		v := p.argument(c)
		for p.blanks(); p.peek() == ','; p.blanks() {
			p.i++
			p.spread()
			if len(v.Items) == 0 {
				v = Value{Text: v.Text, Of: v.Of, Items: []Value{v}}
			}
			at := p.i
			next := p.argument(c)
			if p.i == at {
				break
			}
			if len(v.Items) < MaxArgs {
				v.Items = append(v.Items, next)
			}
			v.Of = either(v.Of, next.Of)
		}
		if p.i == from {
			p.i++
			continue
		}
		if strings.HasPrefix(v.Text, "@") && !v.Quoted && len(v.Text) > 1 {
			if splat, ok := p.vars[v.Text[1:]]; ok && splat.Items != nil {
				c.Args = append(c.Args, splat.Items...)
				continue
			}
		}
		if len(c.Args) < MaxArgs {
			c.Args = p.room.more(c.Args, v)
		}
	}
}

// named remembers an alias that a script makes.
func (p *parserPowerShell) named(words []string) {
	var two []string
	for _, w := range words {
		if !strings.HasPrefix(w, "-") {
			two = append(two, w)
		}
	}
	if len(two) >= 2 && len(p.own) < maxNames {
		if p.own == nil {
			p.own = map[string]string{}
		}
		p.own[strings.ToLower(two[0])] = p.canonical(two[1])
	}
}

// raw takes the rest of a line as it is, behind --%.
func (p *parserPowerShell) raw(c *Command) {
	p.i += 3
	end := strings.IndexAny(p.s[p.i:], "\r\n|")
	if end < 0 {
		end = len(p.s) - p.i
	}
	for _, w := range splitPowerShell(p.s[p.i : p.i+end]) {
		c.Args = append(c.Args, Value{Text: w})
	}
	p.i += end
}

// splitPowerShell takes a command line apart as Windows programs do: blanks separate, double quotes join.
func splitPowerShell(line string) []string {
	var out []string
	var b strings.Builder
	quoted, some := false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			quoted, some = !quoted, true
		case c == '\\' && i+1 < len(line) && line[i+1] == '"':
			i++
			b.WriteByte('"')
			some = true
		case (c == ' ' || c == '\t' || c == '\n' || c == '\r') && !quoted:
			if some {
				out = append(out, b.String())
			}
			b.Reset()
			some = false
		default:
			b.WriteByte(c)
			some = true
		}
	}
	if some {
		out = append(out, b.String())
	}
	return out
}

// redirects reads one redirection, if there is one.
func (p *parserPowerShell) redirects(c *Command) bool {
	j := p.i
	if j < len(p.s) && (p.s[j] == '*' || p.s[j] >= '1' && p.s[j] <= '6') {
		j++
	}
	if j >= len(p.s) || p.s[j] != '>' && p.s[j] != '<' || p.s[j] == '<' && j+1 < len(p.s) && p.s[j+1] == '#' {
		return false
	}
	reads := p.s[j] == '<'
	j++
	if j < len(p.s) && p.s[j] == '>' {
		j++
	}
	if j+1 < len(p.s) && p.s[j] == '&' {
		p.i = j + 2 // 2>&1
		return true
	}
	p.i = j
	p.blanks()
	own := c
	if own == nil { // of an expression's value
		own = &Command{Dialect: PowerShell}
		p.out = append(p.out, own)
	}
	v := p.argument(own)
	if !reads {
		own.Writes = append(own.Writes, v)
	}
	return true
}

// argument reads one word as commands do.
func (p *parserPowerShell) argument(c *Command) Value {
	switch b := p.peek(); {
	case b == '{':
		return p.scriptBlock(c)
	case b == '(', b == '\'', b == '"', b == '$', b == '@' && p.i+1 < len(p.s) && strings.IndexByte("({'\"", p.s[p.i+1]) >= 0:
		v := p.postfix(p.primary())
		if p.i < len(p.s) && !delimiter(p.s[p.i]) {
			v = p.join(v, p.bare())
		}
		return v
	}
	v := p.bare()
	if n := len(v.Text); n > 1 && v.Text[0] == '-' && v.Text[n-1] == ':' && p.i < len(p.s) && !delimiter(p.s[p.i]) || n > 1 && v.Text[0] == '-' && v.Text[n-1] == ':' && (p.peek() == '(' || p.peek() == '{' || p.peek() == ' ') {
		p.blanks()
		v.Text = v.Text[:n-1]
		c.Args = p.room.more(c.Args, v)
		return p.argument(c)
	}
	return v
}

func delimiter(b byte) bool { return strings.IndexByte(" \t\r\n;|&(){},\f\v", b) >= 0 }

// bare reads a word without brackets; quotes in it join, back-ticks escape.
func (p *parserPowerShell) bare() Value {
	from := p.i
	for p.i < len(p.s) && plainBytePowerShell[p.s[p.i]] {
		p.i++
	}
	if p.i >= len(p.s) || delimiter(p.s[p.i]) {
		return p.colon(p.s[from:p.i], from)
	}
	v := Value{Text: p.s[from:p.i]}
	if v.Text != "" && v.Text[0] == '-' && strings.IndexByte(v.Text, ':') > 1 {
		return p.colon(v.Text, from)
	}
	var b strings.Builder
	b.WriteString(v.Text)
	for p.i < len(p.s) && !delimiter(p.s[p.i]) {
		switch c := p.s[p.i]; {
		case c == '`':
			if p.newlineAt(p.i+1) > 0 {
				v.Text = b.String()
				return v
			}
			p.i++
			if p.i < len(p.s) {
				b.WriteByte(p.s[p.i])
				p.i++
			}
		case c == '\'' || c == '"':
			q := p.text()
			b.WriteString(q.Text)
			v.Quoted = true
			v.Of = either(v.Of, q.Of)
		case c == '$' && (p.i+1 >= len(p.s) || !psNameByte(p.s[p.i+1]) && strings.IndexByte("{($?^", p.s[p.i+1]) < 0):
			b.WriteByte('$')
			p.i++
		case c == '$':
			q := p.dollar()
			b.WriteString(q.Text)
			v.Of = either(v.Of, q.Of)
		case c == '>' || c == '<':
			if b.Len() > 0 {
				v.Text = p.bounded(b.String())
				return v
			}
			return v
		case c == ':' && b.Len() > 1 && !v.Quoted && b.String()[0] == '-':
			p.i++
			b.WriteByte(':')
			v.Text = b.String()
			return v
		default:
			b.WriteByte(c)
			p.i++
		}
	}
	v.Text = p.bounded(b.String())
	return v
}

// colon ends a parameter at its colon, so that its value is a word of its own.
func (p *parserPowerShell) colon(text string, from int) Value {
	if len(text) > 2 && text[0] == '-' && psLetter(text[1]) {
		if k := strings.IndexByte(text, ':'); k > 0 {
			p.i = from + k + 1
			text = text[:k+1]
		}
	}
	return Value{Text: text}
}

func either(a, b *Command) *Command {
	if a != nil {
		return a
	}
	return b
}

// plainBytePowerShell are those that stand for themselves in a word.
var plainBytePowerShell = func() (t [256]bool) {
	for i := range t {
		t[i] = i > ' ' && strings.IndexByte("`'\"$><;|&(){},", byte(i)) < 0
	}
	return t
}()

// scriptBlock reads { … }; $_ in it is what is piped into c.
func (p *parserPowerShell) scriptBlock(c *Command) Value {
	v := Value{Text: unknownText, Block: true}
	p.i++
	if p.depth++; p.depth <= maxDepthPowerShell {
		var up *Command
		if c != nil {
			up = c.From
		}
		v.Of = p.block('}', up).Of
		if p.peek() == '}' {
			p.i++
		}
	}
	p.depth--
	return v
}
