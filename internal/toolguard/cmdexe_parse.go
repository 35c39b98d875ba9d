package toolguard

import (
	"strconv"
	"strings"

	"weir/internal/commands"
)

// cleanCmd takes out of a text what cmd does not see.
func cleanCmd(text string) string { return strings.ReplaceAll(text, "\x00", "") }

// eachCmd gives the commands of a clean text, in the order in which they stand there, a line's at a time, for as long as goOn says so.
func eachCmd(text string, goOn func([]*Command) bool) {
	p := &parserCmd{s: text, vars: map[string]string{}}
	p.budget = 4*len(text) + MaxValue
	for p.i < len(p.s) {
		p.line()
		if len(p.out) > 0 && !goOn(p.out) {
			return
		}
		p.out = p.out[:0]
	}
}

type parserCmd struct {
	s      string
	i      int
	out    []*Command
	vars   map[string]string
	budget int
	room   []wordCmd // for the words of one command
}

// wordCmd is a word with whether it was quoted, which separators and comparisons go by.
type wordCmd struct {
	text   string
	quoted bool
}

// line reads up to what ends one command, and notes it.
func (p *parserCmd) line() {
	var from *Command
	for {
		c := &Command{Dialect: Cmd, From: from}
		start := p.i
		words := p.words(c)
		c.Line = p.s[start:min(p.i, len(p.s))]
		before := len(p.out)
		p.command(c, words)
		if p.i >= len(p.s) || p.s[p.i] != '|' {
			p.i++
			return
		}
		p.i++
		if p.i < len(p.s) && p.s[p.i] == '|' {
			p.i++
			return
		}
		from = nil
		if len(p.out) > before {
			from = p.out[len(p.out)-1]
		}
	}
}

// words reads up to & | newline or a bracket.
func (p *parserCmd) words(c *Command) []wordCmd {
	out := p.room[:0]
	defer func() { p.room = out[:0] }()
	for {
		for p.i < len(p.s) && strings.IndexByte(" \t\r\f\v", p.s[p.i]) >= 0 {
			p.i++
		}
		if p.i >= len(p.s) {
			return out
		}
		switch b := p.s[p.i]; b {
		case '\n', '&', '|':
			return out
		case '(':
			if len(out) > 0 && !control(out) {
				out = append(out, wordCmd{text: "("})
			}
			p.i++
			continue
		case ')':
			p.i++
			if len(out) > 0 {
				out = append(out, wordCmd{text: ")"})
			}
			continue
		case '>', '<':
			p.redirect(c, b == '<')
			continue
		}
		w := p.word()
		if len(w.text) == 1 && w.text[0] >= '0' && w.text[0] <= '9' && !w.quoted && p.i < len(p.s) && p.s[p.i] == '>' {
			continue // 2>
		}
		if w.text == "" && !w.quoted {
			continue // a continued line
		}
		if len(out) <= MaxArgs {
			out = append(out, w)
		}
		if len(out) == 1 && strings.EqualFold(w.text, "rem") || strings.HasPrefix(w.text, "::") && len(out) == 1 {
			if n := strings.IndexByte(p.s[p.i:], '\n'); n >= 0 {
				p.i += n
			} else {
				p.i = len(p.s)
			}
			return nil
		}
	}
}

// control says whether words begin an if, for or else, whose body may stand in brackets.
func control(w []wordCmd) bool {
	return commands.Listed("if for else", strings.ToLower(strings.TrimLeft(w[0].text, "@")))
}

func (p *parserCmd) redirect(c *Command, reads bool) {
	for p.i < len(p.s) && (p.s[p.i] == '>' || p.s[p.i] == '<') {
		p.i++
	}
	if p.i < len(p.s) && p.s[p.i] == '&' {
		p.i = min(p.i+2, len(p.s))
		return
	}
	for p.i < len(p.s) && (p.s[p.i] == ' ' || p.s[p.i] == '\t') {
		p.i++
	}
	if w := p.word(); !reads && w.text != "" {
		c.Writes = append(c.Writes, Value{Text: w.text})
	}
}

