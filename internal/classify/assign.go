package classify

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/classify/table"
)

// assigned notes that a variable of this shell gets a value.
func (j *judge) assigned(n syntax.Node, name string, v value) {
	if j.shell.handler {
		j.grey(n, "assign", "a trap that changes variables is not followed")
		return
	}
	if !assignable(name) {
		j.grey(n, "assign", "sets "+quoteName(name)+", which can change what runs")
		return
	}
	j.shell.set(name, v)
}

func quoteName(name string) string {
	if name == "" || len(name) > 40 {
		return "a variable"
	}
	return name
}

// assign walks an assignment that stays in this shell.
func (j *judge) assign(a *syntax.Assign) {
	if !j.step() {
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
	v := value{text: w.Text}
	old := j.shell.get(name)
	switch {
	case old.array():
		v = old
	case a.Index != nil:
		v = value{kind: indexed}
	case a.Append:
		v = value{}
	case a.Value != nil && arithmValue(a.Value) && !w.Fixed:
		v = value{kind: integer}
	case w.Fixed:
		v = value{kind: literal, text: w.Text}
	}
	j.assigned(a, name, v)
}

// array walks a=(…). Its subscripts are arithmetic, unless the array is associative.
func (j *judge) array(a *syntax.Assign) {
	v := value{kind: indexed}
	if j.shell.get(a.Name.Value).kind == assoc {
		v.kind = assoc
	}
	mark := len(j.words)
	for _, e := range a.Array.Elems {
		if !j.step() {
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
func (j *judge) prefix(list []*syntax.Assign, c *table.Command, name string) {
	for _, a := range list {
		if a.Name == nil || a.Index != nil || a.Array != nil || a.Append {
			j.grey(a, "env", "this kind of assignment in front of a command is not known")
			continue
		}
		w := j.single(a.Value)
		if a.Name.Value == "IFS" && name == "read" {
			continue
		}
		if c != nil && listed(c.Env, a.Name.Value) || w.Fixed && harmlessEnv(a.Name.Value, w.Text) {
			continue
		}
		j.grey(a, "env", "sets "+quoteName(a.Name.Value)+" for a command, which is not known to be harmless")
	}
}

// listed tells whether a list of names separated by spaces has name.
func listed(list, name string) bool {
	for len(list) > 0 {
		var one string
		one, list, _ = strings.Cut(list, " ")
		if one == name {
			return true
		}
	}
	return false
}

// declClause walks declare, local, export, readonly, typeset.
func (j *judge) declClause(c *syntax.DeclClause) {
	export := c.Variant.Value == "export"
	kind, prints := unknown, false
	switch c.Variant.Value {
	case "declare", "local", "typeset", "export":
	default:
		j.grey(c, "assign", "variables that cannot change are not followed")
	}
	for _, a := range c.Args {
		if !j.step() {
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
				kind = assoc
			case strings.Contains(w.Text, "a") && kind != assoc:
				kind = indexed
			}
			prints = prints || strings.ContainsAny(w.Text, "pfF")
			export = export || strings.Contains(w.Text, "x")
			continue
		}
		if prints {
			continue
		}
		j.declared(a, c.Variant.Value == "local" && j.shell.function, export, kind)
	}
	j.local(c, "changes variables of this shell only")
}

func (j *judge) declared(a *syntax.Assign, local, export bool, kind kind) {
	name := a.Name.Value
	if a.Index != nil {
		j.grey(a, "arithmetic", "a subscript can run commands")
		return
	}
	if a.Value != nil && unquoted(a.Value) {
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
		array := kind != unknown || j.shell.get(name).array() || j.shell.full
		if strings.HasPrefix(w.Text, "(") || !w.Fixed && w.Text == "" && (array || !local) {
			j.grey(a, "assign", "a value of this kind is read once more as a list, with what it expands to")
			return
		}
	}
	if export {
		old := j.shell.get(name)
		fixed, text := w.Fixed, w.Text
		if a.Naked && old.kind == literal {
			fixed, text = true, old.text
		}
		if a.Array != nil || a.Append || !fixed || !harmlessEnv(name, text) {
			j.grey(a, "env", "sets "+quoteName(name)+" for later commands, which is not known to be harmless")
		}
		return
	}
	switch {
	case kind != unknown:
		j.assigned(a, name, value{kind: kind})
		if a.Array != nil {
			j.array(a)
		}
	case a.Naked:
		j.assigned(a, name, value{})
	default:
		j.assign(a)
	}
}

// unquoted tells whether a word has an expansion outside quotes whose value is split.
func unquoted(w *syntax.Word) bool {
	for _, p := range w.Parts {
		switch p.(type) {
		case *syntax.ParamExp, *syntax.CmdSubst:
			return true
		}
	}
	return false
}
