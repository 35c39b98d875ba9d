package classify

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/classify/table"
)

func (j *judge) stmts(list []*syntax.Stmt) {
	for _, s := range list {
		if j.over {
			return
		}
		j.stmt(s)
	}
}

func (j *judge) stmt(s *syntax.Stmt) {
	if !j.down(s) {
		j.up()
		return
	}
	defer j.up()
	if s.Coprocess || s.Disown {
		j.grey(s, "syntax", "this kind of statement is not known")
		return
	}
	if s.Background {
		shell := j.shell.clone()
		defer func() { j.shell = shell }()
	}
	j.redirects(s)
	if s.Cmd == nil {
		return
	}
	j.command(s)
}

func (j *judge) command(s *syntax.Stmt) {
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		j.call(c)
	case *syntax.BinaryCmd:
		j.binary(c)
	case *syntax.Subshell:
		j.subshell(c, c.Stmts)
	case *syntax.Block:
		j.stmts(c.Stmts)
	case *syntax.IfClause:
		j.ifClause(c)
	case *syntax.WhileClause:
		j.loop(c, func() {
			j.stmts(c.Cond)
			j.stmts(c.Do)
		})
	case *syntax.ForClause:
		j.forClause(c)
	case *syntax.CaseClause:
		j.caseClause(c)
	case *syntax.FuncDecl:
		j.funcDecl(c)
	case *syntax.TestClause:
		j.testClause(c)
	case *syntax.DeclClause:
		j.declClause(c)
	case *syntax.ArithmCmd:
		j.arithmCmd(c)
	case *syntax.TimeClause:
		j.timed(c)
	case *syntax.LetClause:
		j.grey(c, "arithmetic", "let is read in different ways, and evaluates names")
	case *syntax.CoprocClause:
		j.grey(c, "syntax", "a coprocess is not followed")
		if c.Stmt != nil {
			j.subshell(c, []*syntax.Stmt{c.Stmt})
		}
	default:
		j.grey(s, "syntax", "this kind of command is not known")
	}
}

// timed walks time CMD. POSIX shells have a program of that name, so that only a plain
// command is the same to all of them: no assignment, function or builtin.
func (j *judge) timed(c *syntax.TimeClause) {
	j.facts.program("time")
	if c.Stmt == nil {
		return
	}
	j.stmt(c.Stmt)
	first := c.Stmt
	for {
		b, ok := first.Cmd.(*syntax.BinaryCmd)
		if !ok {
			break
		}
		first = b.X
	}
	call, ok := first.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(call.Args) == 0 || call.Args[0].Lit() == "" {
		j.grey(c, "syntax", "time is a program in some shells, which runs only programs")
		return
	}
	name := call.Args[0].Lit()
	if _, ok := j.shell.funcs[name]; ok {
		j.grey(c, "function", "time is a program in some shells, which runs the program and not the function of this name")
	} else if cmd := lookup(name); cmd != nil && cmd.Builtin {
		j.grey(c, "syntax", "time is a program in some shells, which has no builtins")
	}
}

// compound tells whether a function's body is a compound command. The parser takes what
// follows it (f() { :; } && x) for the body as well.
func compound(s *syntax.Stmt) bool {
	switch s.Cmd.(type) {
	case *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause:
		return true
	}
	return false
}

// subshell walks statements whose changes to the shell are lost at their end.
func (j *judge) subshell(n syntax.Node, list []*syntax.Stmt) {
	if !j.down(n) {
		j.up()
		return
	}
	defer j.up()
	shell := j.shell.clone()
	j.stmts(list)
	j.shell = shell
}

