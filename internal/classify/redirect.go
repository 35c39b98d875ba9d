package classify

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/commands"
	"weir/internal/shell"
)

func (j *judge) redirects(s *syntax.Stmt) {
	for _, r := range s.Redirs {
		if !j.Step() {
			return
		}
		j.redirect(s, r)
	}
}

func (j *judge) redirect(s *syntax.Stmt, r *syntax.Redirect) {
	if r.Op != syntax.RdrIn && (r.N == nil || r.N.Value == "1") {
		j.Piped = j.Piped && (r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc || r.Op == syntax.WordHdoc) // also for what follows: it may be exec
	}
	if r.N != nil && !commands.Digits(r.N.Value) {
		j.grey(r, "redirect-write", "a descriptor that is put into a variable is not followed")
		return
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		j.heredoc(r)
		return
	case syntax.WordHdoc:
		j.single(r.Word)
		return
	}
	mark := len(j.words)
	j.words = j.fields(j.words, r.Word)
	words := j.words[mark:]
	j.words = j.words[:mark]
	if len(words) != 1 {
		j.grey(r, "redirect-write", "the target is not one word")
		return
	}
	w := words[0]
	switch {
	case commands.NetPath(w.Text, !w.Fixed):
		if w.Fixed || len(w.Text) >= len("/dev/tcp/") {
			j.FindWord(w, commands.Network, "redirect-net", "opens a network connection")
			j.Facts.Connection(w)
		} else {
			j.FindWord(w, commands.Grey, "redirect-net", "may open a network connection")
		}
		return
	case w.Split:
		j.FindWord(w, commands.Grey, "redirect-write", "the target is not known")
		return
	}
	switch r.Op {
	case syntax.RdrIn:
		j.Facts.Read(w)
	case syntax.DplIn, syntax.DplOut:
		if w.Fixed && (w.Text == "-" || commands.Digits(strings.TrimSuffix(w.Text, "-"))) {
			return
		}
		if r.Op == syntax.DplIn {
			j.FindWord(w, commands.Grey, "redirect-write", "the descriptor is not known")
			return
		}
		j.Write(w)
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrInOut:
		j.Write(w)
	case syntax.RdrAll, syntax.AppAll:
		j.Write(w)
		// POSIX shells take "a &> f b" for "a &" and "b > f".
		if s.Cmd != nil && s.Cmd.End().After(r.Pos()) {
			j.FindWord(w, commands.Grey, "redirect-write", "words behind &> are a command of their own in some shells")
		}
		for _, other := range s.Redirs {
			if other.Pos().After(r.Pos()) && other.N != nil {
				j.FindWord(w, commands.Grey, "redirect-write", "words behind &> are a command of their own in some shells")
			}
		}
	default:
		j.grey(r, "redirect-write", "this kind of redirection is not known")
	}
}

// heredoc walks a here-document. Only plain ends are accepted, and no line that some
// shell could take for the end.
func (j *judge) heredoc(r *syntax.Redirect) {
	end, quoted := "", false
	if len(r.Word.Parts) == 1 {
		switch p := r.Word.Parts[0].(type) {
		case *syntax.Lit:
			if end, quoted = p.Value, strings.HasPrefix(p.Value, "\\"); quoted {
				end = end[1:]
			}
		case *syntax.SglQuoted:
			if !p.Dollar {
				end, quoted = p.Value, true
			}
		case *syntax.DblQuoted:
			if len(p.Parts) == 1 && !p.Dollar {
				if l, ok := p.Parts[0].(*syntax.Lit); ok {
					end, quoted = l.Value, true
				}
			}
		}
	}
	if !shell.PlainEnd(end) {
		j.grey(r, "syntax", "shells differ in where this here-document ends")
		return
	}
	if r.Hdoc == nil || !j.Spend(int(r.Hdoc.End().Offset())-int(r.Hdoc.Pos().Offset())) {
		return
	}
	if j.continued {
		at := shell.At(r.Hdoc)
		if quoted {
			j.spans.Raw = append(j.spans.Raw, at)
		} else {
			j.spans.Touchy = append(j.spans.Touchy, at)
		}
	}
	if body := j.slice(r.Hdoc); shell.Early(body, end, r.Op == syntax.DashHdoc) {
		j.grey(r, "syntax", "shells differ in where this here-document ends")
		return
	}
	if quoted {
		return
	}
	b := shell.Builder{NoSplit: true}
	for _, p := range r.Hdoc.Parts {
		j.dblPart(&b, p)
	}
}
