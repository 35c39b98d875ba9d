package toolguard

import "strings"

// text reads a quoted text.
func (p *parserPowerShell) text() Value {
	if p.s[p.i] == '\'' {
		return p.single()
	}
	p.i++
	return p.double(false)
}

func (p *parserPowerShell) single() Value {
	p.i++
	from := p.i
	for {
		n := strings.IndexByte(p.s[p.i:], '\'')
		if n < 0 {
			v := Value{Text: p.s[from:], Quoted: true}
			p.i = len(p.s)
			return v
		}
		p.i += n + 1
		if p.peek() != '\'' {
			return Value{Text: strings.ReplaceAll(p.s[from:p.i-1], "''", "'"), Quoted: true}
		}
		p.i++
	}
}

// double reads up to the closing quote, or for a here-string up to a line that begins with "@.
func (p *parserPowerShell) double(here bool) Value {
	v := Value{Quoted: true}
	from := p.i
	simple := true
	var b strings.Builder
	for p.i < len(p.s) {
		n := strings.IndexAny(p.s[p.i:], "\"`$")
		if n < 0 {
			break
		}
		b.WriteString(p.s[p.i : p.i+n])
		p.i += n
		switch p.s[p.i] {
		case '"':
			switch {
			case here && p.at("\"@") && p.i > 0 && p.s[p.i-1] == '\n':
				p.i += 2
				v.Text = p.bounded(b.String())
				return v
			case here:
				b.WriteByte('"')
				p.i++
			case p.at(`""`):
				b.WriteByte('"')
				p.i += 2
				simple = false
			default:
				if simple {
					v.Text = p.s[from:p.i]
				} else {
					v.Text = p.bounded(b.String())
				}
				p.i++
				return v
			}
		case '`':
			simple = false
			p.i++
			if p.i < len(p.s) {
				b.WriteByte(escape(p.s[p.i]))
				p.i++
			}
		case '$':
			simple = false
			if next := p.i + 1; next < len(p.s) && (psNameByte(p.s[next]) || p.s[next] == '{' || p.s[next] == '(') {
				q := p.dollar()
				b.WriteString(q.Text)
				v.Of = either(v.Of, q.Of)
				continue
			}
			b.WriteByte('$')
			p.i++
		}
	}
	b.WriteString(p.s[p.i:])
	p.i = len(p.s)
	v.Text = p.bounded(b.String())
	return v
}

func escape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case '0', 'a', 'b', 'f', 'v', 'e':
		return ' '
	}
	return c
}

// here reads @' … '@ and @" … "@.
func (p *parserPowerShell) here() Value {
	quote := p.s[p.i+1]
	p.i += 2
	if n := strings.IndexByte(p.s[p.i:], '\n'); n >= 0 {
		p.i += n + 1
	}
	if quote == '"' {
		return p.double(true)
	}
	n := strings.Index(p.s[p.i:], "\n'@")
	if n < 0 {
		v := Value{Text: p.s[p.i:], Quoted: true}
		p.i = len(p.s)
		return v
	}
	v := Value{Text: p.s[p.i : p.i+n], Quoted: true}
	p.i += n + 3
	return v
}

// dollar reads $name, ${name} or $( … ).
func (p *parserPowerShell) dollar() Value {
	if p.at("$(") {
		return p.bracket(2)
	}
	name, end := psVariable(p.s, p.i)
	p.i = max(end, p.i+1)
	if name == "_" || name == "psitem" || name == "input" {
		return Value{Text: unknownText, Of: p.piped}
	}
	if v, ok := p.vars[name]; ok && p.spend(len(v.Text)) {
		return v
	}
	if text, ok := usualPowerShell[name]; ok {
		return Value{Text: text}
	}
	return Value{Text: unknownText}
}

// usualPowerShell are variables that nearly always have the same value.
var usualPowerShell = map[string]string{
	"true": "$true", "false": "$false", "null": "", "pshome": `C:\Windows\System32\WindowsPowerShell\v1.0`, "shellid": "Microsoft.PowerShell",
	"env:comspec": `C:\Windows\System32\cmd.exe`, "env:windir": `C:\Windows`, "env:systemroot": `C:\Windows`, "env:systemdrive": "C:",
	"env:programfiles": `C:\Program Files`, "env:programdata": `C:\ProgramData`, "env:allusersprofile": `C:\ProgramData`, "env:public": `C:\Users\Public`,
	"env:temp": `C:\Users\user\AppData\Local\Temp`, "env:tmp": `C:\Users\user\AppData\Local\Temp`,
}

// spend takes bytes from what evaluation may make.
func (p *parserPowerShell) spend(n int) bool {
	p.budget -= n
	return p.budget > 0
}

// bounded is a text that was made, unless it is too long.
func (p *parserPowerShell) bounded(s string) string {
	if len(s) > MaxValue || !p.spend(len(s)) {
		return unknownText
	}
	return s
}

// join is what + makes of two values.
func (p *parserPowerShell) join(a, b Value) Value {
	v := Value{Of: either(a.Of, b.Of), Quoted: a.Quoted || b.Quoted, Type: a.Type && b.Text == ""}
	if a.Items != nil {
		if !p.spend(len(a.Items) + len(b.Items)) {
			return Value{Text: unknownText, Of: v.Of}
		}
		v.Text = a.Text
		v.Items = append(a.Items[:len(a.Items):len(a.Items)], b.All()...)
		return v
	}
	if len(a.Text)+len(b.Text) > MaxValue || !p.spend(len(a.Text)+len(b.Text)) {
		v.Text = unknownText
		return v
	}
	v.Text = a.Text + b.Text
	return v
}
