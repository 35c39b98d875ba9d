package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/classify/command"
	"weir/internal/classify/lex"
	"weir/internal/classify/table"
)

// walker walks a text in the order in which it runs.
type walker struct {
	*command.Judge

	spans     lex.Spans // kept only for texts with line continuations
	continued bool

	scanned int // nodes looked at ahead of the walk

	words []table.Word // a stack of the words of commands that are looked at
}

// Attach makes j read texts as bash does.
func Attach(j *command.Judge) {
	w := &walker{Judge: j}
	j.Source = w.inner
}

// inner judges a text that may stand in another one.
func (j *walker) inner(text string) {
	spans, continued := j.spans, j.continued
	j.spans = lex.Spans{}
	j.source(text)
	j.spans, j.continued = spans, continued
}

// source judges a whole text in the present state of the shell.
func (j *walker) source(text string) {
	if len(text) > command.MaxText {
		j.Find(0, len(text), table.Grey, "limit-text", "is too long to be judged")
		return
	}
	f, refused := lex.Parse(text)
	if refused != nil {
		j.Find(refused.From, refused.To-refused.From, table.Grey, refused.Rule, refused.Why)
		return
	}
	j.continued = strings.Contains(text, "\\\n")
	j.stmts(f.Stmts)
	if j.continued {
		j.spans.Touchy = append(j.spans.Touchy, lex.Comments(f)...)
		if i := j.spans.Continuation(text); i >= 0 {
			j.Find(i, 2, table.Grey, "syntax", "a line continuation stands where shells read it in different ways")
		}
	}
}

// findIn notes a node of the syntax tree.
func (j *walker) findIn(n syntax.Node, class table.Class, rule, why string) {
	from := int(n.Pos().Offset())
	j.Find(from, max(0, int(n.End().Offset())-from), class, rule, why)
}

func (j *walker) grey(n syntax.Node, rule, why string) { j.findIn(n, table.Grey, rule, why) }

// local notes a part that is local.
func (j *walker) local(n syntax.Node, why string) { j.findIn(n, table.Local, "local", why) }

// place gives w the place of a node.
func (j *walker) place(w table.Word, n syntax.Node) table.Word {
	if j.At != nil {
		w.Offset, w.Length = j.At.Offset, j.At.Length
		return w
	}
	w.Offset = int(n.Pos().Offset())
	w.Length = int(n.End().Offset()) - w.Offset
	return w
}

// down goes one level deeper; false when that is too deep. Each down needs an up.
func (j *walker) down(n syntax.Node) bool {
	j.Depth++
	if j.Depth > command.MaxDepth {
		if !j.Over {
			j.Over = true
			j.grey(n, "limit-depth", "is nested too deep to be judged")
		}
		return false
	}
	return j.Step()
}

func (j *walker) up() { j.Depth-- }

// maxScanned bounds the nodes that are looked at ahead, for what a loop or a function
// assigns: nested loops look at the same ones again and again.
const maxScanned = 10 * command.MaxNodes

// scan counts a node that is looked at ahead; false when there are too many.
func (j *walker) scan() bool {
	j.scanned++
	if j.scanned > maxScanned && !j.Over {
		j.Over = true
		j.Find(0, len(j.Text), table.Grey, "limit-nodes", "has too many parts to be judged")
	}
	return !j.Over
}
