package toolguard

import "strings"

// found is what a text has: words, and ways in which words are put together that do not stand there.
type found struct {
	hits
	signs    uint8 // bits
	glued    bool  // of variables and what is computed
	posix    bool  // as POSIX shells do
	windows  bool  // as PowerShell does
	cmd      bool  // as cmd does
	prints   bool  // as printf does
	divided  bool  // where a shell divides words is set
	bombs    int   // functions, up to maxFunctions
	computed bool  // $( … ) was seen
	coded    bool  // as \x72 or \162
	escaped  bool  // a backslash before what may be a pattern, or the name of a directory
}

// maxFunctions bounds the functions of a text that are looked at.
const maxFunctions = 32

// built says whether a text in which whole was found may have words that do not stand there.
func (f *found) built(d Dialect, whole *found) bool {
	return f.glued || f.divided || f.coded && d == POSIX || f.prints && whole.has(printsFormat) || whole.has(decodes) && d == POSIX && whole.has(opensPOSIX) ||
		f.posix && whole.mayBe(POSIX, d) || f.cmd && whole.mayBe(Cmd, d) ||
		(f.windows || f.has(makesText)) && whole.mayBe(PowerShell, d)
}

// mayBe says whether what is found in a text in one language may be a text in another, or in it.
func (f *found) mayBe(other, d Dialect) bool {
	switch other {
	case d:
		return true
	case PowerShell:
		return f.has(opensPowerShell)
	case Cmd:
		return f.has(opensCmd) || f.has(startsCmd) && f.mayBe(PowerShell, d)
	}
	return f.has(opensPOSIX)
}

// What a byte is that words do not have.
const (
	ends    uint8 = iota + 1 // it ends one
	joins                    // it goes when the text is unquoted, in one language or another: a word may go on behind it, end or begin
	special                  // and more is to be looked at
)

var kinds = func() (t [256]uint8) {
	for b := range t {
		switch {
		case wordByte(byte(b)):
		case strings.IndexByte("'\"`^\\", byte(b)) >= 0:
			t[b] = joins
		case strings.IndexByte("${%!+()/.~*?[]:=", byte(b)) >= 0:
			t[b] = special
		default:
			t[b] = ends
		}
	}
	return t
}()

// some says whether a rule may refuse a text: whether it has a word of each list of a condition, or words may be made in it.
func (p *prefilter) some(d Dialect, s string) bool {
	if d != Cmd && strings.HasPrefix(s, "#!") {
		s = s[max(0, strings.IndexByte(s, '\n')):]
	}
	f := p.scan(d, fold(s), setIn(s))
	return f.built(d, f) || p.meets(d, f)
}

// fold puts what any language may take for a sign, a blank or a letter of ASCII into its place.
func fold(s string) string {
	for i := range len(s) {
		if s[i] >= 0x80 || s[i] == 0 {
			return strings.ReplaceAll(strings.ToLower(psPlain(s)), "ſ", "s")
		}
	}
	return s
}

// setIn says of a variable whether a text may give it a value that the guard follows. It looks when it is first asked.
func setIn(s string) func(string) bool {
	var set map[string]bool
	return func(name string) bool {
		if set == nil {
			set = map[string]bool{"?": true, "home": true}
			whole := !joinedLines(s) && assigned(s, func(name string) { set[strings.ToLower(name)] = true })
			set["?!"] = !whole
			set["()"] = strings.Contains(s, "function") || brackets(s)
		}
		name = strings.ToLower(name)
		return set["?!"] || set[name] || set["()"] && (name[0] <= '9' || name == "@")
	}
}

// brackets says whether a text has () of a function.
func brackets(s string) bool {
	for at := 0; ; {
		n := strings.IndexByte(s[at:], '(')
		if n < 0 {
			return false
		}
		if at += n + 1; strings.HasPrefix(strings.TrimLeft(s[at:], " \t\\\r\n"), ")") {
			return true
		}
	}
}

// joinedLines says whether an escaped newline stands within a word, where names of variables may be.
func joinedLines(s string) bool {
	for at := 0; ; {
		n := strings.Index(s[at:], "\\\n")
		if n < 0 {
			return false
		}
		at += n + 2
		if at > 2 && strings.IndexByte(" \t\n", s[at-3]) < 0 || at < len(s) && strings.IndexByte(" \t\n", s[at]) < 0 {
			return true
		}
	}
}

