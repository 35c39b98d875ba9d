package commands

import "strings"

// Awk judges an awk program as mawk, gawk, busybox and the original awk would read
// it. It refuses what runs a program, names a file in a computed way, reaches
// gawk's network files, or stands where awks read a text in different ways.
// Files with literal names are listed.
func Awk(text string) Script {
	p := awkParser{scan: scan{s: text}, printing: -1, reading: -1}
	p.out.OK = true
	for p.out.OK && p.token() {
	}
	for _, call := range p.calls {
		if !p.defined[call.name] {
			p.refuseAt(call.at, "awk does not have this function")
		}
	}
	if len(p.open) > 0 {
		p.refuse("a bracket is not closed")
	}
	return p.out
}

// awkKind says what stood before, which decides whether a slash divides.
type awkKind uint8

const (
	awkStart    awkKind = iota // an expression may begin here, so a slash begins a pattern
	awkValue                   // a value ended here, so a slash divides
	awkUnsure                  // either
	awkRedirect                // a file's name must follow
	awkFile                    // a file's name was read, and a statement or bracket must end
)

type awkParser struct {
	scan
	before   awkKind
	open     []byte // brackets that are open; 'c' is the round one of a condition
	cond     bool   // the next round bracket belongs to if, while, for or switch
	printing int    // brackets that were open at the last print of this statement, or -1
	reading  int    // the same for getline
	joined   bool   // a newline goes on with the statement
	wants    bool   // an operand must follow; busybox then goes on behind a newline
	defining bool   // the next name is a new function's
	writing  bool   // what the next file name is for
	defined  map[string]bool
	calls    []awkCall
}

type awkCall struct {
	name string
	at   int
}

// token reads one token; false at the end.
func (p *awkParser) token() bool {
	p.blanks()
	if p.i >= len(p.s) {
		return false
	}
	at := p.i
	switch c := p.s[p.i]; {
	case c == '\\' && strings.HasPrefix(p.s[p.i:], "\\\n"):
		p.i += 2
		return true
	case c == '#':
		p.line()
		return true
	case c == '"':
		p.text()
		return true
	}
	if p.before == awkRedirect {
		p.refuse("the name of a file that awk opens is not literal")
		return false
	}
	c := p.s[p.i]
	if p.before == awkFile {
		after := p.s[p.i:]
		if c != ';' && c != '\n' && c != '}' && (p.writing || c != ')' &&
			c != '>' && !strings.HasPrefix(after, "!=") && !strings.HasPrefix(after, "==") &&
			!strings.HasPrefix(after, "&&") && !strings.HasPrefix(after, "||")) {
			p.refuse("the name of a file that awk opens is not literal")
			return false
		}
		p.before = awkValue
	}
	if c != '\n' {
		p.wants = false
	}
	switch {
	case c == '\n':
		p.newline()
	case c >= '0' && c <= '9' || c == '.':
		p.number()
	case isWord(c):
		for p.i < len(p.s) && isWord(p.s[p.i]) {
			p.i++
		}
		p.name(p.s[at:p.i], at)
	case c == '/':
		p.slash()
	default:
		p.operator(c)
	}
	return true
}

func (p *awkParser) text() {
	at := p.i
	for p.i++; p.i < len(p.s) && p.s[p.i] != '"'; p.i++ {
		if p.s[p.i] == '\\' {
			p.i++
		}
		if p.i < len(p.s) && p.s[p.i] == '\n' {
			break
		}
	}
	if p.peek() != '"' {
		p.refuseAt(at, "a string is not closed")
		return
	}
	p.i++
	p.joined, p.wants = false, false
	name := p.s[at+1 : p.i-1]
	switch {
	case p.before == awkFile:
		p.refuseAt(at, "the name of a file that awk opens is not literal")
	case p.before != awkRedirect:
		p.before = awkValue
		return
	case strings.HasPrefix(name, "/inet"):
		p.out.Network = true
		p.refuseAt(at, "gawk connects to the network through files below /inet")
	case name == "" || strings.Contains(name, "\\"):
		p.refuseAt(at, "the name of a file that awk opens is not literal")
	case len(p.out.Writes)+len(p.out.Reads) > maxNames:
		p.refuseAt(at, "the program is too long to be judged")
	case p.writing:
		p.out.Writes = append(p.out.Writes, name)
	default:
		p.out.Reads = append(p.out.Reads, name)
	}
	p.before = awkFile
}

