package toolguard

import (
	"strconv"
	"strings"
)

// expression reads operators and what they stand between. Only those that make texts are evaluated.
func (p *parserPowerShell) expression() Value {
	v := p.sum()
	for {
		p.blanks()
		op := p.operator()
		switch op {
		case "":
			return v
		case "-is", "-as", "-isnot":
			p.spread()
			p.sum()
			continue
		}
		p.spread()
		r := p.sum()
		switch op {
		case "-join":
			v = p.joined(v, r.Text)
		case "-replace", "-ireplace", "-creplace":
			v = p.replaced(v, r)
		case "-split", "-isplit", "-csplit":
			v = p.divided(v, r.Text)
		default:
			v = Value{Text: unknownText, Of: either(v.Of, r.Of)}
		}
	}
}

// operator reads -name or another operator that is not arithmetic on texts, and gives it in lower case.
func (p *parserPowerShell) operator() string {
	if p.peek() != '-' {
		return ""
	}
	j := p.i + 1
	for j < len(p.s) && psLetter(p.s[j]) {
		j++
	}
	if j == p.i+1 || j-p.i > 14 {
		return ""
	}
	op := strings.ToLower(p.s[p.i:j])
	if op == "-f" {
		return ""
	}
	p.i = j
	return op
}

func (p *parserPowerShell) sum() Value {
	v := p.format()
	for {
		p.blanks()
		switch c := p.peek(); {
		case c == '+' && !p.at("+="):
			p.i++
			p.spread()
			v = p.join(v, p.format())
		case (c == '*' || c == '/' || c == '%') && !p.at(string(c)+"="), c == '-' && p.i+1 < len(p.s) && !psLetter(p.s[p.i+1]) && !p.at("-=") && !p.at("--"), p.at(".."):
			p.i++
			if c == '.' {
				p.i++
			}
			p.spread()
			r := p.format()
			v = Value{Text: unknownText, Of: either(v.Of, r.Of)}
		default:
			return v
		}
	}
}

func (p *parserPowerShell) format() Value {
	v := p.list()
	for {
		p.blanks()
		if j := p.i + 2; !p.at("-f") && !p.at("-F") || j < len(p.s) && psLetter(p.s[j]) {
			return v
		}
		p.i += 2
		p.spread()
		v = p.formatted(v, p.list())
	}
}

// list reads values with commas between them.
func (p *parserPowerShell) list() Value {
	v := p.unary()
	p.blanks()
	if p.peek() != ',' {
		return v
	}
	v = Value{Text: v.Text, Of: v.Of, Items: []Value{v}}
	for p.peek() == ',' {
		p.i++
		p.spread()
		from := p.i
		next := p.unary()
		if p.i == from {
			break
		}
		if len(v.Items) < MaxArgs {
			v.Items = append(v.Items, next)
		}
		v.Of = either(v.Of, next.Of)
		p.blanks()
	}
	return v
}

func (p *parserPowerShell) unary() Value {
	p.blanks()
	switch c := p.peek(); {
	case c == '!' || c == ',' || c == '+' && p.i+1 < len(p.s) && p.s[p.i+1] != '=':
		p.i++
		return p.deeper(p.unary)
	case c == '-':
		op := p.operator()
		if op == "" {
			p.i++
		}
		v := p.deeper(p.unary)
		if op == "-join" {
			return p.joined(v, "")
		}
		return v
	case c == '[':
		return p.postfix(p.typed())
	case c == '{':
		return p.scriptBlock(nil)
	}
	return p.postfix(p.primary())
}

// deeper reads something that nests, unless it is too deep.
func (p *parserPowerShell) deeper(read func() Value) (v Value) {
	if p.depth++; p.depth <= maxDepthPowerShell {
		v = read()
	} else {
		p.i = min(p.i+1, len(p.s))
	}
	p.depth--
	return v
}

