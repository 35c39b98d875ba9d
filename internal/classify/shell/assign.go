package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/classify/command"
	"weir/internal/classify/lex"
	"weir/internal/classify/rules"
	"weir/internal/classify/table"
)

// assigned notes that a variable of this shell gets a value.
func (j *walker) assigned(n syntax.Node, name string, v command.Value) {
	if j.Shell.Handler {
		j.grey(n, "assign", "a trap that changes variables is not followed")
		return
	}
	if !rules.Assignable(name) {
		j.grey(n, "assign", "sets "+rules.Quote(name)+", which can change what runs")
		return
	}
	j.Shell.Set(name, v)
}

// assign walks an assignment that stays in this shell.
func (j *walker) assign(a *syntax.Assign) {
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
	// POSIX shells take a+=b/c and a[0]=b/c for the path of a program.
	if (a.Append || a.Index != nil) && a.Value != nil && strings.Contains(j.slice(a.Value), "/") {
		j.grey(a, "assign", "some shells take this for the path of a program")
	}
	if a.Array != nil {
		j.array(a)
		return
	}
	w := j.single(a.Value)
	v := command.Value{Text: w.Text}
	old := j.Shell.Get(name)
	switch {
	case old.Array():
		v = old
	case a.Index != nil:
		v = command.Value{Kind: command.Indexed}
	case a.Append:
		v = command.Value{}
	case a.Value != nil && lex.ArithmValue(a.Value) && !w.Fixed:
		v = command.Value{Kind: command.Integer}
	case w.Fixed:
		v = command.Value{Kind: command.Literal, Text: w.Text}
	}
	j.assigned(a, name, v)
}

// array walks a=(…). Its subscripts are arithmetic, unless the array is associative.
func (j *walker) array(a *syntax.Assign) {
	v := command.Value{Kind: command.Indexed}
	if j.Shell.Get(a.Name.Value).Kind == command.Assoc {
		v.Kind = command.Assoc
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
func (j *walker) prefix(list []*syntax.Assign, c *table.Command, name string) {
	for _, a := range list {
		if a.Name == nil || a.Index != nil || a.Array != nil || a.Append {
			j.grey(a, "env", "this kind of assignment in front of a command is not known")
			continue
		}
		w := j.single(a.Value)
		if a.Name.Value == "IFS" && name == "read" {
			continue
		}
		if c != nil && rules.Listed(c.Env, a.Name.Value) || w.Fixed && rules.HarmlessEnv(a.Name.Value, w.Text) {
			continue
		}
		j.grey(a, "env", "sets "+rules.Quote(a.Name.Value)+" for a command, which is not known to be harmless")
	}
}

// declClause walks declare, local, export, readonly, typeset.
func (j *walker) declClause(c *syntax.DeclClause) {
	export := c.Variant.Value == "export"
	kind, prints := command.Unknown, false
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
				kind = command.Assoc
			case strings.Contains(w.Text, "a") && kind != command.Assoc:
				kind = command.Indexed
			}
			prints = prints || strings.ContainsAny(w.Text, "pfF")
			export = export || strings.Contains(w.Text, "x")
			continue
		}
		if prints {
			continue
		}
		j.declared(a, c.Variant.Value == "local" && j.Shell.Function, export, kind)
	}
	j.local(c, "changes variables of this shell only")
}

func (j *walker) declared(a *syntax.Assign, local, export bool, kind command.Kind) {
	name := a.Name.Value
	if a.Index != nil {
		j.grey(a, "arithmetic", "a subscript can run commands")
		return
	}
	if a.Value != nil && lex.Unquoted(a.Value) {
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
	w := table.Word{}
	if a.Value != nil {
		w = j.single(a.Value)
		// declare reads the value of an array as a list once more.
		array := kind != command.Unknown || j.Shell.Get(name).Array() || j.Shell.Full
		if strings.HasPrefix(w.Text, "(") || !w.Fixed && w.Text == "" && (array || !local) {
			j.grey(a, "assign", "a value of this kind is read once more as a list, with what it expands to")
			return
		}
	}
	if export {
		old := j.Shell.Get(name)
		fixed, text := w.Fixed, w.Text
		if a.Naked && old.Kind == command.Literal {
			fixed, text = true, old.Text
		}
		if a.Array != nil || a.Append || !fixed || !rules.HarmlessEnv(name, text) {
			j.grey(a, "env", "sets "+rules.Quote(name)+" for later commands, which is not known to be harmless")
		}
		return
	}
	switch {
	case kind != command.Unknown:
		j.assigned(a, name, command.Value{Kind: kind})
		if a.Array != nil {
			j.array(a)
		}
	case a.Naked:
		j.assigned(a, name, command.Value{})
	default:
		j.assign(a)
	}
}