func (p *awkParser) newline() {
	p.i++
	if p.wants || p.cond || p.defining {
		p.refuseAt(p.i-1, "awks differ on whether this line goes on")
	}
	if p.joined {
		return
	}
	if n := len(p.open); n > 0 && p.open[n-1] != '{' {
		p.refuseAt(p.i-1, "a line ends inside brackets")
	}
	p.statement()
}

// statement begins a new one.
func (p *awkParser) statement() {
	p.printing, p.reading, p.before = -1, -1, awkStart
}

func (p *awkParser) number() {
	at := p.i
	p.digits()
	if p.peek() == '.' {
		p.i++
		p.digits()
	}
	if p.peek() == 'e' || p.peek() == 'E' {
		p.i++
		if p.peek() == '-' || p.peek() == '+' {
			p.i++
		}
		p.digits()
	}
	if p.i == at+1 && p.s[at] == '.' || isWord(p.peek()) || p.peek() == '.' || !isDigit(p.s[p.i-1]) && p.s[p.i-1] != '.' {
		p.refuseAt(at, "awks read this number in different ways")
	}
	p.before, p.joined = awkValue, false
}

// awkBuiltins are functions of one awk or another that only compute, close or flush.
const awkBuiltins = " length substr index split sub gsub match sprintf sin cos atan2 exp log sqrt int rand srand " +
	"tolower toupper close fflush gensub strtonum systime strftime mktime and or xor lshift rshift compl asort asorti " +
	"patsplit typeof isarray mkbool "

func (p *awkParser) name(name string, at int) {
	p.before, p.joined = awkValue, false
	switch name {
	case "system":
		p.out.Network = true
		p.refuseAt(at, "system() of awk runs a program")
	case "ARGV", "SYMTAB", "FUNCTAB", "bindtextdomain", "dcgettext", "dcngettext":
		p.refuseAt(at, "a program with "+name+" can open files under computed names, or change what it is")
	case "PROCINFO":
		if !strings.HasPrefix(p.s[p.i:], `["sorted_in"]`) {
			p.refuseAt(at, "PROCINFO changes how gawk reads and runs")
		}
	case "getline":
		if p.reading >= 0 {
			p.refuseAt(at, "a getline stands inside another")
		}
		p.reading, p.before = len(p.open), awkUnsure
	case "print", "printf":
		p.printing, p.before = len(p.open), awkStart
	case "if", "while", "for", "switch":
		p.cond, p.before = true, awkUnsure
		return
	case "else", "do":
		p.statement()
		p.joined = true
	case "return", "case", "exit", "BEGIN", "END":
		p.before = awkStart
	case "in", "delete":
		p.before, p.wants = awkUnsure, true
	case "length", "default", "next", "nextfile", "break", "continue", "BEGINFILE", "ENDFILE":
		p.before = awkUnsure
	case "function", "func":
		p.defining = true
		return
	default:
		if p.defining {
			if p.defined == nil {
				p.defined = map[string]bool{}
			}
			p.defined[name] = true
		} else if p.peek() == '(' && !strings.Contains(awkBuiltins, " "+name+" ") {
			if p.calls = append(p.calls, awkCall{name, at}); len(p.calls) > maxNames {
				p.refuseAt(at, "the program is too long to be judged")
			}
		}
	}
	if p.defining && !p.defined[name] {
		p.refuseAt(at, "a function may not have this name")
	}
	p.defining, p.cond = false, false
}