// typed reads [type], and what is cast to it.
func (p *parserPowerShell) typed() Value {
	end := p.i + 1
	for n := 1; end < len(p.s) && n > 0 && end-p.i < 400; end++ {
		switch p.s[end] {
		case '[':
			n++
		case ']':
			n--
		case '\n', '{', '(', ')':
			n = -1
		}
	}
	name := strings.ToLower(p.s[p.i:end])
	if !strings.HasSuffix(name, "]") { // an attribute with arguments, or no type at all
		p.i++
		return Value{Text: unknownText}
	}
	p.i = end
	name = strings.ReplaceAll(name, "[system.", "[")
	t := Value{Text: strings.ReplaceAll(name, " ", ""), Type: true}
	if p.at("::") || p.at(".") {
		return t
	}
	at := p.i
	p.blanks()
	switch c := p.peek(); {
	case c == '$' || c == '\'' || c == '"' || c == '(' || c == '@' || c == '[' || c >= '0' && c <= '9' || c == '{':
		v := p.deeper(p.unary)
		return p.cast(t.Text, v)
	}
	p.i = at
	return t
}

// cast turns a literal into another type; only characters make a difference.
func (p *parserPowerShell) cast(t string, v Value) Value {
	switch t {
	case "[char]":
		if n, err := strconv.ParseInt(v.Text, 0, 32); err == nil && n > 0 {
			return Value{Text: string(rune(n))}
		}
	case "[char[]]":
		if len(v.Items) == 0 && v.Known() {
			for _, r := range v.Text {
				v.Items = append(v.Items, Value{Text: string(r)})
			}
			return v
		}
		out := Value{Of: v.Of}
		for _, item := range v.All() {
			out.Items = append(out.Items, p.cast("[char]", item))
		}
		return out
	case "[string]":
		return p.joined(v, " ")
	case "[scriptblock]":
		p.call("create", Value{Text: t, Type: true}, []Value{v})
	case "[adsi]":
		v.Type = true
	}
	return v
}

// primary reads a value without operators.
func (p *parserPowerShell) primary() Value {
	switch c := p.peek(); {
	case c == '\'' || c == '"':
		return p.text()
	case c == '$':
		return p.dollar()
	case c == '(':
		return p.bracket(1)
	case c == '@' && p.at("@("):
		v := p.bracket(2)
		if len(v.Items) == 0 && v.Text != "" {
			v.Items = []Value{v}
		}
		return v
	case c == '@' && p.at("@{"):
		return p.deeper(p.hash)
	case c == '@' && (p.at("@'") || p.at(`@"`)):
		return p.here()
	case c >= '0' && c <= '9' || c == '.':
		from := p.i
		for p.i < len(p.s) && (psNameByte(p.s[p.i]) || p.s[p.i] == '.' && !p.at("..")) {
			p.i++
		}
		if p.i == from {
			p.i++
		}
		return Value{Text: p.s[from:p.i]}
	case psLetter(c) || c == '\\' || c == '_':
		return p.bare()
	}
	return Value{Text: unknownText}
}

// bracket reads ( … ), with skip bytes before it; its value is that of the last statement.
func (p *parserPowerShell) bracket(skip int) (v Value) {
	p.i += skip
	if p.depth++; p.depth <= maxDepthPowerShell {
		v = p.block(')', nil)
		if p.peek() == ')' {
			p.i++
		}
	}
	p.depth--
	return v
}

// hash reads @{ name = value … } as the words that it gives when it is splatted.
func (p *parserPowerShell) hash() Value {
	p.i += 2
	v := Value{Text: unknownText, Items: []Value{}}
	for {
		p.gap()
		if p.i >= len(p.s) || p.peek() == '}' {
			p.i = min(p.i+1, len(p.s))
			return v
		}
		from := p.i
		key := p.hashKey()
		p.blanks()
		if p.peek() == '=' {
			p.i++
			p.spread()
			value, _ := p.statement()
			v.Items = append(v.Items, Value{Text: "-" + key}, value)
			v.Of = either(v.Of, value.Of)
		}
		if p.i == from {
			p.i++
		}
	}
}

func (p *parserPowerShell) hashKey() string {
	if psLetter(p.peek()) {
		from := p.i
		for p.i < len(p.s) && psNameByte(p.s[p.i]) {
			p.i++
		}
		return p.s[from:p.i]
	}
	return p.unary().Text
}
