package toolguard

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"weir/internal/commands"
	"weir/internal/shell"
)

// forkBomb is the name of the command that stands for a function which runs itself twice at once.
const forkBomb = "\x01bomb"

// cleanPOSIX takes out of a text what shells do not see, or see as something else.
func cleanPOSIX(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\x00", ""), "\r\n", "\n")
}

// eachPOSIX gives the commands of a clean text, in the order in which they stand there, a statement's at a time, for as long as goOn says so. Behind a
// syntax error there are none: a shell stops there too, and so it is told.
func (r Reader) eachPOSIX(text string, goOn func([]*Command) bool) (failed error) {
	w := &walker{Reader: r, vars: map[string]Value{"HOME": {Text: "~"}, "GIT_DIR": {Text: ".git"}}, budget: 4*len(text) + MaxValue, again: maxAgain}
	for s, err := range shell.Stmts(text) {
		if err != nil {
			failed = err
			continue
		}
		w.stmt(s, nil)
		if len(w.out) > 0 && !goOn(w.out) {
			break
		}
		w.out = w.out[:0]
	}
	return failed
}

// maxAgain bounds how often bodies of loops and functions are walked once more, for other values of their variables.
const maxAgain = 64

type walker struct {
	Reader // its Dir is where cd went, as far as that is known
	out    []*Command
	vars   map[string]Value
	funcs  map[string]*syntax.Stmt
	files  map[string]*Command // texts that were written to files
	opened map[string]Value    // by the number of a descriptor: what a command or a connection gives
	budget int                 // bytes that variables may still add
	again  int
}

func (w *walker) stmts(list []*syntax.Stmt, from *Command) *Command {
	var last *Command
	for _, s := range list {
		if c := w.stmt(s, from); c != nil {
			last = c
		}
	}
	return last
}

// stmt walks one statement; its result is the command whose output it has.
func (w *walker) stmt(s *syntax.Stmt, from *Command) *Command {
	if s == nil {
		return nil
	}
	var c *Command
	in := &Command{From: from} // what redirections give
	_, plain := s.Cmd.(*syntax.CallExpr)
	if !plain {
		for _, r := range s.Redirs {
			w.redirect(r, in)
		}
		if len(in.Reads) > 0 {
			from = &Command{Name: "cat", Program: "cat", Reads: in.Reads}
		}
	}
	switch x := s.Cmd.(type) {
	case *syntax.CallExpr:
		c = w.call(x, from)
	case *syntax.BinaryCmd:
		c = w.binary(x, from)
	case *syntax.Block:
		c = w.stmts(x.Stmts, from)
	case *syntax.Subshell:
		c = w.apart(x.Stmts, from)
	case *syntax.TimeClause:
		c = w.stmt(x.Stmt, from)
	case *syntax.IfClause:
		for ; x != nil; x = x.Else {
			w.stmts(x.Cond, from)
			c = w.stmts(x.Then, from)
		}
	case *syntax.WhileClause:
		w.stmts(x.Cond, from)
		c = w.stmts(x.Do, from)
	case *syntax.FuncDecl:
		if bomb(x) {
			w.out = append(w.out, &Command{Name: forkBomb, Program: x.Name.Value})
		}
		w.stmt(x.Body, nil)
		if x.Name != nil && len(w.funcs) < maxAgain {
			if w.funcs == nil {
				w.funcs = map[string]*syntax.Stmt{}
			}
			w.funcs[x.Name.Value] = x.Body
		}
	case *syntax.ForClause:
		c = w.loop(x, from)
	case nil:
	default:
		w.inside(x)
	}
	if len(s.Redirs) > 0 && c == nil {
		c = &Command{From: in.From}
		w.out = append(w.out, c)
	}
	if plain {
		for _, r := range s.Redirs {
			w.redirect(r, c)
		}
		if c != nil {
			w.reads(c)
			w.stores(c)
			patches(c)
		}
	} else if len(s.Redirs) > 0 {
		c.Reads, c.Writes = append(c.Reads, in.Reads...), append(c.Writes, in.Writes...)
	}
	return c
}

