package classify

import (
	"maps"
	"slices"

	"weir/internal/commands"
)

// value is what is known of a variable.
type value struct {
	Kind valueKind
	Text string // the value, or what it begins with
}

// valueKind is how much is known of a value.
type valueKind uint8

const (
	Unknown valueKind = iota // begins with text, goes on in any way
	Literal                  // is text
	Integer                  // some integer
	Digits                   // digits and white space, or nothing: arithmetic reads no name in it
	Indexed                  // may be an array
	Assoc                    // an associative array
)

// MaxTracked bounds the variables, functions and parameters that are followed, since
// they are copied at each branch.
const MaxTracked = 64

// shellState is what is known of the shell that runs the text. The zero value is a
// shell of which nothing is known.
type shellState struct {
	vars     map[string]value
	Funcs    map[string]bool // declared functions; true: changes the working directory
	Args     []commands.Word // $1 …
	Known    bool            // args are all of them
	Name     commands.Word   // $0
	Dir      commands.Place
	Full     bool // there are more variables than are followed
	Function bool // inside a function's body
	Handler  bool // inside a trap, which may run at any time
	AtExit   bool // and that runs when nothing follows
}

// Clone is a copy for a subshell, or for a part that may not run.
func (s *shellState) Clone() shellState {
	c := *s
	c.vars = maps.Clone(s.vars)
	c.Funcs = maps.Clone(s.Funcs)
	c.Args = slices.Clip(s.Args)
	c.Dir.Roots = slices.Clip(s.Dir.Roots)
	return c
}

// program is the state of a new shell in the same directory.
func (s *shellState) program(args []commands.Word) shellState {
	c := shellState{Dir: s.Dir}
	if len(args) > 0 {
		c.Name, c.Args = args[0], args[1:]
	}
	c.Known = len(args) <= MaxTracked
	return c
}

// Get is what is known of a variable.
func (s *shellState) Get(name string) value {
	return s.vars[name]
}

// touch notes that a part of the text sets a variable, or removes it.
func (j *judge) touch(name string, removes bool) {
	if j.names == nil {
		j.names = make(map[string]bool)
	}
	j.names[name] = j.names[name] || removes
}

// assoc tells whether a variable is an associative array on every path: a declaration makes none of an array that is there.
func (j *judge) assoc(name string) bool {
	return j.Shell.Get(name).Kind == Assoc && !j.names[name] && !j.any
}

// Set notes what is known of a variable from now on.
func (s *shellState) Set(name string, v value) {
	if old := s.vars[name]; old.Array() && !v.Array() {
		return // an assignment sets one element
	}
	v = v.short()
	if s.vars == nil {
		if v == (value{}) {
			return
		}
		s.vars = make(map[string]value)
	}
	if _, ok := s.vars[name]; !ok && len(s.vars) >= MaxTracked {
		s.Full = true
		return // stays unknown
	}
	s.vars[name] = v
}

// Join merges what a part that may not have run has left behind into s, which is
// the state without it.
func (s *shellState) Join(other *shellState) {
	for name, v := range s.vars {
		if o := other.vars[name]; o != v {
			s.vars[name] = mergeValues(v, o)
		}
	}
	for name, o := range other.vars {
		if o.Array() && !s.vars[name].Array() {
			s.Set(name, value{Kind: Indexed})
		}
	}
	s.Full = s.Full || other.Full
	for name := range s.Funcs {
		if _, ok := other.Funcs[name]; !ok {
			delete(s.Funcs, name)
		}
	}
	if s.Known && !(other.Known && len(s.Args) == len(other.Args) && slices.Equal(s.Args, other.Args)) {
		s.Args, s.Known = nil, false
	}
	s.Dir.At = commands.Either(s.Dir.At, other.Dir.At)
	if len(other.Dir.Roots) > len(s.Dir.Roots) {
		s.Dir.Roots = other.Dir.Roots
	}
}

// maxValue bounds the bytes of a value that is followed.
const maxValue = 1024

// short forgets a long value but for its beginning, so that values cannot multiply.
func (v value) short() value {
	if len(v.Text) <= maxValue {
		return v
	}
	return value{Text: v.Text[:8]}
}

// Arg is the value of the positional parameter n, from 1 on.
func (s *shellState) Arg(n int) value {
	if !s.Known {
		return value{}
	}
	for i, a := range s.Args {
		switch {
		case a.Many():
			return value{}
		case i == n-1 && a.Fixed:
			return value{Kind: Literal, Text: a.Text}.short()
		case i == n-1:
			return value{Text: a.Text}.short()
		}
	}
	return value{Kind: Literal}
}

// mergeValues is what is known of a variable that has one of two values.
func mergeValues(a, b value) value {
	if a.Number() && b.Number() {
		return value{Kind: Integer}
	}
	switch {
	case a.Array() || b.Array():
		return value{Kind: Indexed}
	case a.counts() && b.counts():
		return value{Kind: Digits}
	case a.Kind == Integer || b.Kind == Integer || a.Kind == Digits || b.Kind == Digits:
		return value{}
	}
	n := 0
	for n < min(len(a.Text), len(b.Text)) && a.Text[n] == b.Text[n] {
		n++
	}
	return value{Text: a.Text[:n]}
}

// Forget drops what is known of all variables, but not that they are arrays.
func (s *shellState) Forget() {
	for name, v := range s.vars {
		if !v.Array() {
			delete(s.vars, name)
		}
	}
}

// Array tells whether a variable is, or may be, an array.
func (v value) Array() bool { return v.Kind == Indexed || v.Kind == Assoc }

// Number tells whether a value is surely an integer.
func (v value) Number() bool {
	return v.Kind == Integer || v.Kind == Literal && commands.IsNumber(v.Text)
}

// counts tells whether arithmetic may evaluate a value: it is a number, or what a program that counts has printed.
func (v value) counts() bool { return v.Number() || v.Kind == Digits }
