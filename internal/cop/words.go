package cop

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/shell"
)

// hole stands in a word for what is not known; a literal text never has it.
const hole = shell.Hole

// gap stands for $IFS, which splits a word where a blank would.
const gap = "\x01"

// word is one word of a command.
type word struct {
	text    string // with holes
	command bool   // a hole is the output of a command
}

func (w word) known() bool { return !strings.Contains(w.text, hole) }

func literal(text string) word {
	return word{text: strings.NewReplacer(hole, "", gap, "").Replace(text)}
}

// words evaluates words as far as they are known.
func (r *reader) words(in []*syntax.Word) []word {
	var out []word
	for _, w := range shell.ExpandBraces(in) {
		made := r.word(w)
		for part := range strings.SplitSeq(made.text, gap) {
			out = append(out, word{part, made.command})
		}
	}
	return out
}

func (r *reader) word(w *syntax.Word) (out word) {
	out.text = shell.Text(w, func(part syntax.WordPart, quoted bool) string {
		switch p := part.(type) {
		case *syntax.ParamExp:
			return r.param(p, quoted)
		case *syntax.CmdSubst, *syntax.ProcSubst:
			out.command = true
		}
		return hole
	})
	return out
}

func (r *reader) param(p *syntax.ParamExp, quoted bool) string {
	name := ""
	if p.Param != nil {
		name = p.Param.Value
	}
	if secretVariable(name) {
		r.out.Add(Secret, "$"+name)
	}
	plain := !p.Excl && !p.Length && !p.Width && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Exp == nil
	value, known := r.vars[name]
	switch {
	case name == "IFS" && !quoted:
		return gap
	case plain && known:
		return value
	case plain && name == "HOME":
		return "~"
	}
	return hole
}