// binary walks && || | from left to right. The tree leans to the left: it is
// unrolled, so that a long list is not deep.
func (j *judge) binary(c *syntax.BinaryCmd) {
	var few [8]*syntax.BinaryCmd
	chain := append(few[:0], c)
	for {
		s := chain[len(chain)-1].X
		x, ok := s.Cmd.(*syntax.BinaryCmd)
		if !ok || len(s.Redirs) > 0 || s.Background || !j.step() {
			break
		}
		chain = append(chain, x)
	}
	last := chain[len(chain)-1]
	if pipe(last.Op) {
		j.piped(last.X)
	} else {
		j.stmt(last.X)
	}
	for i := len(chain) - 1; i >= 0 && !j.over; i-- {
		if pipe(chain[i].Op) {
			j.piped(chain[i].Y)
			continue
		}
		j.maybe(func() { j.stmt(chain[i].Y) })
	}
}

func pipe(op syntax.BinCmdOperator) bool { return op == syntax.Pipe || op == syntax.PipeAll }

// piped walks a part of a pipeline. It runs in a subshell, or the last one here: then
// what it assigned is not known.
func (j *judge) piped(s *syntax.Stmt) { j.maybe(func() { j.stmt(s) }) }

// maybe walks a part that may not run.
func (j *judge) maybe(walk func()) {
	before := j.shell.clone()
	walk()
	j.shell.join(&before)
}

func (j *judge) ifClause(c *syntax.IfClause) {
	depth := j.depth
	defer func() { j.depth = depth }()
	var after *state
	for ; c != nil && !j.over; c = c.Else {
		j.step()
		j.stmts(c.Cond)
		before := j.shell.clone()
		j.stmts(c.Then)
		if after == nil {
			after = new(state)
			*after = j.shell.clone()
		} else {
			after.join(&j.shell)
		}
		if c.ThenPos.IsValid() {
			j.shell = before
		}
	}
	if after != nil {
		j.shell.join(after)
	}
}

func (j *judge) caseClause(c *syntax.CaseClause) {
	j.single(c.Word)
	before := j.shell.clone()
	after := before.clone()
	for _, item := range c.Items {
		if !j.step() {
			return
		}
		for _, p := range item.Patterns {
			j.pattern(p)
		}
		j.stmts(item.Stmts)
		after.join(&j.shell)
		if item.Op == syntax.Break {
			j.shell = before.clone()
		}
	}
	j.shell = after
}

// pattern walks a pattern of case and [[ ]] for what it does.
func (j *judge) pattern(w *syntax.Word) { j.single(w) }

// loop walks a part that may run any number of times: what it assigns is not known
// when it begins.
func (j *judge) loop(n syntax.Node, walk func()) {
	if !j.step() {
		return
	}
	j.forget(n)
	j.maybe(walk)
	j.forget(n)
}

// forget drops what is known of all that n may assign.
func (j *judge) forget(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil {
				j.blur(n.Name.Value, n)
			}
		case *syntax.WordIter:
			j.shell.set(n.Name.Value, value{})
		case *syntax.ParamExp:
			if n.Param != nil && n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
				j.shell.set(n.Param.Value, value{})
			}
		case *syntax.CallExpr:
			j.forgetCall(n)
		}
		return true
	})
}

func (j *judge) forgetCall(c *syntax.CallExpr) {
	if len(c.Args) == 0 {
		return
	}
	name := c.Args[0].Lit()
	_, function := j.shell.funcs[name]
	switch name {
	case "cd", "pushd", "popd":
		j.shell.dir.lost = true
	case "shift", "set":
		j.shell.args, j.shell.known = nil, false
	case "read", "mapfile", "readarray", "printf", "getopts", "unset", "wait":
		for _, w := range c.Args[1:] {
			if lit := w.Lit(); lit != "" {
				if _, ok := j.shell.vars[lit]; ok {
					j.shell.set(lit, value{})
				}
			}
		}
	default:
		if function || name == "" || name == "eval" || name == "command" || name == "builtin" {
			j.shell.forget()
			j.shell.dir.lost = true
			j.shell.args, j.shell.known = nil, false
		}
	}
}

