package classify

import (
	"maps"
	"slices"

	"weir/internal/classify/table"
)

// value is what is known of a variable.
type value struct {
	kind kind
	text string // the value, or what it begins with
}

type kind uint8

const (
	unknown kind = iota // begins with text, goes on in any way
	literal             // is text
	integer             // some integer
	indexed             // may be an array
	assoc               // an associative array
)

// maxTracked bounds the variables, functions and parameters that are followed, since
// they are copied at each branch.
const maxTracked = 64

// state is what is known of the shell that runs the text. The zero value is a
// shell of which nothing is known.
type state struct {
	vars     map[string]value
	funcs    map[string]bool // declared functions; true: changes the working directory
	args     []table.Word    // $1 …
	known    bool            // args are all of them
	name     table.Word      // $0
	dir      place
	full     bool // there are more variables than are followed
	function bool // inside a function's body
	handler  bool // inside a trap, which may run at any time
}

// place is the working directory.
type place struct {
	lost  bool     // it may be a directory that is not for writing
	roots []string // directories that were literally entered
}

// clone is a copy for a subshell, or for a part that may not run.
func (s *state) clone() state {
	c := *s
	c.vars = maps.Clone(s.vars)
	c.funcs = maps.Clone(s.funcs)
	c.args = slices.Clip(s.args)
	c.dir.roots = slices.Clip(s.dir.roots)
	return c
}

// program is the state of a new shell in the same directory.
func (s *state) program(args []table.Word) state {
	c := state{dir: s.dir}
	if len(args) > 0 {
		c.name, c.args = args[0], args[1:]
	}
	c.known = len(args) <= maxTracked
	return c
}

func (s *state) get(name string) value {
	return s.vars[name]
}

func (s *state) set(name string, v value) {
	if old := s.vars[name]; old.array() && !v.array() {
		return // an assignment sets one element
	}
	if s.vars == nil {
		if v == (value{}) {
			return
		}
		s.vars = make(map[string]value)
	}
	if _, ok := s.vars[name]; !ok && len(s.vars) >= maxTracked {
		s.full = true
		return // stays unknown
	}
	s.vars[name] = v
}

// join merges what a part that may not have run has left behind into s, which is
// the state without it.
func (s *state) join(other *state) {
	for name, v := range s.vars {
		if o := other.vars[name]; o != v {
			s.vars[name] = merge(v, o)
		}
	}
	for name, o := range other.vars {
		if o.array() && !s.vars[name].array() {
			s.set(name, value{kind: indexed})
		}
	}
	s.full = s.full || other.full
	for name := range s.funcs {
		if _, ok := other.funcs[name]; !ok {
			delete(s.funcs, name)
		}
	}
	if s.known && !(other.known && len(s.args) == len(other.args) && slices.Equal(s.args, other.args)) {
		s.args, s.known = nil, false
	}
	s.dir.lost = s.dir.lost || other.dir.lost
	if len(other.dir.roots) > len(s.dir.roots) {
		s.dir.roots = other.dir.roots
	}
}

// merge is what is known of a variable that has one of two values.
func merge(a, b value) value {
	if a.number() && b.number() {
		return value{kind: integer}
	}
	switch {
	case a.array() || b.array():
		return value{kind: indexed}
	case a.kind == integer || b.kind == integer:
		return value{}
	}
	n := 0
	for n < min(len(a.text), len(b.text)) && a.text[n] == b.text[n] {
		n++
	}
	return value{text: a.text[:n]}
}

// forget drops what is known of all variables, but not that they are arrays.
func (s *state) forget() {
	for name, v := range s.vars {
		if !v.array() {
			delete(s.vars, name)
		}
	}
}

func (v value) array() bool { return v.kind == indexed || v.kind == assoc }

func (v value) number() bool {
	return v.kind == integer || v.kind == literal && isNumber(v.text)
}

// isNumber tells whether s is a decimal integer, which arithmetic reads as itself.
func isNumber(s string) bool {
	if len(s) > 0 && s[0] == '-' {
		s = s[1:]
	}
	return digits(s) && len(s) < 18
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
