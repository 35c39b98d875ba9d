package classify

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/commands"
	"weir/internal/shell"
)

// assigned notes that a variable of this shell gets a value.
func (j *judge) assigned(n syntax.Node, name string, v value) {
	if j.Shell.Handler {
		j.grey(n, "assign", "a trap that changes variables is not followed")
		return
	}
	if !commands.Assignable(name) {
		j.grey(n, "assign", "sets "+commands.Quote(name)+", which can change what runs")
		return
	}
	j.touch(name, false)
	j.Shell.Set(name, v)
}

// assign walks an assignment that stays in this shell.
func (j *judge) assign(a *syntax.Assign) {
	if !j.Step() {
		return
	}
	if a.Name == nil {
		j.grey(a, "assign", "the name of a variable is not literal")
		return
	}
	name := a.Name.Value
	if a.Index != nil {
		j.index(a, name, a.Index)
	}
	if a.Array != nil {
		j.array(a)
		return
	}
	w := j.single(a.Value)
	// POSIX shells take a+=b/c, a[0]=b/c and a[b/c]=d for the path of a program.
	if index, ok := a.Index.(*syntax.Word); !j.arrays && j.Shell.Get(name).Text != bashOnly && (a.Append || a.Index != nil) && (j.mayBePath(a.Value, w) || ok && j.mayBePath(index, j.single(index))) {
		j.grey(a, "assign", "some shells take this for the path of a program")
	}
	v := value{Text: w.Text}
	old := j.Shell.Get(name)
	switch {
	case old.Array():
		v = old
	case a.Index != nil:
		v = value{Kind: Indexed}
	case a.Append:
		v = value{}
	case a.Value != nil && shell.ArithmValue(a.Value) && !w.Fixed:
		v = value{Kind: Integer}
	case counted(a.Value):
		v = value{Kind: Digits}
	case w.Fixed:
		v = value{Kind: Literal, Text: w.Text}
	}
	j.assigned(a, name, v)
}

// bashOnly is the text of an array that local -A declares: POSIX shells end there.
const bashOnly = "local -A"

// mayBePath tells whether a word, with its value, may have a slash.
func (j *judge) mayBePath(w *syntax.Word, v commands.Word) bool {
	if w == nil || v.Fixed || strings.Contains(j.slice(w), "/") {
		return w != nil && strings.Contains(j.slice(w)+v.Text, "/")
	}
	if len(w.Parts) != 1 {
		return true
	}
	switch p := w.Parts[0].(type) {
	case *syntax.ArithmExp:
		return false
	case *syntax.ParamExp:
		number := p.Length || p.Short && (len(p.Param.Value) == 1 && strings.Contains("?#$", p.Param.Value) || j.Shell.Get(p.Param.Value).Number())
		return !number
	}
	return true
}

// array walks a=(…). Its subscripts are arithmetic, unless the array is associative.
func (j *judge) array(a *syntax.Assign) {
	j.arrays = true
	v := value{Kind: Indexed}
	if j.assoc(a.Name.Value) {
		v.Kind = Assoc
	}
	mark := len(j.words)
	for _, e := range a.Array.Elems {
		if !j.Step() {
			return
		}
		if e.Index != nil {
			j.index(a, a.Name.Value, e.Index)
		}
		if e.Value != nil {
			j.words = j.fields(j.words, e.Value)
			for _, w := range j.words[mark:] {
				if e.Index == nil && strings.HasPrefix(w.Text, "[") && strings.Contains(w.Text, "]=") {
					j.grey(e, "arithmetic", "a subscript can run commands")
				}
			}
			j.words = j.words[:mark]
		}
	}
	j.assigned(a, a.Name.Value, v)
}

// prefix judges assignments in front of a command, which only that command gets.
func (j *judge) prefix(list []*syntax.Assign, c *commands.Command, name string) {
	for _, a := range list {
		if a.Name == nil || a.Index != nil || a.Array != nil || a.Append {
			j.grey(a, "env", "this kind of assignment in front of a command is not known")
			continue
		}
		w := j.single(a.Value)
		if a.Name.Value == "IFS" && name == "read" {
			continue
		}
		if c != nil && commands.Listed(c.Env, a.Name.Value) || w.Fixed && commands.HarmlessEnv(a.Name.Value, w.Text) {
			continue
		}
		j.grey(a, "env", "sets "+commands.Quote(a.Name.Value)+" for a command, which is not known to be harmless")
	}
}

