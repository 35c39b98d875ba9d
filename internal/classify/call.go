package classify

import (
	"cmp"
	"strings"

	"weir/internal/commands"
)

// how says what a command's name may stand for.
type how uint8

const (
	Written how = iota // a function, a builtin or a program: a command of the text
	builtin            // a builtin or a program: behind command, builtin
	program            // a program: behind env, xargs, find -exec, in an observed argv
)

// spanOf is the place of a command's words.
func spanOf(words []commands.Word) commands.Word {
	first, last := words[0], words[len(words)-1]
	w := commands.Word{Offset: first.Offset, Length: last.Offset + last.Length - first.Offset}
	if w.Length < 0 {
		w.Length = first.Length
	}
	return w
}

// Named finds the command of a word, and its name without a path. cmd is nil when it is
// not known, name empty when the word is a path that proves nothing.
func (j *judge) Named(w commands.Word, h how) (cmd *commands.Command, name string) {
	if !w.Fixed {
		return nil, ""
	}
	name = w.Text
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		dir := name[:i]
		name = name[i+1:]
		cmd = commands.Lookup(name)
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
		if cmd != nil && cmd.Class == commands.Network && strings.HasPrefix(dir, "/") {
			return cmd, name
		}
		return nil, ""
	}
	cmd = commands.Lookup(name)
	if cmd != nil && cmd.Builtin && h == program {
		return nil, name
	}
	return cmd, name
}

// Run judges a command by its words.
func (j *judge) Run(words []commands.Word, h how) {
	if !j.Step() {
		return
	}
	first := words[0]
	at := spanOf(words)
	if !first.Fixed {
		j.FindWord(first, commands.Grey, "word-unknown", "the command's name is not literal")
		return
	}
	if first.Text == "" {
		j.FindWord(first, commands.Grey, "word-unknown", "the command's name is empty")
		return
	}
	j.Facts.Program(first.Text)
	if h == Written {
		if moves, ok := j.Shell.Funcs[first.Text]; ok {
			j.callFunction(moves)
			j.FindWord(at, commands.Local, "local", "a function of this text, judged where it is declared")
			return
		}
	}
	cmd, name := j.Named(first, h)
	switch {
	case cmd == nil && strings.IndexByte(first.Text, '/') >= 0:
		j.FindWord(first, commands.Grey, "path", "a program outside /bin and /usr/bin is not known by its name")
		j.Facts.Scan(words[1:])
		return
	case cmd == nil:
		j.FindWord(first, commands.Grey, "unknown-command", "is not in the list of known commands")
		j.Facts.Scan(words[1:])
		return
	}
	j.Facts.Flags(name, cmd.Facts)
	if h != program && first.Text == name && j.special(name, words, at) {
		return
	}
	j.judge(cmd, name, words[1:], at)
}

// take gives an empty Call; each nested one is another, so that they are reused.
func (j *judge) take() *commands.Call {
	n := j.wraps
	for len(j.calls) <= n {
		j.calls = append(j.calls, new(commands.Call))
	}
	c := j.calls[n]
	*c = commands.Call{
		Piped:   j.Piped,
		Options: c.Options[:0], Operands: c.Operands[:0], Globals: c.Globals[:0], Found: c.Found[:0], Runs: c.Runs[:0], Texts: c.Texts[:0],
		Sets: c.Sets[:0], Reads: c.Reads[:0], Writes: c.Writes[:0], Hosts: c.Hosts[:0], Listens: c.Listens[:0], Names: c.Names[:0],
	}
	return c
}

// judge judges a known command with its words.
func (j *judge) judge(cmd *commands.Command, name string, words []commands.Word, at commands.Word) {
	c := j.take()
	c.Command, c.Name, c.Words = cmd, name, words
	class := j.read(c, at)
	j.settle(c, class, at)
}

// read tells a call's words apart; its class is that of the command, or of its
// subcommand.
func (j *judge) read(c *commands.Call, at commands.Word) commands.Class {
	if c.Alone() {
		c.Why = "prints and ends, when this option is all that it is given"
		return commands.Local
	}
	for {
		cmd := c.Command
		if cmd.Raw {
			if cmd.Check != nil {
				cmd.Check(c)
			}
			return c.Class()
		}
		commands.ParseSplit(c, at)
		if cmd.Sub == nil {
			commands.ParseRoles(c, at)
			if cmd.Check != nil {
				cmd.Check(c)
			}
			return c.Class()
		}
		if cmd.Check != nil {
			cmd.Check(c)
		}
		if len(c.Operands) == 0 {
			if cmd.Bare || cmd.Class == commands.Network {
				return c.Class()
			}
			c.Grey(at, "option-unknown", "needs a subcommand")
			return commands.Local
		}
		w := c.Operands[0]
		sub := cmd.Subcommand(w.Text)
		if sub == nil || !w.Fixed {
			if cmd.Class == commands.Network {
				return commands.Network
			}
			c.Grey(w, "unknown-command", "this subcommand is not known to be harmless")
			return commands.Local
		}
		j.Facts.Flags("", sub.Facts)
		c.Globals = append(c.Globals, c.Options...)
		c.Words = c.Operands[1:]
		c.Command, c.Options, c.Operands = sub, c.Options[:0], nil
	}
}

