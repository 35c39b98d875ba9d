package classify

import (
	"slices"
	"strings"

	"weir/internal/commands"
)

// special judges the builtins that change the shell's state, or whose words are more
// than words. It tells whether it did; the others go by the tables.
func (j *judge) special(name string, words []commands.Word, at commands.Word) bool {
	args := words[1:]
	switch name {
	case "cd", "pushd", "popd":
		j.chdir(name, args, at)
	case "printf":
		j.printf(args, at)
		return true
	case "test", "[":
		j.test(args)
	case "set":
		j.set(args)
	case "shift":
		j.shift(args)
	case "unset":
		j.unset(args)
	case "eval":
		j.eval(args, at)
		return true
	case "command":
		return j.commandBuiltin(args, at)
	case "builtin":
		j.forward(args, at, builtin)
		return true
	case "trap":
		j.trap(args)
	default:
		return false
	}
	j.FindWord(at, commands.Local, "local", "a builtin of the shell")
	return true
}

func (j *judge) forward(args []commands.Word, at commands.Word, h how) {
	if len(args) == 0 {
		j.FindWord(at, commands.Local, "local", "a builtin of the shell")
		return
	}
	j.wraps++
	defer func() { j.wraps-- }()
	if !j.tooWrapped(at) {
		j.Run(args, h)
	}
}

func (j *judge) chdir(name string, args []commands.Word, at commands.Word) {
	if j.Shell.Handler && !j.Shell.AtExit {
		j.FindWord(at, commands.Grey, "trap-moves", "a trap that changes the working directory is not followed")
	}
	for len(args) > 0 && args[0].Fixed && len(args[0].Text) > 1 && args[0].Text[0] == '-' {
		args = args[1:]
	}
	switch {
	case j.Shell.Handler || name == "popd" || len(args) != 1 || !args[0].Fixed:
		j.Shell.Dir.Leave()
	default:
		j.Shell.Dir.Enter(args[0].Text)
	}
}

// setName sets a variable of which the name is a word.
func (j *judge) setName(w commands.Word) {
	switch {
	case !w.Fixed:
		j.FindWord(w, commands.Grey, "assign", "the name of a variable is not literal")
	case j.Shell.Handler:
		j.FindWord(w, commands.Grey, "assign", "a trap that changes variables is not followed")
	case !commands.Assignable(w.Text):
		j.FindWord(w, commands.Grey, "assign", "sets "+commands.Quote(w.Text)+", which can run code or change what runs")
	default:
		j.touch(w.Text, false)
		j.Shell.Set(w.Text, value{})
	}
}

// printf is harmless but for -v, which evaluates a subscript in a name.
func (j *judge) printf(args []commands.Word, at commands.Word) {
	defer j.FindWord(at, commands.Local, "local", "a builtin of the shell")
	if len(args) == 0 {
		return
	}
	w := args[0]
	switch {
	case w.Fixed && w.Text == "-v":
		if len(args) > 1 {
			j.setName(args[1])
		}
		if len(args) > 2 && args[2].MayBeOption() && !args[2].Fixed {
			j.FindWord(args[2], commands.Grey, "word-unknown", "may become an option that is not known")
		}
	case strings.HasPrefix(w.Text, "-v"):
		j.setName(w.At(2))
	case w.MayBeOption() && !w.Fixed && (len(args) > 1 || w.Many()):
		j.FindWord(w, commands.Grey, "word-unknown", "may become -v, which can run code")
	}
}

// test judges [ and test: -v and -R evaluate a subscript in a name.
func (j *judge) test(args []commands.Word) {
	for i, w := range args {
		next := commands.Lit("")
		if i+1 < len(args) {
			next = args[i+1]
		}
		switch {
		case w.Split:
			j.FindWord(w, commands.Grey, "word-unknown", "may become an operator that can run code")
		case w.Is("-v") || w.Is("-R"):
			if !next.Fixed || strings.IndexByte(next.Text, '[') >= 0 && len(next.Text) > 1 {
				j.FindWord(w, commands.Grey, "arithmetic", "a subscript in a name can run commands")
			}
		case w.MayBeOption() && !w.Fixed && (!next.Fixed || len(next.Text) > 1 && strings.IndexByte(next.Text, '[') >= 0):
			j.FindWord(w, commands.Grey, "word-unknown", "may become an operator that can run code")
		}
	}
}

