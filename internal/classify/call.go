package classify

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/classify/table"
)

// how says what a command's name may stand for.
type how uint8

const (
	written how = iota // a function, a builtin or a program: a command of the text
	builtin            // a builtin or a program: behind command, builtin
	program            // a program: behind env, xargs, find -exec, in an observed argv
)

// call walks a simple command.
func (j *judge) call(c *syntax.CallExpr) {
	if len(c.Args) == 0 {
		for _, a := range c.Assigns {
			j.assign(a)
		}
		j.local(c, "sets variables of this shell only")
		return
	}
	mark := len(j.words)
	words := j.evaluate(c.Args)
	defer func() { j.words = j.words[:mark] }()
	if j.over {
		return
	}
	if len(words) == 0 {
		j.grey(c, "word-unknown", "the command's name comes from an expansion")
		return
	}
	if len(c.Assigns) > 0 {
		cmd, name := j.named(words[0], written)
		j.prefix(c.Assigns, cmd, name)
	}
	j.run(words, written)
}

// local notes a part that is local.
func (j *judge) local(n syntax.Node, why string) { j.findIn(n, Local, "local", why) }

// spanOf is the place of a command's words.
func spanOf(words []table.Word) table.Word {
	first, last := words[0], words[len(words)-1]
	w := table.Word{Offset: first.Offset, Length: last.Offset + last.Length - first.Offset}
	if w.Length < 0 {
		w.Length = first.Length
	}
	return w
}

// named finds the command of a word, and its name without a path. cmd is nil when it is
// not known, name empty when the word is a path that proves nothing.
func (j *judge) named(w table.Word, h how) (cmd *table.Command, name string) {
	if !w.Fixed {
		return nil, ""
	}
	name = w.Text
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		dir := name[:i]
		name = name[i+1:]
		cmd = lookup(name)
		switch dir {
		case "/bin", "/usr/bin":
			if cmd == nil || cmd.Builtin {
				return nil, ""
			}
			return cmd, name
		case "/lib", "/lib64", "/usr/lib64", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu":
			if strings.HasPrefix(name, "ld-") {
				return cmd, name
			}
		}
		// Elsewhere a name proves nothing, but may well warn.
		if cmd != nil && cmd.Class == Network && strings.HasPrefix(dir, "/") {
			return cmd, name
		}
		return nil, ""
	}
	cmd = lookup(name)
	if cmd != nil && cmd.Builtin && h == program {
		return nil, name
	}
	return cmd, name
}

// run judges a command by its words.
func (j *judge) run(words []table.Word, h how) {
	if !j.step() {
		return
	}
	first := words[0]
	at := spanOf(words)
	if !first.Fixed {
		j.findWord(first, Grey, "word-unknown", "the command's name is not literal")
		return
	}
	if first.Text == "" {
		j.findWord(first, Grey, "word-unknown", "the command's name is empty")
		return
	}
	j.facts.program(first.Text)
	if h == written {
		if moves, ok := j.shell.funcs[first.Text]; ok {
			j.callFunction(moves)
			j.findWord(at, Local, "local", "a function of this text, judged where it is declared")
			return
		}
	}
	cmd, name := j.named(first, h)
	switch {
	case cmd == nil && strings.IndexByte(first.Text, '/') >= 0:
		j.findWord(first, Grey, "path", "a program outside /bin and /usr/bin is not known by its name")
		j.facts.scan(words[1:])
		return
	case cmd == nil:
		j.findWord(first, Grey, "unknown-command", "is not in the list of known commands")
		j.facts.scan(words[1:])
		return
	}
	j.facts.flags(name, cmd.Facts)
	if h != program && first.Text == name && j.special(name, words, at) {
		return
	}
	j.judge(cmd, name, words[1:], at)
}

// take gives an empty Call; each nested one is another, so that they are reused.
func (j *judge) take() *table.Call {
	n := j.wraps
	for len(j.calls) <= n {
		j.calls = append(j.calls, new(table.Call))
	}
	c := j.calls[n]
	*c = table.Call{
		Options: c.Options[:0], Operands: c.Operands[:0], Globals: c.Globals[:0], Found: c.Found[:0], Runs: c.Runs[:0], Texts: c.Texts[:0],
		Sets: c.Sets[:0], Reads: c.Reads[:0], Writes: c.Writes[:0], Hosts: c.Hosts[:0],
	}
	return c
}

