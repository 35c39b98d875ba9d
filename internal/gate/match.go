package gate

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/commands"
	"weir/internal/event"
	"weir/internal/shell"
)

// commandForm is a command as a shell reads it. The zero Form is no command, and equals
// none.
type commandForm struct {
	text   string // in one layout
	calls  []formCall
	single bool // one simple command, and nothing else
	// Device: the shell itself opens a connection, through /dev/tcp or /dev/udp.
	Device bool
}

// call is a simple command of a form, word by word.
type formCall []word

// parseForm reads a shell text. It fails on what is no shell text, and on what is too
// long or too deep to be read.
func parseForm(text string) (commandForm, bool) {
	f, refused := shell.Parse(text)
	if refused != nil || len(f.Stmts) == 0 {
		return commandForm{}, false
	}
	return formOf(f), true
}

func formOf(f *syntax.File) commandForm {
	form := commandForm{text: layout(f), single: len(f.Stmts) == 1 && single(f.Stmts[0])}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				form.calls = append(form.calls, callOf(n.Args))
			}
		case *syntax.Redirect:
			target, _ := literal(n.Word)
			form.Device = form.Device || strings.HasPrefix(target, "/dev/tcp/") || strings.HasPrefix(target, "/dev/udp/")
		}
		return true
	})
	return form
}

func single(s *syntax.Stmt) bool {
	c, ok := s.Cmd.(*syntax.CallExpr)
	return ok && bare(s) && len(c.Assigns) == 0 && len(c.Args) > 0
}

// layout prints without comments, and with blanks and line ends in one way.
func layout(n syntax.Node) string {
	if f, ok := n.(*syntax.File); ok {
		f.Last = nil
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		if s, ok := n.(*syntax.Stmt); ok {
			s.Comments = nil
		}
		return true
	})
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, n); err != nil {
		return ""
	}
	return strings.TrimSpace(b.String())
}

// Equal says whether both are the same command.
func (f commandForm) Equal(o commandForm) bool { return f.text != "" && f.text == o.text }

// ranCommand is a program that was seen to be executed.
type ranCommand struct {
	File string   // path of the program, or of the script that it interprets
	Argv []string // as that program sees it, its own name first
}

// Has says whether the program is one of the form's own simple commands, with
// the very arguments: where the form has an expansion, anything may stand. A
// command is the program at its path, of which a relative one has the end alone, or
// one of the system's with its name: what a program calls itself says little, and
// what is first in PATH is the container's to choose. It takes its steps from those
// that are left; without, it has nothing.
func (f commandForm) Has(r ranCommand, left *matchSteps) bool {
	if len(r.Argv) == 0 || r.File == "" {
		return false
	}
	for _, c := range f.calls {
		if !left.take(1 + (len(r.File)+len(r.Argv[0]))/stepBytes) {
			return false
		}
		if named(c[0], r) && fits(c[1:], r.Argv[1:], left) {
			return true
		}
	}
	return false
}

// Is says whether the program is all of the form: no shell stood between. It takes steps as Has does.
func (f commandForm) Is(r ranCommand, left *matchSteps) bool { return f.single && f.Has(r, left) }

// named says whether the first word of a call is the program.
func named(w word, r ranCommand) bool {
	name, fixed := w.literal()
	if !fixed || name == "" {
		return false
	}
	if strings.Contains(name, "/") && (r.File == name || !path.IsAbs(name) && strings.HasSuffix(r.File, "/"+path.Clean(name))) {
		return true
	}
	name = path.Base(name)
	base := path.Base(r.File)
	if !systemDirs[path.Dir(r.File)] || path.Base(r.Argv[0]) != name {
		return false
	}
	return versioned(base, name) || other[name] == base || base == "busybox"
}

// versioned says whether a file has a name, or one of its versions: python3 is python3.11, gcc is gcc-12.
func versioned(base, name string) bool {
	rest, ok := strings.CutPrefix(base, name)
	rest = strings.TrimPrefix(rest, "-")
	return base == name || ok && rest != "" && strings.IndexByte(".0123456789", rest[0]) >= 0
}

// systemDirs are where a distribution's packages put programs.
var systemDirs = commands.Names("/bin /sbin /usr/bin /usr/sbin /usr/local/bin /usr/local/sbin")

// other are names whose programs are called otherwise.
var other = map[string]string{"sh": "dash", "awk": "mawk", "nc": "nc.openbsd", "vi": "vim.basic", "node": "nodejs", "pip": "pip3"}

// ranOf tells what program a process runs: for a script, the script.
func ranOf(p event.Process) ranCommand {
	r := ranCommand{Argv: p.Argv}
	if p.Exe != nil && !p.Exe.Memfd && !p.Exe.Deleted {
		r.File = p.Exe.Path
	}
	if i := slices.Index(p.Argv, p.Script); p.Script != "" && i >= 0 {
		r = ranCommand{p.Script, p.Argv[i:]}
	}
	return r
}

// Shell says whether the program is a shell: one of the system's, whatever it calls itself.
func (r ranCommand) Shell() bool {
	base := path.Base(r.File)
	return systemDirs[path.Dir(r.File)] && (shells[base] || base == "busybox" && len(r.Argv) > 0 && shells[path.Base(r.Argv[0])])
}