// word reads one word: quotes join and go, carets escape, variables are put in.
func (p *parserCmd) word() wordCmd {
	from := p.i
	for p.i < len(p.s) && plain[p.s[p.i]] {
		p.i++
	}
	if p.i == len(p.s) || endsCmd[p.s[p.i]] {
		return wordCmd{text: p.s[from:p.i]}
	}
	var b strings.Builder
	b.WriteString(p.s[from:p.i])
	var w wordCmd
	quoted := false
	for p.i < len(p.s) {
		switch c := p.s[p.i]; {
		case c == '"':
			quoted = !quoted
			w.quoted = true
			p.i++
		case c == '\n':
			w.text = b.String()
			return w
		case c == '%' || c == '!':
			p.expand(&b, c)
		case c == '^' && !quoted:
			p.i++
			if p.i < len(p.s) && p.s[p.i] == '\r' {
				p.i++
			}
			if p.i < len(p.s) {
				if p.s[p.i] != '\n' {
					b.WriteByte(p.s[p.i])
				}
				p.i++
			}
		case !quoted && strings.IndexByte(" \t\r\f\v&|<>()", c) >= 0:
			w.text = b.String()
			return w
		default:
			b.WriteByte(c)
			p.i++
		}
	}
	w.text = b.String()
	return w
}

// endsCmd are the bytes that end a word outside quotes, plain those that stand for themselves.
var endsCmd, plain = func() (ends, plain [256]bool) {
	for i := range plain {
		ends[i] = strings.IndexByte(" \t\r\f\v\n&|<>()", byte(i)) >= 0
		plain[i] = !ends[i] && strings.IndexByte("\"%!^", byte(i)) < 0
	}
	return ends, plain
}()

// expand puts a variable's value in, as far as it is known.
func (p *parserCmd) expand(b *strings.Builder, mark byte) {
	end := -1
	for j := p.i + 1; j < len(p.s) && j-p.i < 80 && p.s[j] != '\n' && p.s[j] != ' '; j++ {
		if p.s[j] == mark {
			end = j
			break
		}
	}
	if end <= p.i+1 {
		if p.i+1 < len(p.s) && mark == '%' && (p.s[p.i+1] == '%' || p.s[p.i+1] >= '0' && p.s[p.i+1] <= '9' || p.s[p.i+1] == '~' || p.s[p.i+1] == '*') {
			b.WriteString(unknownText)
			p.i += 2
			return
		}
		b.WriteByte(mark)
		p.i++
		return
	}
	name, part, has := strings.Cut(strings.ToLower(p.s[p.i+1:end]), ":")
	value, ok := p.vars[name]
	if !ok {
		value, ok = usual[name]
	}
	if ok && has {
		value, ok = partOf(value, part)
	}
	if p.budget -= len(value); p.budget < 0 || !ok && mark == '%' {
		value = unknownText
	} else if !ok { // a cmd that is started with /v:on may know it
		value = p.s[p.i : end+1]
	}
	b.WriteString(value)
	p.i = end + 1
}

// partOf is the part ~FROM,LENGTH of a value.
func partOf(value, part string) (string, bool) {
	from, length, cut := strings.Cut(strings.TrimPrefix(part, "~"), ",")
	i, err := strconv.Atoi(from)
	if err != nil || !strings.HasPrefix(part, "~") {
		return "", false
	}
	if i < 0 {
		i = max(len(value)+i, 0)
	}
	value = value[min(i, len(value)):]
	if n, err := strconv.Atoi(length); cut && err == nil {
		if n < 0 {
			n = max(len(value)+n, 0)
		}
		value = value[:min(n, len(value))]
	}
	return value, true
}

var usual = map[string]string{
	"comspec": `C:\Windows\System32\cmd.exe`, "systemroot": `C:\Windows`, "windir": `C:\Windows`, "systemdrive": "C:", "programfiles": `C:\Program Files`,
	"programdata": `C:\ProgramData`, "public": `C:\Users\Public`, "temp": `C:\Users\user\AppData\Local\Temp`, "tmp": `C:\Users\user\AppData\Local\Temp`,
}

// command notes a command, past what stands before it.
func (p *parserCmd) command(c *Command, w []wordCmd) {
	for len(w) > 0 {
		w[0].text = strings.TrimLeft(w[0].text, "@,;=")
		if i := strings.IndexAny(w[0].text, ",;="); i > 0 && !w[0].quoted && commands.Listed("del erase rd rmdir format copy move ren rename start call for if cd chdir pushd echo", strings.ToLower(w[0].text[:i])) {
			w = separated(w)
		}
		switch name := strings.ToLower(w[0].text); name {
		case "", "(", ")", "call", "else", "do":
			w = w[1:]
			continue
		case "if":
			w = ifCondition(w[1:])
			continue
		case "for":
			i := 0
			for i < len(w) && !strings.EqualFold(w[i].text, "do") {
				i++
			}
			turns := forTurns(w[:i], w[i:])
			for _, turn := range turns[1:] {
				p.command(&Command{Dialect: Cmd, From: c.From, Line: c.Line}, turn)
			}
			w = turns[0]
			continue
		case "start":
			w = started(w[1:])
			continue
		}
		break
	}
	if len(w) == 0 {
		if len(c.Writes) > 0 {
			p.out = append(p.out, c)
		}
		return
	}
	if strings.EqualFold(w[0].text, "set") && len(w) > 1 {
		p.set(w[1:])
	}
	c.Program = w[0].text
	if name, rest, ok := glued(w[0]); ok {
		c.Program = name
		w = append([]wordCmd{{}, {text: rest}}, w[1:]...)
	}
	if !strings.Contains(c.Program, unknownText) || strings.ContainsAny(c.Program, `\/`) {
		c.Name = strings.TrimLeft(baseName(c.Program), ".") // .name is a method
	}
	if strings.Contains(c.Name, unknownText) {
		c.Name = ""
	}
	c.Args = make([]Value, 0, min(len(w), MaxArgs)-1)
	for _, a := range w[1:min(len(w), MaxArgs)] {
		c.Args = append(c.Args, Value{Text: a.text, Quoted: a.quoted})
	}
	p.out = append(p.out, c)
}