// assigned calls is for each name that may be set in a text; false: that cannot be told.
func assigned(s string, is func(name string)) bool {
	for at := 0; ; at++ {
		n := strings.IndexByte(s[at:], '=')
		if n < 0 {
			break
		}
		at += n
		end := len(strings.TrimRight(s[max(0, at-maxVariable):at], " \t+-*/%?|"))
		before := s[max(0, at-maxVariable):][:end]
		if strings.HasSuffix(before, "]") {
			open := strings.LastIndexByte(before, '[')
			if open < 0 {
				return false
			}
			before = before[:open]
		}
		from := len(before)
		for from > 0 && wordByte(before[from-1]) && before[from-1] != '-' {
			from--
		}
		if from == 0 && at > maxVariable {
			return false
		}
		if from < len(before) {
			is(before[from:])
		}
	}
	for _, loop := range [...]string{"for", "select"} {
		for rest := s; ; {
			var ok bool
			if _, rest, ok = strings.Cut(rest, loop); !ok {
				break
			}
			name := strings.TrimLeft(rest[:min(len(rest), maxVariable)], " \t\\\r\n")
			n := 0
			for n < len(name) && wordByte(name[n]) && name[n] != '-' {
				n++
			}
			if n == len(name) && len(rest) > maxVariable {
				return false
			}
			if n > 0 && !strings.HasPrefix(rest, name) {
				is(name[:n])
			}
		}
	}
	return true
}

// scan finds words in a text, and in texts in other languages within it, whatever quotes them. set says whether a variable may have a
// value that the text tells.
func (p *prefilter) scan(d Dialect, s string, set func(name string) bool) *found {
	f := &found{}
	state, begun := 0, uint64(0)                           // bit n of begun: a word may begin n bytes before the last one
	begins, late, dash, slash := true, false, false, false // the next byte may begin one, or the one behind it
	closed := 0                                            // where a variable of cmd's ends
	for i := 0; i < len(s); i++ {
		b := s[i]
		if c := class[b]; c < classes {
			if (c >= 26 && c < 36 || b == '-' && (i+1 == len(s) || class[s[i+1]] >= 26)) && len(p.ends[state]) > 0 { // python3, bash-5
				p.end(f, s, i, state, begun)
			}
			begun <<= 1
			first := begins
			if first {
				begun |= 1
			}
			option := dash && (b|' ' == 'c' || b|' ' == 's') || slash && (b|' ' == 'c' || b|' ' == 'k' || b|' ' == 'r') // sh -cTEXT, cmd /cTEXT
			dash = dash || first && b == '-'
			begins, late, slash = first && b == '-' || option || late, false, false
			if state = int(p.next[state*classes+int(c)]); p.goOn[state] {
				p.begin(f, state, begun)
			}
			continue
		}
		if len(p.ends[state]) > 0 {
			p.end(f, s, i, state, begun)
		}
		if kinds[b] == joins {
			begins = true
			if b == '\'' || b == '"' {
				continue
			}
			f.posix = f.posix || b == '`' && nameNear(s, i)
			if b == '\\' && i > 0 && s[i-1] == ' ' && (i+1 == len(s) || strings.IndexByte(" &|)", s[i+1]) >= 0) { // the root of cmd's own drive
				f.sign(driveRoot)
			}
			f.coded = f.coded || b == '\\' && codes8(s[i:])
			late = true // n may be a new line
			i += newline(s, i+1)
			continue
		}
		if b == '$' && i+1 < len(s) && (s[i+1] == '\'' || s[i+1] == '"') {
			if s[i+1] == '\'' {
				text, _, _ := strings.Cut(s[i+2:], "'")
				f.posix = f.posix || strings.IndexByte(text, '\\') >= 0
			}
			continue
		}
		if kinds[b] == special {
			i, closed = p.special(f, s, i, closed, begun, set)
			if f.built(d, f) {
				return f // that is enough
			}
		}
		state, begun, begins, late, dash, slash = 0, 0, true, false, false, b == '/'
	}
	if len(p.ends[state]) > 0 {
		p.end(f, s, len(s), state, begun)
	}
	for i := range signs {
		if f.signs>>i&1 != 0 {
			f.add(&p.signs[i])
		}
	}
	return f
}

// begin notes the words that may go on.
func (p *prefilter) begin(f *found, state int, begun uint64) {
	for _, e := range p.ends[state] {
		if !e.to && (!e.from || begun>>(e.length-1)&1 != 0) {
			f.set(e.list)
		}
	}
}

