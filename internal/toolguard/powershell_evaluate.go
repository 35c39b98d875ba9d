package toolguard

import (
	"regexp"
	"strconv"
	"strings"
)

// postfix reads members, calls and indexes behind a value.
func (p *parserPowerShell) postfix(v Value) Value {
	for p.i < len(p.s) {
		switch {
		case p.at("::"):
			p.i += 2
		case p.peek() == '?' && p.at("?."):
			p.i += 2
		case p.peek() == '.' && p.i+1 < len(p.s) && (psNameByte(p.s[p.i+1]) || strings.IndexByte("$'\"(`", p.s[p.i+1]) >= 0):
			p.i++
		case p.peek() == '[':
			p.i++
			p.depth++
			index := Value{Text: unknownText}
			if p.depth <= maxDepthPowerShell {
				p.spread()
				index = p.expression()
				p.spread()
			}
			p.depth--
			if p.peek() == ']' {
				p.i++
			}
			v = p.indexed(v, index)
			continue
		default:
			return v
		}
		p.spread()
		name := p.member()
		if rest := p.s[p.i:]; len(rest) > len(invoked) && strings.EqualFold(rest[:len(invoked)], invoked) { // .Method.Invoke(…)
			p.i += len(invoked) - 1
		}
		if p.peek() != '(' {
			v = p.property(v, name)
			continue
		}
		p.i++
		args := p.callArguments()
		v = p.call(strings.ToLower(name), v, args)
	}
	return v
}

const invoked = ".invoke("

// member reads a member's name.
func (p *parserPowerShell) member() string {
	switch c := p.peek(); {
	case c == '\'' || c == '"':
		return p.text().Text
	case c == '$':
		return p.dollar().Text
	case c == '(':
		return p.bracket(1).Text
	}
	from := p.i
	for p.i < len(p.s) && (psNameByte(p.s[p.i]) || p.s[p.i] == '`') {
		p.i++
	}
	return strings.ReplaceAll(p.s[from:p.i], "`", "")
}

func (p *parserPowerShell) callArguments() []Value {
	var args []Value
	if p.depth++; p.depth <= maxDepthPowerShell {
		for {
			p.spread()
			if p.i >= len(p.s) || p.peek() == ')' || p.peek() == '}' || p.peek() == ';' {
				break
			}
			if p.peek() == ',' {
				p.i++
				continue
			}
			from := p.i
			v := p.expression()
			args = append(args, v.All()...)
			if p.i == from {
				p.i++
			}
		}
		if p.peek() == ')' {
			p.i++
		}
	}
	p.depth--
	return args
}

func (p *parserPowerShell) property(v Value, name string) Value {
	if v.Text == "[convert]" || strings.EqualFold(name, "invoke") {
		return v
	}
	out := Value{Text: unknownText, Of: v.Of}
	if v.Type { // [Ref].Assembly: what is asked of it matters
		out.Text = v.Text + "." + strings.ToLower(name)
		out.Type = true
	}
	return out
}

// call notes the call of a method, and evaluates those that make texts of literals.
func (p *parserPowerShell) call(name string, on Value, args []Value) Value {
	if !on.Type && on.Known() || on.Type && (on.Text == "[string]" || on.Text == "[char]" || on.Text == "[regex]") {
		if v, ok := p.textMethod(name, on, args); ok {
			return v
		}
	}
	c := p.room.command()
	c.Name, c.Program, c.On, c.Args = "."+name, name, on, args
	p.out = append(p.out, c)
	return Value{Text: unknownText, Of: c}
}

func (p *parserPowerShell) textMethod(name string, on Value, args []Value) (Value, bool) {
	arg := func(i int) string {
		if i < len(args) {
			return args[i].Text
		}
		return ""
	}
	made := func(s string) (Value, bool) {
		return Value{Text: p.bounded(s), Of: on.Of, Quoted: true}, true
	}
	if on.Type {
		switch {
		case name == "join" && len(args) > 1:
			return p.joined(Value{Items: args[1:]}, arg(0)), true
		case name == "concat":
			return p.joined(Value{Items: args}, ""), true
		case name == "format" && len(args) > 0:
			return p.formatted(args[0], Value{Items: args[1:]}), true
		case name == "replace" && len(args) > 2:
			return p.replaced(args[0], Value{Items: args[1:3]}), true
		}
		return Value{}, false
	}
	switch name {
	case "replace":
		if arg(0) == "" || strings.Count(on.Text, arg(0))*len(arg(1))+len(on.Text) > MaxValue {
			return Value{}, false
		}
		return made(strings.ReplaceAll(on.Text, arg(0), arg(1)))
	case "tolower", "tolowerinvariant":
		return made(strings.ToLower(on.Text))
	case "toupper", "toupperinvariant":
		return made(strings.ToUpper(on.Text))
	case "trim", "tostring", "trimend", "trimstart", "normalize":
		return made(strings.TrimSpace(on.Text))
	case "insert":
		if n, err := strconv.Atoi(arg(0)); err == nil && n >= 0 && n <= len(on.Text) {
			return made(on.Text[:n] + arg(1) + on.Text[n:])
		}
	case "substring":
		n, err := strconv.Atoi(arg(0))
		m := len(on.Text) - n
		if len(args) > 1 && err == nil {
			m, err = strconv.Atoi(arg(1))
		}
		if err == nil && n >= 0 && m >= 0 && m <= len(on.Text)-n {
			return made(on.Text[n : n+m])
		}
	case "split":
		return p.divided(on, regexp.QuoteMeta(arg(0))), true
	}
	return Value{}, false
}