// judge judges a known command with its words.
func (j *judge) judge(cmd *table.Command, name string, words []table.Word, at table.Word) {
	c := j.take()
	c.Command, c.Name, c.Words = cmd, name, words
	class := j.read(c, at)
	j.settle(c, class, at)
}

// read tells a call's words apart; its class is that of the command, or of its
// subcommand.
func (j *judge) read(c *table.Call, at table.Word) Class {
	for {
		cmd := c.Command
		if cmd.Raw {
			if cmd.Check != nil {
				cmd.Check(c)
			}
			return c.Class()
		}
		split(c, at)
		if cmd.Sub == nil {
			roles(c, at)
			if cmd.Check != nil {
				cmd.Check(c)
			}
			return c.Class()
		}
		if cmd.Check != nil {
			cmd.Check(c)
		}
		if len(c.Operands) == 0 {
			if cmd.Bare || cmd.Class == Network {
				return c.Class()
			}
			c.Grey(at, "option-unknown", "needs a subcommand")
			return Local
		}
		w := c.Operands[0]
		sub := subcommand(cmd, w)
		if sub == nil {
			if cmd.Class == Network {
				return Network
			}
			c.Grey(w, "unknown-command", "this subcommand is not known to be harmless")
			return Local
		}
		j.facts.flags("", sub.Facts)
		c.Globals = append(c.Globals, c.Options...)
		c.Words = c.Operands[1:]
		c.Command, c.Options, c.Operands = sub, c.Options[:0], nil
	}
}

func subcommand(cmd *table.Command, w table.Word) *table.Command {
	if !w.Fixed {
		return nil
	}
	for _, s := range cmd.Sub {
		if listed(s.Names, w.Text) {
			return s
		}
	}
	return nil
}

// settle turns what a call found into reasons, and judges what it runs.
func (j *judge) settle(c *table.Call, class Class, at table.Word) {
	why := c.Command.Why
	j.facts.flags("", c.Flags)
	for _, w := range c.Reads {
		j.facts.read(w)
	}
	for _, w := range c.Hosts {
		j.facts.host(w)
	}
	if class == Network {
		j.facts.scan(c.Words)
		for _, w := range c.Writes {
			if w.Fixed {
				j.facts.write(w.Text)
			}
		}
		j.findWord(at, Network, "network", why)
	} else {
		for _, f := range c.Found {
			j.findWord(f.Word, worse(Local, f.Class), f.Rule, f.Text)
		}
		for _, w := range c.Writes {
			j.write(w)
		}
		if class == Grey {
			j.findWord(at, Grey, "not-local", why)
		} else if len(c.Found) == 0 {
			j.findWord(at, Local, "local", why)
		}
	}
	for _, s := range c.Sets {
		if class == Network {
			break
		}
		if inner := j.wrapped(c); !(s.Value.Fixed && harmlessEnv(s.Name, s.Value.Text) || inner != nil && listed(inner.Env, s.Name)) {
			j.findWord(s.Word, Grey, "env", "sets "+quoteName(s.Name)+" for a command, which is not known to be harmless")
		}
	}
	if len(c.Runs) == 0 && len(c.Texts) == 0 {
		return
	}
	j.wraps++
	defer func() { j.wraps-- }()
	if j.tooWrapped(at) {
		return
	}
	for _, r := range c.Runs {
		if len(r.Words) == 0 {
			j.findWord(at, Grey, "word-unknown", "the command that it runs is not known")
			continue
		}
		h := program
		if r.Here {
			h = builtin
		}
		shell := j.shell
		j.shell.dir.lost = shell.dir.lost || c.Elsewhere
		j.run(r.Words, h)
		if !r.Here {
			j.shell = shell
		}
	}
	for _, t := range c.Texts {
		j.inner(t.Word, true, t.Args)
	}
}

// wrapped is the one command that a call runs, when it is known.
func (j *judge) wrapped(c *table.Call) *table.Command {
	if len(c.Runs) != 1 || len(c.Runs[0].Words) == 0 {
		return nil
	}
	cmd, _ := j.named(c.Runs[0].Words[0], program)
	return cmd
}