// patches notes what Codex's patches change, which its shells take as a command.
func patches(c *Command) {
	if c.Name != "apply_patch" && c.Name != "applypatch" {
		return
	}
	for _, v := range slices.Concat(c.Args, c.Reads) {
		for _, p := range patched(v.Text) {
			c.Writes = append(c.Writes, Value{Text: p})
		}
	}
}

// reads gives variables the values that read, mapfile and readarray give them.
func (w *walker) reads(c *Command) {
	if c.Name != "read" && c.Name != "mapfile" && c.Name != "readarray" {
		return
	}
	text, known := inputOf(c)
	of := c.From
	for _, v := range c.Reads {
		of = either(of, v.Of)
	}
	var names []string
	array := c.Name != "read"
	for _, a := range c.Args {
		array = array || a.Text == "-a"
		if commands.PlainName(a.Text) {
			names = append(names, a.Text)
		}
	}
	if len(names) == 0 {
		names = []string{"REPLY"}
	}
	for i, name := range names {
		v := Value{Text: unknownText, Of: of}
		if known && w.spend(text) {
			switch lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' }); {
			case array || len(names) == 1 && len(lines) > 1: // all that a loop's turns read
				if c.Name == "read" && array {
					lines = strings.Fields(text)
				}
				v.Text, v.Items = strings.Join(lines, " "), texted(lines)
				for i := range v.Items {
					v.Items[i].Of = of
				}
			case len(names) == 1:
				v.Text = strings.TrimSpace(text)
			default:
				fields := strings.Fields(text)
				v.Text = strings.Join(fields[min(i, len(fields)):], " ")
				if i+1 < len(names) && i < len(fields) {
					v.Text = fields[i]
				}
			}
		}
		w.set(name, v)
		if array {
			w.set(name+"[]", v)
		}
	}
}

// stores notes the texts that are written to files, which a later command may run.
func (w *walker) stores(c *Command) {
	writes := c.Writes
	if c.Name == "tee" {
		writes = append(writes[:len(writes):len(writes)], c.Args...)
	}
	if len(writes) == 0 || len(w.files) >= maxAgain {
		return
	}
	own := *c
	own.Writes = nil
	text, ok := output(&own)
	for _, v := range writes {
		if ok && v.Known() && w.spend(text) {
			if w.files == nil {
				w.files = map[string]*Command{}
			}
			w.files[path.Clean(c.in(v.Text))] = &Command{Name: "cat", Program: "cat", Reads: []Value{{Text: text}}}
		}
	}
}

// stored gives a shell the text of a file that was written before it.
func (w *walker) stored(c *Command) {
	if script := w.files[path.Clean(c.in(c.Program))]; script != nil && strings.Contains(c.Program, "/") {
		w.out = append(w.out, &Command{Name: "sh", Program: "sh", Dir: c.Dir, Args: append([]Value{{Text: unknownText, Of: script}}, c.Args...)})
	}
	for i, a := range c.Args {
		if script := w.files[path.Clean(c.in(a.Text))]; script != nil && a.Of == nil && (isShell.is(c) || c.Name == "source" || commands.KnowsWrapper(c.Name)) {
			c.Args = slices.Clone(c.Args)
			c.Args[i].Of = script
		}
	}
}

// texted are texts as values.
func texted(list []string) (all []Value) {
	for _, s := range list {
		all = append(all, Value{Text: s})
	}
	return all
}

// set gives a variable a value; arrays stand under NAME[].
func (w *walker) set(name string, v Value) {
	if len(v.Text) <= MaxValue {
		w.vars[name] = v
	}
}

// setArgs gives $1 and so on their values.
func (w *walker) setArgs(args []Value) {
	for i := range maxPositional {
		delete(w.vars, strconv.Itoa(i+1))
		if i < len(args) {
			w.set(strconv.Itoa(i+1), args[i])
		}
	}
	all := Value{Text: joined(args), Items: args}
	if !w.spend(all.Text) {
		all = Value{Text: unknownText}
	}
	w.set("@", all)
	w.set("*", all)
}