// blur is set for an assignment that may or may not have run: a number stays one.
func (j *judge) blur(name string, a *syntax.Assign) {
	v := j.shell.get(name)
	switch {
	case v.array():
	case v.number() && a.Index == nil && a.Array == nil && !a.Append && a.Value != nil && arithmValue(a.Value):
		j.shell.set(name, value{kind: integer})
	default:
		j.shell.set(name, value{})
	}
}

func arithmValue(w *syntax.Word) bool {
	if len(w.Parts) != 1 {
		return false
	}
	switch p := w.Parts[0].(type) {
	case *syntax.ArithmExp:
		return true
	case *syntax.Lit:
		return isNumber(p.Value)
	}
	return false
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
	if !assignable(name) {
		j.assigned(iter, name, value{})
		return
	}
	fixed := iter.InPos.IsValid() && len(items) <= maxUnroll
	v, first := value{}, true
	for _, w := range items {
		fixed = fixed && w.Fixed
		item := value{text: w.Text}
		switch {
		case w.Split:
			item = value{}
		case w.Fixed:
			item = value{kind: literal, text: w.Text}
		}
		if first {
			v, first = item, false
		} else {
			v = merge(v, item)
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
				j.shell.set(name, value{kind: literal, text: text})
				j.stmts(c.Do)
			})
		}
		return
	}
	j.loop(c, func() {
		j.shell.set(name, v)
		j.stmts(c.Do)
	})
}

// funcDecl judges a function's body for every state it may be called in, so that a
// call of it is no new question.
func (j *judge) funcDecl(c *syntax.FuncDecl) {
	if c.Name == nil || !functionName(c.Name.Value) || known(c.Name.Value) {
		j.grey(c, "function", "takes the name of a command, a builtin, or of something the shell calls by itself")
		return
	}
	if !compound(c.Body) {
		j.grey(c, "function", "a function that is part of a pipeline or a list is not followed")
		return
	}
	if j.shell.function || j.shell.handler || len(j.shell.funcs) >= maxTracked {
		j.grey(c, "function", "functions inside functions, or too many of them, are not followed")
		return
	}
	name := c.Name.Value
	shell := j.shell.clone()
	j.shell = state{function: true, dir: j.shell.dir, funcs: shell.funcs}
	_, again := shell.funcs[name]
	if j.shell.funcs == nil {
		j.shell.funcs = make(map[string]bool)
	}
	j.shell.funcs[name] = true // recursion
	j.shell.dir.lost = true
	moves := false
	syntax.Walk(c.Body, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			switch name := call.Args[0].Lit(); name {
			case "cd", "pushd", "popd", "command", "builtin", "eval", "":
				moves = true
			default:
				moves = moves || j.shell.funcs[name]
			}
		}
		return true
	})
	if again {
		j.grey(c, "function", "declares a function twice")
	}
	j.stmt(c.Body)
	funcs := j.shell.funcs
	j.shell = shell
	j.shell.funcs = funcs
	j.shell.funcs[name] = moves
}

// functionName tells whether a name is plain, and not one that the shell itself calls.
func functionName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(letter(c) || c == '_' || i > 0 && (c >= '0' && c <= '9' || c == '-')) {
			return false
		}
	}
	return s != "" && !strings.HasSuffix(s, "_handle") && !strings.HasPrefix(s, "_")
}

// callFunction follows a call of a function that was declared before.
func (j *judge) callFunction(moves bool) {
	j.shell.forget()
	j.shell.dir.lost = j.shell.dir.lost || moves
}

// known tells whether a name is that of a command in the tables, or a builtin.
func known(name string) bool { return lookup(name) != nil }

// words evaluates the words of a command.
func (j *judge) evaluate(args []*syntax.Word) []table.Word {
	mark := len(j.words)
	for _, w := range args {
		if !j.step() {
			break
		}
		j.words = j.fields(j.words, w)
	}
	return j.words[mark:len(j.words):len(j.words)]
}
