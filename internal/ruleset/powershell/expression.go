package powershell

import (
	"strconv"
	"strings"

	"weir/internal/ruleset/powershell/lex"
	"weir/internal/ruleset/script"
)

// expression reads operators and what they stand between. Only those that make texts are evaluated.
func (p *parser) expression() script.Value {
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
			v = script.Value{Text: script.Unknown, Of: either(v.Of, r.Of)}
		}
	}
}

// operator reads -name or another operator that is not arithmetic on texts, and gives it in lower case.
func (p *parser) operator() string {
	if p.peek() != '-' {
		return ""
	}
	j := p.i + 1
	for j < len(p.s) && lex.Letter(p.s[j]) {
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

func (p *parser) sum() script.Value {
	v := p.format()
	for {
		p.blanks()
		switch c := p.peek(); {
		case c == '+' && !p.at("+="):
			p.i++
			p.spread()
			v = p.join(v, p.format())
		case (c == '*' || c == '/' || c == '%') && !p.at(string(c)+"="), c == '-' && p.i+1 < len(p.s) && !lex.Letter(p.s[p.i+1]) && !p.at("-=") && !p.at("--"), p.at(".."):
			p.i++
			if c == '.' {
				p.i++
			}
			p.spread()
			r := p.format()
			v = script.Value{Text: script.Unknown, Of: either(v.Of, r.Of)}
		default:
			return v
		}
	}
}

func (p *parser) format() script.Value {
	v := p.list()
	for {
		p.blanks()
		if j := p.i + 2; !p.at("-f") && !p.at("-F") || j < len(p.s) && lex.Letter(p.s[j]) {
			return v
		}
		p.i += 2
		p.spread()
		v = p.formatted(v, p.list())
	}
}

// list reads values with commas between them.
func (p *parser) list() script.Value {
	v := p.unary()
	p.blanks()
	if p.peek() != ',' {
		return v
	}
	v = script.Value{Text: v.Text, Of: v.Of, Items: []script.Value{v}}
	for p.peek() == ',' {
		p.i++
		p.spread()
		from := p.i
		next := p.unary()
		if p.i == from {
			break
		}
		if len(v.Items) < script.MaxArgs {
			v.Items = append(v.Items, next)
		}
		v.Of = either(v.Of, next.Of)
		p.blanks()
	}
	return v
}

func (p *parser) unary() script.Value {
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
func (p *parser) deeper(read func() script.Value) (v script.Value) {
	if p.depth++; p.depth <= maxDepth {
		v = read()
	} else {
		p.i = min(p.i+1, len(p.s))
	}
	p.depth--
	return v
}

// typed reads [type], and what is cast to it.
func (p *parser) typed() script.Value {
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
		return script.Value{Text: script.Unknown}
	}
	p.i = end
	name = strings.ReplaceAll(name, "[system.", "[")
	t := script.Value{Text: strings.ReplaceAll(name, " ", ""), Type: true}
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
func (p *parser) cast(t string, v script.Value) script.Value {
	switch t {
	case "[char]":
		if n, err := strconv.ParseInt(v.Text, 0, 32); err == nil && n > 0 {
			return script.Value{Text: string(rune(n))}
		}
	case "[char[]]":
		if len(v.Items) == 0 && v.Known() {
			for _, r := range v.Text {
				v.Items = append(v.Items, script.Value{Text: string(r)})
			}
			return v
		}
		out := script.Value{Of: v.Of}
		for _, item := range v.All() {
			out.Items = append(out.Items, p.cast("[char]", item))
		}
		return out
	case "[string]":
		return p.joined(v, " ")
	case "[scriptblock]":
		p.call("create", script.Value{Text: t, Type: true}, []script.Value{v})
	case "[adsi]":
		v.Type = true
	}
	return v
}

// primary reads a value without operators.
func (p *parser) primary() script.Value {
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
			v.Items = []script.Value{v}
		}
		return v
	case c == '@' && p.at("@{"):
		return p.deeper(p.hash)
	case c == '@' && (p.at("@'") || p.at(`@"`)):
		return p.here()
	case c >= '0' && c <= '9' || c == '.':
		from := p.i
		for p.i < len(p.s) && (lex.NameByte(p.s[p.i]) || p.s[p.i] == '.' && !p.at("..")) {
			p.i++
		}
		if p.i == from {
			p.i++
		}
		return script.Value{Text: p.s[from:p.i]}
	case lex.Letter(c) || c == '\\' || c == '_':
		return p.bare()
	}
	return script.Value{Text: script.Unknown}
}

// bracket reads ( … ), with skip bytes before it; its value is that of the last statement.
func (p *parser) bracket(skip int) (v script.Value) {
	p.i += skip
	if p.depth++; p.depth <= maxDepth {
		v = p.block(')', nil)
		if p.peek() == ')' {
			p.i++
		}
	}
	p.depth--
	return v
}

// hash reads @{ name = value … } as the words that it gives when it is splatted.
func (p *parser) hash() script.Value {
	p.i += 2
	v := script.Value{Text: script.Unknown, Items: []script.Value{}}
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
			v.Items = append(v.Items, script.Value{Text: "-" + key}, value)
			v.Of = either(v.Of, value.Of)
		}
		if p.i == from {
			p.i++
		}
	}
}

func (p *parser) hashKey() string {
	if lex.Letter(p.peek()) {
		from := p.i
		for p.i < len(p.s) && lex.NameByte(p.s[p.i]) {
			p.i++
		}
		return p.s[from:p.i]
	}
	return p.unary().Text
}