// set accepts the options that only make a script stricter or more talkative.
func (j *judge) set(args []commands.Word) {
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case w.Is("--") || w.Is("-"):
			j.setArgs(args[i+1:])
			return
		case !w.MayBeOption() && !strings.HasPrefix(w.Text, "+") && !(w.Text == "" && !w.Fixed):
			j.setArgs(args[i:])
			return
		case !w.Fixed:
			j.FindWord(w, commands.Grey, "word-unknown", "may become an option that is not known")
		case strings.Trim(w.Text[1:], "euxfnvCE") == "":
		case strings.Trim(w.Text[1:], "euxfnvCEo") == "" && strings.HasSuffix(w.Text, "o") && i+1 < len(args):
			i++
			switch o := args[i]; o.Text {
			case "errexit", "nounset", "pipefail", "xtrace", "noglob", "noclobber", "verbose", "noexec", "errtrace":
				if o.Fixed {
					continue
				}
				fallthrough
			default:
				j.FindWord(o, commands.Grey, "option-unknown", "this option of the shell is not known to be harmless")
			}
		default:
			j.FindWord(w, commands.Grey, "option-unknown", "this option of the shell is not known to be harmless")
		}
	}
}

func (j *judge) setArgs(args []commands.Word) {
	if len(args) > MaxTracked || j.Shell.Handler {
		j.Shell.Args, j.Shell.Known = nil, false
		return
	}
	j.Shell.Args, j.Shell.Known = append([]commands.Word(nil), args...), true
}

func (j *judge) shift(args []commands.Word) {
	if len(args) == 0 && j.Shell.Known && len(j.Shell.Args) > 0 && !j.Shell.Args[0].Many() {
		j.Shell.Args = j.Shell.Args[1:]
		return
	}
	j.Shell.Args, j.Shell.Known = nil, false
}

func (j *judge) unset(args []commands.Word) {
	for i, w := range args {
		if i == 0 && w.Is("-v") {
			continue
		}
		if _, function := j.Shell.Funcs[w.Text]; function || w.Fixed && strings.HasPrefix(w.Text, "-") {
			j.FindWord(w, commands.Grey, "function", "removing functions is not followed")
			continue
		}
		j.setName(w)
		j.touch(w.Text, true)
	}
}

func (j *judge) eval(args []commands.Word, at commands.Word) {
	if len(args) > 0 && args[0].Is("--") {
		args = args[1:]
	}
	text, n := "", 0
	for _, w := range args {
		if !w.Fixed {
			j.FindWord(w, commands.Network, "code-unknown", "a shell text that is not literal cannot be judged")
			return
		}
		n += len(w.Text) + 1
	}
	if len(args) == 1 {
		text = args[0].Text
	} else if n > 0 {
		list := make([]string, len(args))
		for i, w := range args {
			list[i] = w.Text
		}
		text = strings.Join(list, " ")
	}
	w := at
	w.Text, w.Fixed = text, true
	j.inner(w, false, nil)
}

func (j *judge) commandBuiltin(args []commands.Word, at commands.Word) bool {
	for len(args) > 0 && args[0].Fixed && strings.HasPrefix(args[0].Text, "-") {
		o := args[0].Text
		args = args[1:]
		if o == "--" {
			break
		}
		if o != "-p" {
			if strings.Trim(o, "-pvV") == "" {
				j.FindWord(at, commands.Local, "local", "tells what a name stands for")
			} else {
				j.FindWord(at, commands.Grey, "option-unknown", "this option is not known to be harmless")
			}
			return true
		}
	}
	j.forward(args, at, builtin)
	return true
}

// trap judges the commands of a trap as ones that run at any time.
func (j *judge) trap(args []commands.Word) {
	for len(args) > 0 && (args[0].Is("-p") || args[0].Is("-l") || args[0].Is("--")) {
		if !args[0].Is("--") {
			return
		}
		args = args[1:]
	}
	if len(args) < 2 {
		if len(args) == 1 && !args[0].Fixed {
			j.FindWord(args[0], commands.Grey, "code-unknown", "a shell text that is not literal cannot be judged")
		}
		return
	}
	if args[0].Is("-") || args[0].Is("") {
		return
	}
	shell := j.Shell.Clone()
	exit := func(w commands.Word) bool { return w.Is("EXIT") || w.Is("0") }
	j.Shell = shellState{Handler: true, AtExit: !slices.ContainsFunc(args[1:], func(w commands.Word) bool { return !exit(w) }), Dir: commands.Place{Roots: shell.Dir.Roots}}
	piped := j.Piped
	j.Piped = false
	j.inner(args[0], false, nil)
	j.Shell, j.Piped = shell, piped
}