// settle turns what a call found into reasons, and judges what it runs.
func (j *judge) settle(c *commands.Call, class commands.Class, at commands.Word) {
	why := cmp.Or(c.Why, c.Command.Why)
	j.Facts.Flags("", c.Flags)
	j.brings = j.brings || c.Brings
	for _, w := range c.Reads {
		j.Facts.Read(w)
	}
	for _, w := range c.Hosts {
		j.Facts.Host(w)
	}
	for _, w := range c.Listens {
		j.Facts.Listen(w.Text)
	}
	if class == commands.Network {
		j.Facts.Scan(c.Words)
		for _, w := range c.Writes {
			if w.Fixed {
				j.Facts.Write(w.Text)
			}
		}
		j.FindWord(at, commands.Network, "network", why)
	} else {
		if c.Git != "" && class == commands.Local && len(c.Found) == 0 {
			if why := j.configured(c, at); why != "" {
				c.Grey(at, "git-config", why)
			}
		}
		for _, f := range c.Found {
			j.FindWord(f.Word, worse(commands.Local, f.Class), f.Rule, f.Text)
		}
		for _, w := range c.Writes {
			j.Write(w)
		}
		if class == commands.Grey {
			j.FindWord(at, commands.Grey, "not-local", why)
		} else if len(c.Found) == 0 {
			j.FindWord(at, commands.Local, "local", why)
		}
	}
	for _, w := range c.Names {
		j.setName(w)
	}
	if array, ok := c.Option("-a"); ok && len(c.Names) > 0 { // read -a
		j.Shell.Set(array.Value.Text, value{Kind: Indexed})
	}
	for _, s := range c.Sets {
		if class == commands.Network {
			break
		}
		if inner := j.wrapped(c); !(s.Value.Fixed && commands.HarmlessEnv(s.Name, s.Value.Text) || inner != nil && commands.Listed(inner.Env, s.Name)) {
			j.FindWord(s.Word, commands.Grey, "env", "sets "+commands.Quote(s.Name)+" for a command, which is not known to be harmless")
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
	for _, words := range c.Runs {
		if len(words) == 0 {
			j.FindWord(at, commands.Grey, "word-unknown", "the command that it runs is not known")
			continue
		}
		shell := j.Shell
		if c.Elsewhere {
			j.Shell.Dir.Leave()
		}
		j.Run(words, program)
		j.Shell = shell
	}
	for _, t := range c.Texts {
		j.inner(t.Word, true, t.Args)
	}
}

// configured says why a call of git may run a program, by the settings of every repository that it may be about.
func (j *judge) configured(c *commands.Call, at commands.Word) string {
	dirs := j.Shell.Dir.At
	for _, o := range c.Globals {
		if o.Name == "-C" {
			if !o.Value.Fixed {
				return c.Git
			}
			dirs = commands.Below(dirs, o.Value.Text)
		}
	}
	if j.git == nil || len(dirs) == 0 {
		return c.Git
	}
	j.looked = at
	for _, dir := range dirs {
		why, ok := j.found[dir]
		if !ok {
			if j.found == nil {
				j.found = make(map[string]string)
			}
			if len(j.found) >= maxLooks {
				return "too many directories to look for a repository"
			}
			why = j.git(cmp.Or(dir, "/"))
			j.found[dir] = why
		}
		if why != "" {
			return "git may run a program or fetch here: " + why
		}
	}
	return ""
}

// maxLooks bounds the directories that are looked at.
const maxLooks = 16

// wrapped is the one command that a call runs, when it is known.
func (j *judge) wrapped(c *commands.Call) *commands.Command {
	if len(c.Runs) != 1 || len(c.Runs[0]) == 0 {
		return nil
	}
	cmd, _ := j.Named(c.Runs[0][0], program)
	return cmd
}

// callFunction follows a call of a function that was declared before.
func (j *judge) callFunction(moves bool) {
	j.Shell.Forget()
	if moves {
		j.Shell.Dir.Leave()
	}
}