// joined puts the items of a list together.
func (p *parserPowerShell) joined(v Value, between string) Value {
	if len(v.Items) == 0 {
		return v
	}
	total := 0
	for _, item := range v.Items {
		total += len(item.Text) + len(between)
	}
	if total > MaxValue || !p.spend(total) {
		return Value{Text: unknownText, Of: v.Of}
	}
	parts := make([]string, len(v.Items))
	of := v.Of
	for i, item := range v.Items {
		parts[i] = item.Text
		of = either(of, item.Of)
	}
	return Value{Text: strings.Join(parts, between), Of: of, Quoted: true}
}

// formatted is '{1}{0}' -f 'a','b'.
func (p *parserPowerShell) formatted(v, args Value) Value {
	all := args.All()
	var b strings.Builder
	of := v.Of
	for _, a := range all {
		of = either(of, a.Of)
	}
	for s := v.Text; ; {
		open := strings.IndexAny(s, "{}")
		if open < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:open])
		end := strings.IndexByte(s[open:], '}')
		n := -1
		if s[open] == '{' && end > 0 {
			digits, _, _ := strings.Cut(s[open+1:open+end], ":")
			if k, err := strconv.Atoi(strings.TrimSpace(digits)); err == nil {
				n = k
			}
		}
		switch {
		case n >= 0 && n < len(all):
			b.WriteString(all[n].Text)
			s = s[open+end+1:]
		case strings.HasPrefix(s[open:], "{{") || strings.HasPrefix(s[open:], "}}"):
			b.WriteByte(s[open])
			s = s[open+2:]
		default:
			b.WriteByte(s[open])
			s = s[open+1:]
		}
		if b.Len() > MaxValue {
			return Value{Text: unknownText, Of: of}
		}
	}
	return Value{Text: p.bounded(b.String()), Of: of, Quoted: true}
}

// replaced is 'a' -replace 'b','c', where the pattern is plain enough.
func (p *parserPowerShell) replaced(v, args Value) Value {
	all := args.All()
	pattern, with := all[0].Text, ""
	if len(all) > 1 {
		with = all[1].Text
	}
	if !v.Known() || len(v.Items) > 0 || pattern == "" || len(pattern) > 100 || len(v.Text) > 4096 || len(with) > 100 || !p.spend(len(v.Text)+len(pattern)*20) {
		return Value{Text: unknownText, Of: v.Of}
	}
	re, err := regexp.Compile("(?i)" + pattern)
	if err != nil {
		return Value{Text: unknownText, Of: v.Of}
	}
	return Value{Text: p.bounded(re.ReplaceAllString(v.Text, with)), Of: v.Of, Quoted: true}
}

// divided is 'a,b' -split ','.
func (p *parserPowerShell) divided(v Value, by string) Value {
	if !v.Known() || by == "" || len(by) > 100 || len(v.Text) > 4096 || !p.spend(len(v.Text)+len(by)*20) {
		return Value{Text: unknownText, Of: v.Of}
	}
	re, err := regexp.Compile("(?i)" + by)
	if err != nil {
		return Value{Text: unknownText, Of: v.Of}
	}
	out := Value{Of: v.Of, Items: []Value{}}
	for _, part := range re.Split(v.Text, -1) {
		out.Items = append(out.Items, Value{Text: part})
	}
	out.Text = out.Items[0].Text
	return out
}

// indexed is a character of a text, an item of a list, or several.
func (p *parserPowerShell) indexed(v, index Value) Value {
	pick := func(i Value) (Value, bool) {
		n, err := strconv.Atoi(i.Text)
		if err != nil {
			return v, false
		}
		length := len(v.Items)
		if v.Items == nil {
			length = len(v.Text)
		}
		if n < 0 {
			n += length
		}
		if n < 0 || n >= length || !v.Known() {
			return v, false
		}
		if v.Items != nil {
			return v.Items[n], true
		}
		return Value{Text: v.Text[n : n+1]}, true
	}
	if v.Type {
		return Value{Text: unknownText, Of: v.Of}
	}
	if len(index.Items) == 0 {
		if one, ok := pick(index); ok {
			return one
		}
		return Value{Text: unknownText, Of: v.Of}
	}
	out := Value{Of: v.Of}
	for _, i := range index.Items {
		one, ok := pick(i)
		if !ok || !p.spend(1) {
			return Value{Text: unknownText, Of: v.Of}
		}
		out.Items = append(out.Items, one)
	}
	out.Text = out.Items[0].Text
	return out
}
