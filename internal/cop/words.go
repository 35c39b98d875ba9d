package cop

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// hole stands in a word for what is not known; a literal text never has it.
const hole = "\x00"

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
	for _, w := range in {
		for _, w := range braces(w) {
			made := r.word(w)
			for _, part := range strings.Split(made.text, gap) {
				out = append(out, word{part, made.command})
			}
		}
	}
	return out
}

// maxBraces bounds what one word with braces may become.
const maxBraces = 256

// braces expands {a,b}; what would become too many words is left as it is.
func braces(w *syntax.Word) []*syntax.Word {
	split := *w // SplitBraces changes the word that it is given
	split.Parts = slices.Clone(w.Parts)
	if !syntax.SplitBraces(&split) {
		return []*syntax.Word{w}
	}
	var out []*syntax.Word
	for made, err := range expand.BracesSeq(nil, &split) {
		if err != nil || len(out) == maxBraces {
			return []*syntax.Word{w}
		}
		out = append(out, made)
	}
	return out
}

func (r *reader) word(w *syntax.Word) word {
	var b strings.Builder
	out := word{}
	if w != nil {
		r.parts(&b, w.Parts, false, &out)
	}
	out.text = b.String()
	return out
}

func (r *reader) parts(b *strings.Builder, parts []syntax.WordPart, quoted bool, out *word) {
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescape(p.Value, quoted))
		case *syntax.SglQuoted:
			if !p.Dollar {
				b.WriteString(p.Value)
			} else if text, _, err := expand.Format(nil, p.Value, nil); err == nil {
				b.WriteString(text)
			} else {
				b.WriteString(hole)
			}
		case *syntax.DblQuoted:
			r.parts(b, p.Parts, true, out)
		case *syntax.ParamExp:
			r.param(b, p, quoted)
		case *syntax.CmdSubst, *syntax.ProcSubst:
			out.command = true
			b.WriteString(hole)
		default:
			b.WriteString(hole)
		}
	}
}

func (r *reader) param(b *strings.Builder, p *syntax.ParamExp, quoted bool) {
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
		b.WriteString(gap)
	case plain && known:
		b.WriteString(value)
	case plain && name == "HOME":
		b.WriteString("~")
	default:
		b.WriteString(hole)
	}
}

// unescape takes the backslashes out of a literal.
func unescape(s string, quoted bool) string {
	if !strings.ContainsAny(s, "\\"+hole+gap) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '\\' && i+1 < len(s) && (!quoted || strings.IndexByte("$`\"\\\n", s[i+1]) >= 0) {
			i++
			if s[i] != '\n' {
				b.WriteByte(s[i])
			}
			continue
		}
		if c != hole[0] && c != gap[0] {
			b.WriteByte(c)
		}
	}
	return b.String()
}