// end notes the words that end before i.
func (p *prefilter) end(f *found, s string, i, state int, begun uint64) {
	switch rest := s[i:]; { // most of what stands there
	case strings.HasPrefix(rest, "://") && (strings.HasSuffix(s[:i], "http") || strings.HasSuffix(s[:i], "https")):
		return
	case strings.HasPrefix(rest, "/null") && strings.HasSuffix(s[:i], "/dev") && (len(rest) == 5 || strings.IndexByte(" \t\r\n;&|)", rest[5]) >= 0):
		return
	}
	for _, e := range p.ends[state] {
		switch {
		case !e.to, e.from && begun>>(e.length-1)&1 == 0, e.behind == '/' && goesBelow(s, i):
			continue
		case e.behind != 0 && e.behind != '/' && i < len(s) && s[i] != e.behind && kinds[s[i]] != joins:
			continue
		}
		f.set(e.list)
		if e.list == goesElsewhere && atEnd(s[i:]) || e.list == namesHome && !goesBelow(s, i) {
			f.sign(home)
		}
	}
}

// sign notes one.
func (f *found) sign(sign string) {
	for i, name := range signs {
		if name == sign {
			f.signs |= 1 << i
		}
	}
}

// atEnd says whether a command has no more words.
func atEnd(s string) bool {
	s = strings.TrimLeft(s, " \t\r'\"\\")
	return s == "" || strings.IndexByte("\n;&|)}<>#-`", s[0]) >= 0
}

// before and behind give the next byte on either side of i, past quotes, backslashes and newlines that these escape.
func before(s string, i int) byte {
	for i--; i >= 0; i-- {
		switch {
		case s[i] == '\n' && i > 0 && (s[i-1] == '\\' || i > 1 && s[i-1] == '\r' && s[i-2] == '\\'), s[i] == '\r' && i > 0 && s[i-1] == '\\', strings.IndexByte("'\"\\", s[i]) >= 0:
		default:
			return s[i]
		}
	}
	return '\n'
}

func behind(s string, i int) (byte, int) {
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i += newline(s, i+1)
		case '\'', '"':
		default:
			return s[i], i
		}
	}
	return '\n', i
}

// goesBelow says whether a name stands behind the slash at i, or what goes when the text is unquoted and that.
func goesBelow(s string, i int) bool {
	b, at := behind(s, i-1)
	if b == '}' {
		b, at = behind(s, at)
	}
	for from := at; (b == '/' || at > from && b == '.') && at < from+maxBelow; {
		if b, at = behind(s, at); wordByte(b) {
			return true
		}
	}
	return false
}

// like says whether a byte may be of a name, or of what becomes one.
func like(b byte) bool { return wordByte(b) || b == '$' || b == '}' || b == '`' }

// nameNear says whether a name stands beside i.
func nameNear(s string, i int) bool {
	b, _ := behind(s, i)
	return wordByte(before(s, i)) || wordByte(b)
}