// separated are the words of a command of cmd's own, which takes these signs for blanks.
func separated(w []wordCmd) (all []wordCmd) {
	for _, a := range w {
		if a.quoted {
			all = append(all, a)
			continue
		}
		for part := range strings.FieldsFuncSeq(a.text, func(r rune) bool { return strings.ContainsRune(",;=", r) }) {
			all = append(all, wordCmd{text: part})
		}
	}
	return all
}

// maxTurns bounds the values of for that are followed.
const maxTurns = 8

// forTurns are the words of a loop's body for each of the values that stand in its head; there is one at least.
func forTurns(head, body []wordCmd) (turns [][]wordCmd) {
	in := 0
	for in < len(head) && !strings.EqualFold(head[in].text, "in") {
		in++
	}
	if in < 2 || in == len(head) {
		return [][]wordCmd{body}
	}
	name := head[in-1].text
	for _, v := range head[in+1:] {
		value := strings.Trim(v.text, "'()`")
		if value == "" || strings.ContainsAny(value, "*?") || strings.HasPrefix(v.text, "'") && value == "echo" || len(turns) == maxTurns {
			continue
		}
		turn := make([]wordCmd, len(body))
		for i, b := range body {
			b.text = strings.ReplaceAll(b.text, name, value)
			turn[i] = b
		}
		turns = append(turns, turn)
	}
	if len(turns) == 0 || len(name) < 2 {
		return [][]wordCmd{body}
	}
	return turns
}

// glued takes del/f apart.
func glued(w wordCmd) (name, rest string, ok bool) {
	i := strings.IndexByte(w.text, '/')
	if i <= 0 || w.quoted {
		return "", "", false
	}
	name = strings.ToLower(w.text[:i])
	return name, w.text[i:], commands.Listed("del erase rd rmdir cmd format copy move cipher net reg shutdown dir powershell pwsh wmic sc netsh vssadmin wbadmin schtasks taskkill robocopy certutil mshta regsvr32 msiexec diskpart", strings.TrimSuffix(name, ".exe"))
}

// ifCondition takes the condition of an if away.
func ifCondition(w []wordCmd) []wordCmd {
	for len(w) > 0 && (strings.EqualFold(w[0].text, "not") || strings.EqualFold(w[0].text, "/i")) {
		w = w[1:]
	}
	if len(w) == 0 {
		return nil
	}
	switch first := strings.ToLower(w[0].text); {
	case commands.Listed("exist defined errorlevel cmdextversion", first):
		return w[min(2, len(w)):]
	case strings.Contains(first, "==") && !strings.HasSuffix(first, "=="):
		return w[1:]
	case strings.HasSuffix(first, "=="), len(w) > 1 && strings.HasPrefix(w[1].text, "==") && len(w[1].text) > 2:
		return w[min(2, len(w)):]
	}
	return w[min(3, len(w)):] // a EQU b, a == b
}

// started takes the title and the options of start away.
func started(w []wordCmd) []wordCmd {
	if len(w) > 0 && w[0].quoted && len(w) > 1 {
		w = w[1:]
	}
	for len(w) > 0 && strings.HasPrefix(w[0].text, "/") {
		if strings.EqualFold(w[0].text, "/d") && len(w) > 1 {
			w = w[1:]
		}
		w = w[1:]
	}
	return w
}

// set remembers a literal variable.
func (p *parserCmd) set(w []wordCmd) {
	if strings.HasPrefix(w[0].text, "/") {
		return
	}
	parts := make([]string, len(w))
	for i := range w {
		parts[i] = w[i].text
	}
	name, value, ok := strings.Cut(strings.Join(parts, " "), "=")
	if p.budget -= len(value); ok && p.budget > 0 && len(value) <= MaxValue {
		p.vars[strings.ToLower(strings.TrimSpace(name))] = value
	}
}