// maxPositional is how many of $1, $2 … are followed.
const maxPositional = 9

// eval walks a text that the shell itself runs.
func (w *walker) eval(text string) {
	if w.again--; w.again < 0 || !w.spend(text) {
		return
	}
	for s, err := range shell.Stmts(cleanPOSIX(text)) {
		if err == nil {
			w.stmt(s, nil)
		}
	}
}

// apart walks what runs in a shell of its own: where that goes, others are not.
func (w *walker) apart(list []*syntax.Stmt, from *Command) *Command {
	defer func(dir string) { w.Dir = dir }(w.Dir)
	return w.stmts(list, from)
}

// loop walks the body for each of the words that are known.
func (w *walker) loop(x *syntax.ForClause, from *Command) (c *Command) {
	over, ok := x.Loop.(*syntax.WordIter)
	if !ok || over.Name == nil {
		w.inside(x.Loop)
		return w.stmts(x.Do, from)
	}
	var values []Value
	if !over.InPos.IsValid() { // for x; do
		values = w.vars["@"].Items
	}
	for _, item := range shell.ExpandBraces(over.Items) {
		values = append(values, w.words(item)...)
	}
	for i, v := range values {
		if i > 0 {
			if w.again--; w.again < 0 {
				break
			}
		}
		w.vars[over.Name.Value] = v
		c = w.stmts(x.Do, from)
	}
	if len(values) == 0 {
		delete(w.vars, over.Name.Value)
		c = w.stmts(x.Do, from)
	}
	return c
}

// called walks the body of a function with the words that it is called with.
func (w *walker) called(name string, args []Value, from *Command) {
	body := w.funcs[name]
	if body == nil || w.again <= 0 {
		return
	}
	w.again--
	was := make(map[string]Value)
	for _, name := range []string{"@", "*", "1", "2", "3", "4", "5", "6", "7", "8", "9"} {
		if v, ok := w.vars[name]; ok {
			was[name] = v
		}
	}
	w.setArgs(args)
	w.stmt(body, from)
	w.setArgs(nil)
	for name, v := range was {
		w.vars[name] = v
	}
}

// inside walks the statements in any other node.
func (w *walker) inside(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			w.stmt(n, nil)
			return false
		case *syntax.Assign:
			w.sets(w.assign(nil, n))
			return false
		}
		return true
	})
}

// binary walks a list from left to right; the tree leans to the left.
func (w *walker) binary(b *syntax.BinaryCmd, from *Command) *Command {
	chain := []*syntax.BinaryCmd{b}
	for {
		s := chain[len(chain)-1].X
		x, ok := s.Cmd.(*syntax.BinaryCmd)
		if !ok || len(s.Redirs) > 0 {
			break
		}
		chain = append(chain, x)
	}
	c := w.stmt(chain[len(chain)-1].X, from)
	for i := len(chain) - 1; i >= 0; i-- {
		var up *Command
		if shell.Pipe(chain[i].Op) {
			up = c
		}
		c = w.stmt(chain[i].Y, up)
	}
	return c
}

func (w *walker) call(x *syntax.CallExpr, from *Command) *Command {
	c := &Command{From: from, Dir: w.Dir}
	for _, a := range x.Assigns {
		c.Sets = w.assign(c.Sets, a)
	}
	if len(x.Args) == 0 {
		w.sets(c.Sets)
		return nil
	}
	var words []Value
	for _, a := range shell.ExpandBraces(x.Args) {
		if len(words) > MaxArgs {
			break
		}
		words = append(words, w.words(a)...)
	}
	words = words[:min(len(words), MaxArgs+1)]
	if len(words) == 0 {
		return nil
	}
	c.Program, c.Args = words[0].Text, words[1:]
	if words[0].Known() {
		c.Name = posixName(c.Program)
	}
	w.out = append(w.out, c)
	if len(w.files) > 0 {
		w.stored(c)
	}
	switch c.Name {
	case "cd", "pushd":
		w.Dir = directory(w.Dir, c.Args)
	case "popd":
		w.Dir = ""
	case "eval":
		w.eval(joined(c.Args))
	case "set":
		for i, a := range c.Args {
			if a.Text == "--" || a.Text != "" && a.Text[0] != '-' && a.Text[0] != '+' && (i == 0 || c.Args[i-1].Text == "" || !strings.HasSuffix(c.Args[i-1].Text, "o")) {
				if a.Text == "--" {
					i++
				}
				w.setArgs(c.Args[i:])
				break
			}
		}
	case "printf":
		if len(c.Args) > 2 && c.Args[0].Text == "-v" {
			text := c.Args[2].Text
			if len(c.Args) > 3 {
				text = printed(text, c.Args[3:])
			}
			w.set(c.Args[1].Text, Value{Text: text})
		}
	case "shift":
		if all := w.vars["@"].Items; len(c.Args) == 0 && len(all) > 0 {
			w.setArgs(all[1:])
		}
	}
	w.called(c.Name, c.Args, from)
	return c
}

