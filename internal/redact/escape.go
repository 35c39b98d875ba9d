package redact

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// escaping undoes one kind of escapes: decode reads the escape at the start of text, which begins with one of the signs, and appends
// what it stands for; a length of 0: it is none.
type escaping struct {
	signs  string
	decode func(out, text []byte) ([]byte, int)
}

const (
	// layers is how many escapings, one around the other, are undone: of one kind (%2567) or of several (HTML in JSON in a query).
	layers = 3
	// mostEscaped is how many bytes all these together may make of one.
	mostEscaped = 48
	// mostHTML is the length of an escape in HTML, but for the zeros before a number.
	mostHTML = 14
)

var (
	byJSON    = escaping{`\`, unJSON}
	byPercent = escaping{`%`, unPercent}
	byForm    = escaping{`%+`, unForm}
	byHTML    = escaping{`&`, unHTML}
)

func unPercent(out, text []byte) ([]byte, int) {
	if len(text) < 3 {
		return out, 0
	}
	high, low := digit[text[1]], digit[text[2]]
	if high|low > 15 {
		return out, 0
	}
	return append(out, high<<4|low), 3
}

// digit is what a hexadecimal digit stands for, and 16 for all other bytes.
var digit = func() (t [256]byte) {
	for i := range t {
		t[i] = 16
	}
	for i := range byte(10) {
		t['0'+i] = i
	}
	for i := range byte(6) {
		t['a'+i], t['A'+i] = 10+i, 10+i
	}
	return t
}()

func unForm(out, text []byte) ([]byte, int) {
	if text[0] == '+' {
		return append(out, ' '), 1
	}
	return unPercent(out, text)
}

// short is what JSON's escapes of one letter stand for.
var short = [256]byte{'"': '"', '\\': '\\', '/': '/', '\'': '\'', 'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f'}

func unJSON(out, text []byte) ([]byte, int) {
	if len(text) < 2 {
		return out, 0
	}
	if c := short[text[1]]; c != 0 {
		return append(out, c), 2
	}
	if text[1] == 'x' && len(text) > 3 && digit[text[2]]|digit[text[3]] < 16 { // as C and Python write it
		return append(out, digit[text[2]]<<4|digit[text[3]]), 4
	}
	if text[1] >= '0' && text[1] <= '7' { // octal
		n, end := 0, 1
		for ; end < min(len(text), 4) && text[end] >= '0' && text[end] <= '7'; end++ {
			n = n<<3 | int(text[end]-'0')
		}
		if n > 255 {
			return out, 0
		}
		return append(out, byte(n)), end
	}
	if len(text) > 9 && text[1] == 'U' { // as Python and C write it
		return code(out, text, 16, 2, 10, 10)
	}
	if len(text) > 3 && text[1] == 'u' && text[2] == '{' { // as JavaScript, Rust and PHP write it
		from := zeros(text, 3)
		end := from
		for end < min(len(text), from+7) && digit[text[end]] < 16 {
			end++
		}
		if end == 3 || end == len(text) || text[end] != '}' {
			return out, 0
		}
		return code(out, text, 16, from, end, end+1)
	}
	r, ok := unit(text)
	if !ok {
		return out, 0
	}
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(out, r), 6
	}
	low, ok := unit(text[6:])
	if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
		return out, 0
	}
	return utf8.AppendRune(out, r), 12
}

// zeros is where a number has its first digit that is none.
func zeros(text []byte, from int) int {
	for from < len(text) && text[from] == '0' {
		from++
	}
	return from
}

// code appends the character whose number stands from from to to.
func code(out, text []byte, base, from, to, n int) ([]byte, int) {
	c, err := strconv.ParseUint("0"+string(text[from:to]), base, 21)
	if err != nil {
		return out, 0
	}
	return utf8.AppendRune(out, rune(c)), n
}

func unit(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range text[2:6] {
		if digit[c] > 15 {
			return 0, false
		}
		r = r<<4 | rune(digit[c])
	}
	return r, true
}

func unHTML(out, text []byte) ([]byte, int) {
	if len(text) > 2 && text[1] == '#' {
		base, first := 10, 2
		if text[2]|0x20 == 'x' {
			base, first = 16, 3
		}
		from := zeros(text, first)
		end := from
		for end < min(len(text), from+8) && int(digit[text[end]]) < base {
			end++
		}
		if end == first {
			return out, 0
		}
		n := end
		if end < len(text) && text[end] == ';' { // browsers need none
			n++
		}
		return code(out, text, base, from, end, n)
	}
	text = text[:min(len(text), mostHTML)]
	end := bytes.IndexByte(text, ';')
	if end < 2 {
		return out, 0
	}
	if c := named[string(text[1:end])]; c != 0 {
		return append(out, c), end + 1
	}
	return out, 0
}

// named are the names of characters that encoders write.
var named = map[string]byte{
	"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\'', "plus": '+', "sol": '/', "equals": '=', "lowbar": '_', "UnderBar": '_', "period": '.', "colon": ':', "semi": ';', "comma": ',',
	"excl": '!', "num": '#', "dollar": '$', "percnt": '%', "lpar": '(', "rpar": ')', "ast": '*', "quest": '?', "commat": '@', "lsqb": '[', "lbrack": '[', "bsol": '\\', "rsqb": ']',
	"rbrack": ']', "Hat": '^', "grave": '`', "lcub": '{', "lbrace": '{', "verbar": '|', "vert": '|', "rcub": '}', "rbrace": '}', "Tab": '\t', "NewLine": '\n',
}

// index is where the first sign of an escape stands.
func (e escaping) index(text []byte) int {
	first := bytes.IndexByte(text, e.signs[0])
	if len(e.signs) == 1 || first == 0 {
		return first
	}
	if first > 0 {
		text = text[:first]
	}
	if other := bytes.IndexByte(text, e.signs[1]); other >= 0 {
		return other
	}
	return first
}

// decoded is a stretch of text without its escapes.
type decoded struct {
	text []byte
	runs []run
}

// run is a piece of a stretch: plain text, or one escape.
type run struct {
	at, from, to int // where it is decoded, and where it stood
	escape       bool
}

func (d *decoded) plain(text []byte, from, to int) {
	if from < to {
		d.runs = append(d.runs, run{at: len(d.text), from: from, to: to})
		d.text = append(d.text, text[from:to]...)
	}
}

// origin is where a byte of the stretch stood.
func (d *decoded) origin(i int) (from, to int) {
	n, exact := slices.BinarySearchFunc(d.runs, i, func(r run, i int) int { return r.at - i })
	if !exact {
		n--
	}
	r := d.runs[n]
	if r.escape {
		return r.from, r.to
	}
	return r.from + i - r.at, r.from + i - r.at + 1
}

// read appends what the escape at pos stands for. useful says that it may be a part of a form; what is no escape is not.
func (e escaping) read(out, text []byte, pos int, s *Scrubber) (_ []byte, n int, useful bool) {
	was := len(out)
	if out, n = e.decode(out, text[pos:]); n == 0 {
		return out, 0, false
	}
	for _, b := range out[was:] {
		if !s.member[b] && !(space[b] && e.parts(text, pos, pos+n, s)) && !nests(b, text, pos+n) {
			return out, n, false
		}
	}
	return out, n, true
}

// nests says whether a sign that was escaped may be one of an escape itself, by what follows.
func nests(sign byte, text []byte, next int) bool {
	if next >= len(text) {
		return false
	}
	c := text[next]
	switch sign {
	case '\\':
		return c == '\\' || c == 'u' || c == 'U' || c == 'x' || c >= '0' && c <= '7' || short[c] != 0 || c == '%' || c == '&'
	case '%':
		return digit[c] < 16 || c == '\\' || c == '%' || c == '&'
	case '#':
		return c >= '0' && c <= '9' || c|0x20 == 'x'
	case '&':
		return c == '#' || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '\\' || c == '%' || c == '&'
	}
	return false
}

// parts says whether what stands around an escape for white space may be of one form.
func (e escaping) parts(text []byte, from, to int, s *Scrubber) bool {
	if from == 0 || to == len(text) || !s.member[text[from-1]] {
		return false
	}
	return text[to] == e.signs[0] || s.find.follows(text[from-1], text[to])
}

// next undoes the escapes of the next stretch at or after from that may hold a form written with some: the first useful escape, room
// plain bytes before it, and what follows until no useful one is within room. done is how far the text was looked at.
func (e escaping) next(d *decoded, text []byte, from int, s *Scrubber) (done int, more bool) {
	room := s.longest
	pos := from
	for {
		sign := e.index(text[pos:])
		if sign < 0 {
			return len(text), false
		}
		pos += sign
		if e.signs == `\` && pos+1 < len(text) { // most of JSON's escapes are of characters that no form has
			if c := short[text[pos+1]]; c != 0 && !s.member[c] && !space[c] && !nests(c, text, pos+2) {
				pos += 2
				continue
			}
		}
		_, n, useful := e.read(d.text[:0], text, pos, s)
		if useful {
			break
		}
		pos += max(n, 1)
	}
	d.text, d.runs = d.text[:0], d.runs[:0]
	d.plain(text, max(0, pos-room), pos)
	for last := pos; ; {
		until := min(len(text), last+room+1)
		if pos >= until {
			return pos, true
		}
		sign := e.index(text[pos:until])
		if sign < 0 {
			d.plain(text, pos, until)
			return until, true
		}
		d.plain(text, pos, pos+sign)
		pos += sign
		at := len(d.text)
		out, n, useful := e.read(d.text, text, pos, s)
		d.text = out
		if n == 0 {
			d.plain(text, pos, pos+1)
			pos++
			continue
		}
		d.runs = append(d.runs, run{at, pos, pos + n, true})
		if pos += n; useful {
			last = pos
		}
	}
}