// special looks at a byte that may mean more than the end of a word; it gives where to go on.
func (p *prefilter) special(f *found, s string, i, closed int, begun uint64, set func(name string) bool) (int, int) {
	switch b := s[i]; b {
	case '$':
		p.dollar(f, s, i, set)
	case '{':
		f.posix = f.posix || braced(s, i)
	case '+':
		f.windows = f.windows || before(s, i) != '+' && (i+1 == len(s) || s[i+1] != '+')
	case '(':
		if strings.HasPrefix(strings.TrimLeft(s[i+1:], " \t\\\r\n"), ")") {
			if f.bombs++; f.bombs > maxFunctions || twice(s, i) {
				f.sign(function)
			}
		}
	case ')':
		switch next, at := behind(s, i); {
		case like(next):
			f.glued, f.windows = f.glued || f.computed, true
		case next == ':' && f.computed:
			f.sign(driveRoot)
		case next == '/' && f.computed && !goesBelow(s, at):
			f.sign(root)
		}
	case ']':
		next, _ := behind(s, i)
		f.windows = f.windows || like(next)
	case '/':
		prev := before(s, i)
		if n := i - 2; prev == '-' && n >= 0 && (s[n] == ':' || wordByte(s[n])) { // ${name:-/}
			prev = ':'
		}
		ends := strings.HasPrefix(s[i+1:], `\n`) || strings.HasPrefix(s[i+1:], `\0`) // as printf prints it
		if !wordByte(prev) && strings.IndexByte(".)}]*?~/", prev) < 0 && (ends || !goesBelow(s, i)) {
			f.sign(root)
		}
	case '.':
		if next, at := behind(s, i); next == '.' && !wordByte(before(s, i)) && !goesBelow(s, at+1) {
			f.sign(root)
		}
	case '~':
		if !goesBelow(s, i+1) {
			f.sign(home)
		}
		if wordByte(before(s, i)) {
			f.sign(partOfName)
			f.sign(pattern)
			f.sign(home)
		}
	case '*', '?', '[':
		next, _ := behind(s, i)
		if b == '?' && i > 0 && s[i-1] == '$' || b == '[' && strings.IndexByte(" \t[\n", next) >= 0 {
			break
		}
		f.sign(pattern)
		switch {
		case b == '[' || wordByte(next) || b == '*' && next == '*' || i > 0 && (s[i-1] == ']' || s[i-1] != '\\' && wordByte(before(s, i))):
			f.sign(partOfName)
		case wordByte(before(s, i)):
			f.escaped = true
		}
	case ':':
		if prev := before(s, i) | ' '; begun&1 != 0 && prev >= 'a' && prev <= 'z' {
			if rest := strings.TrimLeft(s[i+1:], "/\\'\"^`"); rest == "" || !wordByte(rest[0]) {
				f.sign(driveRoot)
			}
		}
	case '=':
		f.divided = f.divided || strings.HasSuffix(s[:i], "IFS") && dividing(s[i+1:])
	case '%', '!':
		if i+2 < len(s) && s[i+1] == '%' && (i == 0 || s[i-1] != '%') && (i+3 >= len(s) || !wordByte(s[i+3]) && s[i+3] != b) {
			return i + 1, closed // %%f, of for
		}
		if b == '%' && i+1 < len(s) && strings.IndexByte("sbdq", s[i+1]) >= 0 {
			next, _ := behind(s, i+1)
			prev := before(s, i)
			f.prints = f.prints || like(prev) || prev == '%' || i > 1 && s[i-2] == '%' || (like(next) || next == '%') && !strings.HasPrefix(s[i+2:], `\n`)
		}
		if i >= closed && (i+1 < len(s) && s[i+1] != b || i > 0 && s[i-1] != b) {
			var glued bool
			closed, glued = gluedCmd(s, i)
			f.cmd = f.cmd || glued
		}
	}
	return i, closed
}

// dollar looks at what a variable, or what is computed, stands beside without a blank, but for quotes: both may be parts of one word.
func (p *prefilter) dollar(f *found, s string, i int, set func(name string) bool) {
	prev := before(s, i)
	if i+1 < len(s) && s[i+1] == '(' {
		f.computed = true
		f.glued = f.glued || like(prev) || prev == ')'
		return
	}
	name, end := variable(s, i)
	if name == "IFS" {
		f.glued = true
		return
	}
	if name == "" || !set(name) {
		return
	}
	if name == "?" && end > i+2 && changes(s[i+2:end-1]) {
		f.glued = true
		return
	}
	switch next, at := behind(s, end-1); {
	case like(prev), prev == ')', like(next):
		f.glued = true
	case next == ':':
		f.sign(driveRoot)
	case next == '/' && !goesBelow(s, at):
		f.sign(root)
	}
}

// changes says whether what stands in the braces of a variable makes another text of its value.
func changes(s string) bool {
	if n := strings.IndexByte(s, ']'); n >= 0 {
		s = s[n+1:]
	}
	s = strings.TrimLeftFunc(s, func(r rune) bool { return r < 0x80 && r != '-' && wordByte(byte(r)) })
	return s != "" && (strings.IndexByte("%#/,^", s[0]) >= 0 || len(s) > 1 && s[0] == ':' && s[1] >= '0' && s[1] <= '9')
}