// declClause walks declare, local, export, readonly, typeset.
func (j *judge) declClause(c *syntax.DeclClause) {
	export := c.Variant.Value == "export"
	kind, prints, global := Unknown, false, false
	switch c.Variant.Value {
	case "declare", "local", "typeset", "export":
	default:
		j.grey(c, "assign", "variables that cannot change are not followed")
	}
	for _, a := range c.Args {
		if !j.Step() {
			return
		}
		if a.Naked && a.Name == nil {
			w := j.single(a.Value)
			if !w.Fixed || len(w.Text) < 2 || w.Text[0] != '-' || strings.Trim(w.Text[1:], "aAgpxfF") != "" {
				j.grey(a, "assign", "this option changes how values are read, or is not known")
				continue
			}
			switch {
			case strings.Contains(w.Text, "A"):
				kind = Assoc
			case strings.Contains(w.Text, "a") && kind != Assoc:
				kind = Indexed
			}
			prints = prints || strings.ContainsAny(w.Text, "pfF")
			export = export || strings.Contains(w.Text, "x")
			global = global || strings.Contains(w.Text, "g")
			continue
		}
		local := c.Variant.Value == "local"
		switch declare := func() { j.declared(a, local && j.Shell.Function, export, kind) }; {
		case prints && a.Naked:
		case prints:
			j.grey(a, "assign", "some shells and options set what they print")
		case local && !j.Shell.Function || global && j.Shell.Function:
			j.maybe(declare) // it fails, or sets another variable than the one that is seen here
		default:
			declare()
		}
	}
	j.local(c, "changes variables of this shell only")
}

func (j *judge) declared(a *syntax.Assign, local, export bool, kind valueKind) {
	name := a.Name.Value
	if a.Index != nil {
		j.grey(a, "arithmetic", "a subscript can run commands")
		return
	}
	if a.Value != nil && shell.Unquoted(a.Value) {
		// Older POSIX shells split it, and each piece declares a variable.
		j.grey(a, "assign", "an unquoted value is split into more names by some shells")
		return
	}
	if a.Value != nil && !export {
		if w := j.single(a.Value); strings.HasPrefix(w.Text, "(") || w.Text == "" && !w.Fixed {
			j.grey(a, "expansion", "the value of an array is expanded once more, quoted or not")
			return
		}
	}
	w := commands.Word{}
	if a.Value != nil {
		w = j.single(a.Value)
		// declare reads the value of an array as a list once more.
		array := kind != Unknown || j.Shell.Get(name).Array() || j.Shell.Full
		if strings.HasPrefix(w.Text, "(") || !w.Fixed && w.Text == "" && (array || !local) {
			j.grey(a, "assign", "a value of this kind is read once more as a list, with what it expands to")
			return
		}
	}
	if export {
		old := j.Shell.Get(name)
		fixed, text := w.Fixed, w.Text
		if a.Naked && old.Kind == Literal {
			fixed, text = true, old.Text
		}
		if a.Array != nil || !commands.Assignable(name) && (a.Append || !fixed || !commands.HarmlessEnv(name, text)) {
			j.grey(a, "env", "sets "+commands.Quote(name)+" for later commands, which is not known to be harmless")
		}
		if !a.Naked {
			j.touch(name, false)
			v := value{}
			if fixed && !a.Append {
				v = value{Kind: Literal, Text: text}
			}
			j.Shell.Set(name, v)
		}
		return
	}
	switch {
	case kind != Unknown:
		if _, set := j.names[name]; kind == Assoc && (set || j.any) && !j.assoc(name) {
			kind = Indexed
		}
		v := value{Kind: kind}
		if kind == Assoc && local {
			v.Text = bashOnly
		}
		j.assigned(a, name, v)
		if a.Array != nil {
			j.array(a)
		}
	case a.Naked:
		j.assigned(a, name, value{})
	default:
		j.assign(a)
	}
}
