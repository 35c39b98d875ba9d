package classify

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/commands"
	"weir/internal/shell"
)

// loop walks a part that may run any number of times: what it assigns is not known
// when it begins.
func (j *judge) loop(n syntax.Node, walk func()) {
	if !j.Step() {
		return
	}
	j.forget(n)
	j.maybe(walk)
	j.forget(n)
}

// forget drops what is known of all that n may assign.
func (j *judge) forget(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if n == nil || !j.scan() {
			return false
		}
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil {
				j.blur(n.Name.Value, n)
			}
		case *syntax.WordIter:
			j.drop(n.Name.Value, value{})
		case *syntax.ParamExp:
			if n.Param != nil && n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
				j.drop(n.Param.Value, value{})
			}
		case *syntax.BinaryArithm:
			if n.Op >= syntax.Assgn {
				j.dropNumber(n.X)
			}
		case *syntax.UnaryArithm:
			if n.Op == syntax.Inc || n.Op == syntax.Dec {
				j.dropNumber(n.X)
			}
		case *syntax.CallExpr:
			j.forgetCall(n)
		}
		return true
	})
}

// drop sets what is known of a variable that may get a value.
func (j *judge) drop(name string, v value) {
	j.touch(name, false)
	j.Shell.Set(name, v)
}

// dropNumber does so for arithmetic, which leaves a number.
func (j *judge) dropNumber(x syntax.ArithmExpr) {
	w, ok := x.(*syntax.Word)
	switch {
	case !ok || w.Lit() == "":
	case j.Shell.Get(w.Lit()).Number():
		j.drop(w.Lit(), value{Kind: Integer})
	default:
		j.drop(w.Lit(), value{})
	}
}

// unseen is that any variable may get a value, or be removed.
func (j *judge) unseen() {
	j.any = true
	j.Shell.Forget()
}

func (j *judge) forgetCall(c *syntax.CallExpr) {
	if len(c.Args) == 0 {
		return
	}
	name := shell.Bare(c.Args[0])
	_, function := j.Shell.Funcs[name]
	switch name {
	case "cd", "pushd", "popd":
		j.Shell.Dir.Leave()
	case "shift", "set":
		j.Shell.Args, j.Shell.Known = nil, false
	case "read", "mapfile", "readarray", "printf", "getopts", "unset", "wait":
		for _, w := range c.Args[1:] {
			switch lit := shell.Bare(w); {
			case name == "read" && len(lit) > 1 && lit[0] == '-' && strings.Trim(lit[1:], "ers") == "", name == "unset" && lit == "-v":
			case lit == "" || lit[0] == '-':
				j.unseen() // it may name any variable (printf -vx)
			default:
				j.touch(lit, name == "unset")
				if j.Shell.Get(lit) != (value{}) {
					j.Shell.Set(lit, value{})
				}
			}
		}
	default:
		if function || name == "" || name == "eval" || name == "command" || name == "builtin" {
			j.unseen()
			j.Shell.Dir.Leave()
			j.Shell.Args, j.Shell.Known = nil, false
		}
	}
}

// blur is set for an assignment that may or may not have run: a number stays one.
func (j *judge) blur(name string, a *syntax.Assign) {
	v := j.Shell.Get(name)
	switch {
	case v.Array():
		j.touch(name, false)
	case v.Number() && a.Index == nil && a.Array == nil && !a.Append && a.Value != nil && shell.ArithmValue(a.Value):
		j.drop(name, value{Kind: Integer})
	case v.counts() && a.Index == nil && a.Array == nil && !a.Append && (counted(a.Value) || a.Value != nil && shell.ArithmValue(a.Value)):
		j.drop(name, value{Kind: Digits})
	default:
		j.drop(name, value{})
	}
}

// maxUnroll bounds the values for which a loop's body is judged one by one.
const maxUnroll = 8

func (j *judge) forClause(c *syntax.ForClause) {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok || c.Select || c.Braces {
		if !ok {
			loop := c.Loop.(*syntax.CStyleLoop)
			j.arithm(loop.Init)
			j.loop(c, func() {
				j.arithm(loop.Cond)
				j.stmts(c.Do)
				j.arithm(loop.Post)
			})
			return
		}
		j.grey(iter, "syntax", "this kind of loop is read in different ways by different shells")
	}
	mark := len(j.words)
	for _, w := range iter.Items {
		j.words = j.fields(j.words, w)
	}
	items := j.words[mark:]
	defer func() { j.words = j.words[:mark] }()
	name := iter.Name.Value
	if !commands.Assignable(name) {
		j.assigned(iter, name, value{})
		return
	}
	fixed := iter.InPos.IsValid() && len(items) <= maxUnroll
	v, first := value{}, true
	for _, w := range items {
		fixed = fixed && w.Fixed
		item := value{Text: w.Text}
		switch {
		case w.Split:
			item = value{}
		case w.Fixed:
			item = value{Kind: Literal, Text: w.Text}
		}
		if first {
			v, first = item, false
		} else {
			v = mergeValues(v, item)
		}
	}
	if !iter.InPos.IsValid() {
		v = value{}
	}
	if fixed && len(items) > 0 {
		// Copied, since the walk may grow the stack.
		var list [maxUnroll]string
		n := len(items)
		for i, w := range items {
			list[i] = w.Text
		}
		for _, text := range list[:n] {
			j.loop(c, func() {
				j.Shell.Set(name, value{Kind: Literal, Text: text})
				j.stmts(c.Do)
			})
		}
		return
	}
	j.loop(c, func() {
		j.Shell.Set(name, v)
		j.stmts(c.Do)
	})
}
