package toolguard

import (
	"slices"
	"strings"
	"sync"
)

// Rules write their words in lower case:
//
//	word     a whole one, as names of programs and options (with their dashes) are
//	word*    the beginning of one
//	*word*   a part of one
//	word:    one that a colon follows; word( one that a bracket does
//	word/    one that ends a path
//
// and these stand for what has no word:
const (
	root       = "/"  // the root, or a way up to it
	home       = "~"  // somebody's home, or a short name of Windows
	pattern    = "*"  // any file by a pattern
	partOfName = "a*" // a name of which a part is left open
	driveRoot  = ":"  // the root of a drive
	function   = "()" // a function of a shell that may run itself
)

// signs are all of those.
var signs = []string{root, home, pattern, partOfName, driveRoot, function}

// maxWordLists is how many lists of words there may be. Rules that have more share the last one.
const maxWordLists = 512

// hits are the lists of which a word was found.
type hits [maxWordLists / 64]uint64

func (h *hits) set(list uint16) { h[list/64] |= 1 << (list % 64) }

func (h *hits) has(list uint16) bool { return h[list/64]&(1<<(list%64)) != 0 }

func (h *hits) add(o *hits) {
	for i := range h {
		h[i] |= o[i]
	}
}

func (h *hits) all(lists []uint16) bool {
	return !slices.ContainsFunc(lists, func(list uint16) bool { return !h.has(list) })
}

// Lists that are no rule's.
const (
	opensPOSIX      = uint16(iota) // programs that run texts of a language
	opensPowerShell                //
	opensCmd                       //
	startsCmd                      // methods that do
	makesText                      // what PowerShell makes texts of others with
	printsFormat                   // puts texts together
	decodes                        // makes texts of others
	goesElsewhere                  // to another directory, or home
	namesHome
	ownLists
)

// prefilter knows the words without which no rule can refuse a text, and finds them in one pass, however they are quoted.
type prefilter struct {
	rules [][]uint16 // the lists of which a condition needs a word of each
	signs []hits     // the lists in which a sign stands
	next  []uint16   // states by state and class of the next byte
	ends  [][]ending // the words that end in a state
	goOn  []bool     // whether one of them may go on
}

// ending is the end of a word.
type ending struct {
	list   uint16
	length uint8
	from   bool // it begins where a word does
	to     bool // it ends where a word does
	behind byte // what must follow it, or 0
}

func newPrefilter(rules []Rule) *prefilter {
	lists := map[string][]uint16{} // by their words
	put := func(list uint16, words []string) {
		for _, w := range words {
			lists[w] = append(lists[w], list)
		}
	}
	for list, words := range [ownLists][]string{
		opensPOSIX: wordsOfNames(opens()[POSIX]), opensPowerShell: wordsOfNames(opens()[PowerShell]), opensCmd: wordsOfNames(opens()[Cmd]), startsCmd: wordsOfNames(methods[Cmd]),
		makesText:    strings.Fields("-f -join -split -isplit -csplit -replace -ireplace -creplace replace( insert( substring( split( join( concat( format( char"),
		printsFormat: {"printf"}, decodes: {"base64", "xxd", "rev"}, goesElsewhere: {"cd", "pushd"}, namesHome: {"home"},
	} {
		put(uint16(list), words)
	}
	p := &prefilter{signs: make([]hits, len(signs))}
	known, operators := map[string]uint16{}, uint16(maxWordLists)
	for i := range rules {
		if rules[i].Group == OnOperator {
			operators = min(operators, uint16(min(int(ownLists)+len(known), maxWordLists-1)))
		}
		for _, on := range rules[i].On {
			var need []uint16
			for _, words := range append(on.When.words[:len(on.When.words):len(on.When.words)], wordsOfNames(on.Names)) {
				if len(words) == 0 {
					continue
				}
				key := strings.Join(words, " ")
				list, ok := known[key]
				if !ok {
					list = uint16(min(int(ownLists)+len(known), maxWordLists-1))
					known[key] = list
					put(list, words)
				}
				need = append(need, list)
			}
			p.rules = append(p.rules, need)
		}
	}
	for i, sign := range signs {
		for _, list := range lists[sign] {
			p.signs[i].set(list)
		}
	}
	for _, values := range []map[string]string{usual, usualPowerShell} { // names of variables stand for the words that they have
		for name, value := range values {
			name = name[strings.IndexByte(name, ':')+1:]
			if value == "C:" {
				lists[name] = append(lists[name], lists[driveRoot]...)
			}
			last := runs(value[strings.LastIndexByte(value, '\\')+1:])
			for _, w := range runs(value) {
				for _, list := range lists[w] {
					if list >= operators || slices.Contains(last, w) { // the built-in rules are about a whole path's last name
						lists[name] = append(lists[name], list)
					}
				}
			}
		}
	}
	p.build(lists)
	return p
}

// maxWord is how much of a word is looked for.
const maxWord = 48