// variable is the name of the one at i, with its scope if it has one, and its end; a name that is not plain is "?".
func variable(s string, i int) (name string, end int) {
	j := i + 1
	if j < len(s) && s[j] == '{' {
		n := strings.IndexByte(s[j:min(len(s), j+maxVariable)], '}')
		if n < 0 {
			return "?", j
		}
		name, end = s[j+1:j+n], j+n+1
		if strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 || r != '_' && (r == '-' || !wordByte(byte(r))) }) {
			name = "?"
		}
		return name, end
	}
	if j < len(s) && (s[j] == '@' || s[j] == '*') {
		return s[j : j+1], j + 1
	}
	for j < len(s) && wordByte(s[j]) && s[j] != '-' && (j == i+1 || s[i+1] > '9') {
		j++
	}
	name = s[i+1 : j]
	if name != "" && j+1 < len(s) && s[j] == ':' && wordByte(s[j+1]) {
		for name, j = "?", j+1; j < len(s) && wordByte(s[j]) && s[j] != '-'; j++ {
		}
	}
	return name, j
}

// maxBelow bounds how far a path is looked at for what it goes down to.
const maxBelow = 32

// maxVariable bounds how far the end of a variable, or of braces, is looked for.
const maxVariable = 200

// dividing says whether a value that IFS is set to divides words otherwise than at blanks and signs.
func dividing(s string) bool {
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		switch b := s[i]; {
		case b == '\'' || b == '"':
			if quote == 0 {
				quote = b
			} else if quote == b {
				quote = 0
			}
		case quote == 0 && strings.IndexByte(" \t\r\n;&|)", b) >= 0:
			return false
		case b == '\\' && i+1 < len(s) && (s[i+1] == 'n' || s[i+1] == 't'):
			i++
		case b == '$' && i+1 < len(s) && s[i+1] == '\'':
		case like(b), b == '\\':
			return true
		}
	}
	return false
}

// codes8 says whether a byte stands at the beginning of a text as printf and echo -e know it.
func codes8(s string) bool {
	return len(s) > 3 && (s[1]|' ' == 'x' && strings.IndexByte("234567", s[2]) >= 0 || (s[1] == '0' || s[1] == '1') && strings.Trim(s[2:4], "01234567") == "")
}

// newline is the length of a newline at i, or 0.
func newline(s string, i int) int {
	switch {
	case i < len(s) && s[i] == '\n':
		return 1
	case i+1 < len(s) && s[i] == '\r' && s[i+1] == '\n':
		return 2
	}
	return 0
}

// gluedCmd gives the end of the variable of cmd's that begins at i, and says whether it stands beside something else without a blank, but for quotes
// and carets: both may be parts of one name.
func gluedCmd(s string, i int) (end int, glued bool) {
	n := strings.IndexAny(s[i+1:min(len(s), i+80)], "%! \t\r\n")
	if n <= 0 || s[i+1+n] != s[i] {
		return i + 1, false // none begins here
	}
	end = i + n + 2
	from, to := i, end
	for from > 0 && (s[from-1] == '"' || s[from-1] == '^' || from > 1 && (s[from-1] == '\n' || s[from-1] == '\r') && (s[from-2] == '^' || s[from-2] == '\r')) {
		from--
	}
	for to < len(s) && (s[to] == '"' || s[to] == '^') {
		to++
	}
	part := func(b byte) bool { return wordByte(b) || b == '%' || b == '!' }
	return end, from > 0 && part(s[from-1]) || to < len(s) && (part(s[to]) || s[to] == ':')
}

// twice says whether the function that begins at i may name itself again, twice.
func twice(s string, i int) bool {
	name := functionAt(s, i)
	_, rest, once := strings.Cut(s[i:], name)
	return name == "" || once && strings.Contains(rest, name)
}

// functionAt is the name of the function whose brackets stand at i.
func functionAt(s string, i int) string {
	name := strings.TrimRight(s[max(0, i-200):i], " \t\\\r\n")
	return name[strings.LastIndexAny(name, " \t\n;&|(){}'\"")+1:]
}

// braced says whether braces at i are expanded into parts of words.
func braced(s string, i int) bool {
	listed, quoted := false, false
	for j := i + 1; j < len(s); j++ {
		if j > i+maxVariable {
			return true
		}
		switch s[j] {
		case '\n':
			if s[j-1] != '\\' {
				return false
			}
		case ' ', '\t':
			if !quoted {
				return false
			}
		case '\'', '"', '\\', '(', '`':
			quoted = true
		case ',':
			listed = true
		case '.':
			if s[j-1] == '.' {
				return true
			}
		case '}':
			if prev, next := before(s, i), byte(0); listed {
				next, _ = behind(s, j)
				return like(prev) || prev == '{' || like(next) || next == '{' || next == '/'
			}
			return false
		}
	}
	return false
}
