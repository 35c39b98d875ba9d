package classify

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/commands"
	"weir/internal/shell"
)

// nested judges a text that may be part of another one.
func (j *judge) nested(text string) {
	spans, continued := j.spans, j.continued
	j.spans = shell.Spans{}
	j.source(text)
	j.spans, j.continued = spans, continued
}

// source judges a whole text in the present state of the shell.
func (j *judge) source(text string) {
	if len(text) > MaxText {
		j.Find(0, len(text), commands.Grey, "limit-text", "is too long to be judged")
		return
	}
	f, refused := shell.Parse(text)
	if refused != nil {
		j.Find(refused.From, refused.To-refused.From, commands.Grey, refused.Rule, refused.Why)
		return
	}
	j.continued = strings.Contains(text, "\\\n")
	j.stmts(f.Stmts)
	if j.continued {
		j.spans.Touchy = append(j.spans.Touchy, shell.Comments(f)...)
		if i := j.spans.Continuation(text); i >= 0 {
			j.Find(i, 2, commands.Grey, "syntax", "a line continuation stands where shells read it in different ways")
		}
	}
}

// findIn notes a node of the syntax tree.
func (j *judge) findIn(n syntax.Node, class commands.Class, rule, why string) {
	from := int(n.Pos().Offset())
	j.Find(from, max(0, int(n.End().Offset())-from), class, rule, why)
}

func (j *judge) grey(n syntax.Node, rule, why string) { j.findIn(n, commands.Grey, rule, why) }

// local notes a part that is local.
func (j *judge) local(n syntax.Node, why string) { j.findIn(n, commands.Local, "local", why) }

// place gives w the place of a node.
func (j *judge) place(w commands.Word, n syntax.Node) commands.Word {
	if j.At != nil {
		w.Offset, w.Length = j.At.Offset, j.At.Length
		return w
	}
	w.Offset = int(n.Pos().Offset())
	w.Length = int(n.End().Offset()) - w.Offset
	return w
}

// down goes one level deeper; false when that is too deep. Each down needs an up.
func (j *judge) down(n syntax.Node) bool {
	j.Depth++
	if j.Depth > MaxDepth {
		if !j.Over {
			j.Over = true
			j.grey(n, "limit-depth", "is nested too deep to be judged")
		}
		return false
	}
	return j.Step()
}

func (j *judge) up() { j.Depth-- }

// maxScanned bounds the nodes that are looked at ahead, for what a loop or a function
// assigns: nested loops look at the same ones again and again.
const maxScanned = 10 * MaxNodes

// scan counts a node that is looked at ahead; false when there are too many.
func (j *judge) scan() bool { return j.within(&j.scanned, maxScanned) }