// slash reads a division or a pattern.
func (p *awkParser) slash() {
	p.joined = false
	switch p.before {
	case awkValue:
		p.i++
		if p.peek() == '=' {
			p.i++
		}
		p.before, p.wants = awkStart, true
	case awkStart:
		p.i++
		end := p.pattern(false, false)
		if end < 0 || end != p.pattern(true, false) || end != p.pattern(true, true) {
			p.refuse("awks differ on where this pattern ends")
			return
		}
		p.i, p.before = end+1, awkValue
	default:
		p.refuse("this slash may divide or begin a pattern")
	}
}

func (p *awkParser) pattern(brackets, escapes bool) int {
	for i := p.i; i < len(p.s) && p.s[i] != '\n'; i++ {
		switch {
		case p.s[i] == '\\':
			if i++; i < len(p.s) && p.s[i] == '\n' {
				return -1
			}
		case p.s[i] == '/':
			return i
		case p.s[i] == '[' && brackets:
			if i = bracketEnd(p.s, i, escapes); i < 0 {
				return -1
			}
		}
	}
	return -1
}

func (p *awkParser) operator(c byte) {
	two := ""
	if p.i+1 < len(p.s) {
		two = p.s[p.i : p.i+2]
	}
	p.joined = false
	cond := p.cond
	p.cond = false
	if cond && c != '(' {
		p.refuse("a condition is missing")
	}
	switch two {
	case "||", "&&":
		p.i += 2
		p.before, p.joined = awkStart, true
		return
	case "++", "--":
		p.i += 2
		p.before, p.wants = awkUnsure, p.before != awkValue
		return
	case "::":
		p.refuse("names of another namespace may be functions that run programs")
		return
	case "<=", ">=", "==", "!=", "+=", "-=", "*=", "%=", "^=", "!~", "**":
		p.i += 2
		p.before, p.wants = awkStart, true
		return
	}
	at := p.i
	p.i++
	switch c {
	case '{', '(', '[':
		if c == '{' {
			if p.printing >= 0 {
				p.refuseAt(at, "a brace stands inside a statement")
			}
			p.statement()
			p.joined = true
		}
		if c == '(' && cond {
			c = 'c'
		}
		p.open, p.before = append(p.open, c), awkStart
	case '}', ')', ']':
		p.close(c, at)
	case ';':
		p.statement()
	case ',':
		p.before, p.joined = awkStart, true
	case '?', ':':
		p.before, p.joined = awkStart, c == '?' || c == ':'
	case '$':
		p.before, p.wants = awkUnsure, true
	case '+', '-', '*', '%', '^', '!', '~', '=':
		p.before, p.wants = awkStart, true
	case '<':
		p.before, p.wants = awkStart, true
		if p.reading == len(p.open) {
			p.before, p.writing, p.reading = awkRedirect, false, -1
		}
	case '>':
		if p.peek() == '>' {
			p.i++
		}
		p.before, p.wants = awkStart, true
		if p.printing == len(p.open) {
			p.before, p.writing = awkRedirect, true
		} else if p.i == at+2 {
			p.refuseAt(at, "output is redirected in a way that is not understood")
		}
	case '|':
		p.out.Network = true
		p.refuseAt(at, "a pipe in awk runs a program")
	default:
		p.refuseAt(at, "awk does not have this sign")
	}
}

func (p *awkParser) close(c byte, at int) {
	n := len(p.open)
	if n == 0 {
		p.refuseAt(at, "a bracket is closed that was not opened")
		return
	}
	o := p.open[n-1]
	p.open = p.open[:n-1]
	if p.reading > n-1 {
		p.reading = -1
	}
	switch {
	case c == '}' && o == '{':
		p.statement()
	case c == ')' && o == 'c':
		p.before, p.joined = awkUnsure, true
	case c == ')' && o == '(', c == ']' && o == '[':
		p.before = awkValue
	default:
		p.refuseAt(at, "brackets do not match")
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