// build makes the automaton (Aho and Corasick's).
func (p *prefilter) build(lists map[string][]uint16) {
	p.next, p.ends = make([]uint16, classes), make([][]ending, 1)
	for w, in := range lists {
		if slices.Contains(signs, w) {
			continue
		}
		e := ending{from: w[0] != '*', to: w[len(w)-1] != '*'}
		w = strings.Trim(w, "*")
		if b := w[len(w)-1]; strings.IndexByte(":(/", b) >= 0 {
			e.behind, w = b, w[:len(w)-1]
		}
		if len(w) > maxWord {
			w, e.to, e.behind = w[:maxWord], false, 0
		}
		e.length = uint8(len(w))
		state := 0
		for i := range len(w) {
			at := state*classes + int(class[w[i]])
			if p.next[at] == 0 {
				p.next[at] = uint16(len(p.ends))
				p.next, p.ends = append(p.next, make([]uint16, classes)...), append(p.ends, nil)
			}
			state = int(p.next[at])
		}
		for _, e.list = range in {
			if !slices.Contains(p.ends[state], e) {
				p.ends[state] = append(p.ends[state], e)
			}
		}
	}
	shorter := make([]uint16, len(p.ends)) // the state of what is left when the beginning of a word is left out
	todo := []uint16{0}
	for n := 0; n < len(todo); n++ {
		s := int(todo[n])
		for c := range classes {
			to := &p.next[s*classes+c]
			back := uint16(0)
			if s > 0 {
				back = p.next[int(shorter[s])*classes+c]
			}
			if *to == 0 {
				*to = back
				continue
			}
			shorter[*to] = back
			p.ends[*to] = append(p.ends[*to], p.ends[back]...)
			todo = append(todo, *to)
		}
	}
	p.goOn = make([]bool, len(p.ends))
	for s, ends := range p.ends {
		p.goOn[s] = slices.ContainsFunc(ends, func(e ending) bool { return !e.to })
	}
}

// classes are those of the bytes that words have: letters in either case, digits, dash and underscore.
const classes = 26 + 10 + 2

// class gives a byte's, or classes if words do not have it.
var class = func() (t [256]uint8) {
	for b := range t {
		t[b] = uint8(min(strings.IndexByte("abcdefghijklmnopqrstuvwxyz0123456789-_", byte(b))&0xff, classes))
		if b >= 'A' && b <= 'Z' {
			t[b] = uint8(b - 'A')
		}
	}
	return t
}()

func wordByte(b byte) bool { return class[b] < classes }

// runs are the longest parts of a text that words are made of, in lower case.
func runs(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r >= 0x80 || !wordByte(byte(r)) })
}

func longest(s string) (w string) {
	for _, r := range runs(s) {
		if len(r) > len(w) {
			w = r
		}
	}
	return w
}

// eachWord makes a word of each text; none, if there is one that has none.
func eachWord(list []string, word func(string) string) (words []string) {
	for _, s := range list {
		w := word(s)
		if strings.Trim(w, "*") == "" {
			return nil
		}
		words = append(words, w)
	}
	return words
}

// wordsIn are the longest words of texts that are whole.
func wordsIn(list ...string) []string { return eachWord(list, longest) }

// anywhere are the longest words of texts before and behind which others may stand.
func anywhere(list ...string) []string {
	return eachWord(list, func(s string) string { return "*" + longest(s) + "*" })
}

// shortNames are the aliases of each command that has some.
var shortNames = sync.OnceValue(func() map[string][]string {
	all := make(map[string][]string, len(aliases))
	for short, full := range aliases {
		all[full] = append(all[full], short)
	}
	return all
})

// wordsOfNames are the words of names of commands, and of their aliases.
func wordsOfNames(names []string) []string {
	for _, name := range names {
		names = append(names[:len(names):len(names)], shortNames()[name]...)
	}
	return eachWord(names, func(name string) string {
		if all := runs(name); len(all) > 0 && !strings.ContainsAny(name, "*\x01") {
			return all[0]
		}
		return ""
	})
}

// wordsOfPaths are two lists for paths, or patterns: their first names, and their last ones. Below those that are exact nothing is meant.
func wordsOfPaths(list []string, exact bool) [][]string {
	var first, last []string
	for _, p := range list {
		if p[0] == '!' {
			continue
		}
		var words []string
		all := strings.Split(p, "/")
		for i, part := range all {
			plain, _, open := cutAny(part, "*?[")
			w := longest(plain)
			if open {
				w = strings.TrimLeft(plain, "-") + "*"
			}
			if len(w) > 1 && plain != "" && (!open || w == strings.ToLower(w) && len(runs(plain)) == 1 && runs(plain)[0] == plain) {
				words = append(words, w)
				if ends := i+1 == len(all); !open && (exact && ends || !exact && !ends && all[i+1][0] == '*') {
					words[len(words)-1] += "/"
				}
			}
		}
		if len(words) == 0 {
			return nil
		}
		first, last = append(first, words[0]), append(last, words[len(words)-1])
	}
	return [][]string{first, last}
}

func cutAny(s, chars string) (before, after string, found bool) {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i], s[i:], true
	}
	return s, "", false
}

// nthNames gives a word for the nth name of each path.
func nthNames(list []string, n int) []string {
	var words []string
	for _, p := range list {
		if all := strings.Split(strings.Trim(p, "/"), "/"); len(all) > n && longest(all[n]) != "" {
			words = append(words, longest(all[n]))
		}
	}
	return words
}

// lastNames gives a word for the last name of each path that has one, where it ends a path.
func lastNames(list []string) []string {
	var words []string
	for _, p := range list {
		if w := longest(p[strings.LastIndexByte(p, '/')+1:]); w != "" {
			words = append(words, w+"/")
		}
	}
	return words
}

// meets says whether a text may meet a condition, as far as what was found tells.
func (p *prefilter) meets(d Dialect, f *found) bool {
	has := f.hits
	if f.escaped && f.mayBe(POSIX, d) {
		has.add(&p.signs[slices.Index(signs, partOfName)])
	}
	return slices.ContainsFunc(p.rules, func(need []uint16) bool {
		return has.all(need) && (f.mayBe(POSIX, d) || !slices.ContainsFunc(need, p.ofFunctions))
	})
}

// ofFunctions says whether a list is about functions that run themselves without end, which only shells have.
func (p *prefilter) ofFunctions(list uint16) bool { return p.signs[len(signs)-1].has(list) }