// maxDir bounds the directory that is remembered.
const maxDir = 1 << 10

// directory is where cd leads, or empty if that is not known.
func directory(dir string, args []Value) string {
	for len(args) > 0 && len(args[0].Text) > 1 && args[0].Text[0] == '-' {
		args = args[1:]
	}
	switch to := first(args); {
	case len(args) == 0:
		return "~"
	case to.Text == "-", to.Text == "":
		return ""
	default:
		dir = (&Command{Dir: dir}).in(to.Text)
		if len(dir) > maxDir {
			return ""
		}
		return dir
	}
}

// posixName is a program's name as rules have it, where a shell starts it.
func posixName(program string) string {
	if program == "." {
		return "source"
	}
	name := program[strings.LastIndexByte(program, '/')+1:]
	if base := strings.TrimRight(name, "0123456789.-"); len(base) < len(name) && versioned[base] {
		return base // bash-5.2, python3
	}
	if strings.Contains(name, `\`) || len(name) > 4 && strings.EqualFold(name[len(name)-4:], ".exe") {
		name = baseName(name)
	}
	if len(name) > 1 {
		name = strings.TrimLeft(name, ".") // .name is a method
	}
	return name
}

// sets gives the variables that are set without a command.
func (w *walker) sets(sets []Value) {
	if w.Assigns && len(sets) > 0 {
		w.out = append(w.out, &Command{Sets: sets, Dir: w.Dir})
	}
}

// assign sets a variable, and adds it with its value to sets.
func (w *walker) assign(sets []Value, a *syntax.Assign) []Value {
	if a.Value != nil {
		v := w.one(a.Value)
		if a.Name == nil {
			return sets
		}
		name := a.Name.Value
		sets = append(sets, Value{Text: name + "=" + v.Text})
		if name == "BASH_ARGV0" {
			name = "0"
		}
		if old := w.vars[name]; a.Append {
			if v.Text, v.Of = old.Text+v.Text, either(old.Of, v.Of); !w.spend(old.Text) {
				return sets
			}
		}
		w.set(name, v)
	}
	if a.Array == nil {
		return sets
	}
	var items []Value
	if a.Append && a.Name != nil {
		items = slices.Clip(w.vars[a.Name.Value+"[]"].Items)
	}
	for _, e := range a.Array.Elems {
		if e.Value != nil {
			items = append(items, w.words(e.Value)...)
		}
	}
	if text := joined(items); a.Name != nil && len(items) <= MaxArgs && w.spend(text) {
		w.set(a.Name.Value, first(items))
		w.set(a.Name.Value+"[]", Value{Text: text, Items: items})
	}
	return sets
}

func (w *walker) redirect(r *syntax.Redirect, c *Command) {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		if r.Hdoc != nil {
			c.Reads = append(c.Reads, w.one(r.Hdoc))
		}
	case syntax.WordHdoc:
		v := w.one(r.Word)
		c.Reads = append(c.Reads, v)
		w.opens(r, v)
	case syntax.RdrIn, syntax.DplIn:
		v := w.one(r.Word)
		o, ok := w.opened[v.Text]
		if ok = ok && r.Op == syntax.DplIn; ok {
			v = o
		}
		if ok || v.Of != nil || connects(&v) {
			c.Reads = append(c.Reads, v)
			w.opens(r, v)
		}
	case syntax.DplOut, syntax.RdrInOut, syntax.RdrAll:
		if r.Word == nil {
			break
		}
		v := w.one(r.Word)
		if connects(&v) {
			c.Reads = append(c.Reads, v)
			w.opens(r, v)
		} else if r.Op != syntax.DplOut || strings.Trim(v.Text, "0123456789-") != "" { // >& FILE
			c.Writes = append(c.Writes, v)
		}
	default:
		if r.Word == nil {
			break
		}
		for _, x := range shell.ExpandBraces([]*syntax.Word{r.Word}) {
			v := w.one(x)
			if c.Writes = append(c.Writes, v); connects(&v) {
				w.opens(r, v)
			}
		}
	}
}

// opens notes what a descriptor gives that a redirection opens, for those behind it that name that (<&3).
func (w *walker) opens(r *syntax.Redirect, v Value) {
	n := "1"
	if r.Op == syntax.RdrIn || r.Op == syntax.DplIn || r.Op == syntax.RdrInOut || r.Op == syntax.WordHdoc {
		n = "0"
	}
	if r.N != nil {
		n = r.N.Value
	}
	if w.opened == nil {
		w.opened = map[string]Value{}
	}
	if len(w.opened) < maxAgain {
		w.opened[n] = v
	}
}

// connects says whether a redirection opens a connection; what is read from it is fetched then.
func connects(v *Value) bool {
	if !strings.HasPrefix(v.Text, "/dev/tcp/") && !strings.HasPrefix(v.Text, "/dev/udp/") {
		return false
	}
	v.Text, v.Of = unknownText, &Command{Name: connection, Program: connection}
	return true
}

// connection is the name of the command that stands for one that the shell opens by itself.
const connection = "/dev/tcp"

// words are what a word expands to.
func (w *walker) words(x *syntax.Word) []Value {
	if len(x.Parts) == 0 {
		return nil
	}
	v := w.one(x)
	if q, ok := x.Parts[0].(*syntax.DblQuoted); len(v.Items) > 0 && len(x.Parts) == 1 && (!ok || len(q.Parts) == 1) { // "$@"
		return v.Items
	}
	v.Items = nil
	part := x.Parts[0]
	for _, p := range x.Parts {
		if v, ok := p.(*syntax.ParamExp); ok && v.Param != nil && v.Param.Value == "IFS" {
			part = p
		}
	}
	switch part.(type) {
	case *syntax.ParamExp, *syntax.CmdSubst:
		between := " \t\n"
		if ifs, ok := w.vars["IFS"]; ok && ifs.Known() {
			between += ifs.Text
		}
		if strings.ContainsAny(v.Text, between) {
			var out []Value
			for _, f := range strings.FieldsFunc(v.Text, func(r rune) bool { return strings.ContainsRune(between, r) }) {
				out = append(out, Value{Text: f, Of: v.Of})
			}
			return out
		}
	}
	return []Value{v}
}

func (w *walker) one(x *syntax.Word) (v Value) {
	v.Quoted = slices.ContainsFunc(x.Parts, func(p syntax.WordPart) bool {
		switch p.(type) {
		case *syntax.SglQuoted, *syntax.DblQuoted:
			return true
		}
		return false
	})
	v.Text = shell.Text(x, func(p syntax.WordPart, _ bool) string { return w.expanded(p, &v) })
	return v
}

// expanded is what an expansion becomes, as far as that is known.
func (w *walker) expanded(p syntax.WordPart, v *Value) string {
	switch p := p.(type) {
	case *syntax.ParamExp:
		return w.param(p, v)
	case *syntax.CmdSubst:
		c := w.apart(p.Stmts, nil)
		v.Of = either(v.Of, c)
		if text, ok := output(c); ok && len(p.Stmts) == 1 && w.spend(text) {
			return strings.TrimRight(text, "\n")
		}
	case *syntax.ProcSubst:
		v.Of = either(v.Of, w.apart(p.Stmts, nil))
	default:
		w.inside(p)
	}
	return unknownText
}

// spend takes a text from what may still be added.
func (w *walker) spend(text string) bool {
	w.budget -= len(text)
	return w.budget >= 0
}

func (w *walker) param(p *syntax.ParamExp, v *Value) string {
	word := Value{}
	if p.Exp != nil && p.Exp.Word != nil {
		word = w.one(p.Exp.Word)
	}
	if p.Index != nil || p.Slice != nil || p.Repl != nil {
		w.inside(p)
	}
	value, ok := Value{}, false
	if p.Param != nil && !p.Length && p.Names == 0 {
		value, ok = w.value(p)
	}
	if p.Slice != nil || p.Repl != nil {
		ok = ok && w.change(p, &value)
	} else if p.Exp != nil {
		switch p.Exp.Op {
		case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
			if !ok || value.Text == "" {
				if value, ok = word, true; p.Param != nil && p.Index == nil && (p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull) {
					w.set(p.Param.Value, word)
				}
			}
		case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
			value, ok = word, true
		case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		default:
			ok = ok && w.change(p, &value)
		}
	}
	if p.Param != nil && p.Param.Value == "IFS" && !ok && p.Exp == nil {
		value, ok = Value{Text: " "}, true
	}
	if !ok || !w.spend(value.Text) {
		value.Text, value.Items = unknownText, nil
	}
	v.Of, v.Items = either(v.Of, value.Of), value.Items
	return value.Text
}

// change makes of a value what ${x%…}, ${x/a/b}, ${x:1} and ${x,,} make of it, where the text says all that this takes.
func (w *walker) change(p *syntax.ParamExp, v *Value) bool {
	ok := len(v.Items) == 0 && (p.Exp == nil || p.Exp.Op != syntax.OtherParamOps)
	syntax.Walk(p, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ArithmExp, *syntax.BinaryArithm, *syntax.UnaryArithm, *syntax.ParenArithm, *syntax.FlagsArithm:
			ok = false
		}
		return ok
	})
	if !ok || !w.spend(v.Text) {
		return false
	}
	env := expand.FuncEnviron(func(name string) string {
		if name == p.Param.Value {
			return v.Text
		}
		return w.vars[name].Text
	})
	changed := &syntax.ParamExp{Param: p.Param, Slice: p.Slice, Repl: p.Repl, Exp: p.Exp}
	text, err := expand.Literal(&expand.Config{Env: env}, &syntax.Word{Parts: []syntax.WordPart{changed}})
	v.Text = text
	return err == nil && len(text) <= MaxValue
}

// value is that of a variable, of all of an array, or of one of its elements.
func (w *walker) value(p *syntax.ParamExp) (v Value, ok bool) {
	name := p.Param.Value
	if w.Blind {
		return Value{}, false
	}
	if p.Excl { // ${!name}
		v, ok = w.vars[name]
		if name = v.Text; p.Index != nil || !ok {
			return Value{}, false
		}
	}
	if p.Index == nil {
		v, ok = w.vars[name]
		return v, ok
	}
	index, _ := p.Index.(*syntax.Word)
	if index == nil {
		return Value{}, false
	}
	v, ok = w.vars[name+"[]"]
	if lit := index.Lit(); lit != "@" && lit != "*" {
		n, err := strconv.Atoi(lit)
		if err != nil || n < 0 || n >= len(v.Items) {
			return Value{}, false
		}
		return v.Items[n], true
	}
	return v, ok
}

// bomb says whether a function pipes itself into itself, or runs itself in the background.
func bomb(f *syntax.FuncDecl) bool {
	if f.Name == nil || f.Body == nil {
		return false
	}
	calls, apart := 0, false
	syntax.Walk(f.Body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if len(n.Args) > 0 && n.Args[0].Lit() == f.Name.Value {
				calls++
			}
		case *syntax.Stmt:
			apart = apart || n.Background
		case *syntax.BinaryCmd:
			apart = apart || shell.Pipe(n.Op)
		}
		return true
	})
	return calls >= 2 && apart
}
