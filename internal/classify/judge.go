package classify

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/classify/table"
)

// judge is one classification. It walks a text in the order in which it runs.
type judge struct {
	text string // what is parsed now
	// at is the word of the outer text that the parsed text was taken from; nil for
	// the outer text itself.
	at      *table.Word
	class   Class
	reasons []Reason
	facts   Facts

	nodes int // parts looked at so far
	depth int // nesting of the syntax tree
	wraps int // commands inside commands
	over  bool

	shell state
	// raw are quoted places that are taken as they are, quoted those in double
	// quotes, touchy comments and here-documents; kept only for texts with line continuations.
	raw, quoted, touchy []span
	continued           bool

	words []table.Word // a stack of the words of commands that are looked at
	calls []*table.Call
}

func newJudge(text string) *judge { return &judge{text: text, class: Local} }

// result ends the classification.
func (j *judge) result() Result { return Result{Class: j.class, Reasons: j.reasons, Facts: j.facts} }

// worse is the riskier of two classes (G10): network, then grey, then local.
func worse(a, b Class) Class {
	if a == Network || b == Network {
		return Network
	}
	if a == Grey || b == Grey {
		return Grey
	}
	return Local
}

// maxReasons bounds what a hostile text can make the judge remember.
const maxReasons = 200

// find notes a part that mattered, at bytes of the text that is parsed.
func (j *judge) find(offset, length int, class Class, rule, why string) {
	if j.at != nil {
		offset, length = j.at.Offset, j.at.Length
	}
	j.findAt(offset, length, class, rule, why)
}

func (j *judge) findAt(offset, length int, class Class, rule, why string) {
	worst := worse(j.class, class)
	if len(j.reasons) >= maxReasons {
		if worst == j.class {
			return
		}
		j.reasons = j.reasons[:maxReasons-1]
	}
	j.class = worst
	if j.reasons == nil {
		j.reasons = make([]Reason, 0, 4)
	}
	j.reasons = append(j.reasons, Reason{Rule: rule, Offset: offset, Length: length, Text: why, Class: class})
}

// findIn notes a node of the syntax tree.
func (j *judge) findIn(n syntax.Node, class Class, rule, why string) {
	from := int(n.Pos().Offset())
	j.find(from, max(0, int(n.End().Offset())-from), class, rule, why)
}

func (j *judge) grey(n syntax.Node, rule, why string) { j.findIn(n, Grey, rule, why) }

// findWord notes a word of a command; its place is that in the outer text already.
func (j *judge) findWord(w table.Word, class Class, rule, why string) {
	j.findAt(w.Offset, w.Length, class, rule, why)
}

// place gives w the place of a node.
func (j *judge) place(w table.Word, n syntax.Node) table.Word {
	if j.at != nil {
		w.Offset, w.Length = j.at.Offset, j.at.Length
		return w
	}
	w.Offset = int(n.Pos().Offset())
	w.Length = int(n.End().Offset()) - w.Offset
	return w
}

// step counts a part; false when the limits are reached.
func (j *judge) step() bool {
	j.nodes++
	if j.nodes > MaxNodes && !j.over {
		j.over = true
		j.find(0, len(j.text), Grey, "limit-nodes", "has too many parts to be judged")
	}
	return !j.over
}

// down goes one level deeper; false when that is too deep. Each down needs an up.
func (j *judge) down(n syntax.Node) bool {
	j.depth++
	if j.depth > MaxDepth {
		if !j.over {
			j.over = true
			j.grey(n, "limit-depth", "is nested too deep to be judged")
		}
		return false
	}
	return j.step()
}

func (j *judge) up() { j.depth-- }

// source judges a whole text in the present state of the shell.
func (j *judge) source(text string) {
	if len(text) > MaxText {
		j.find(0, len(text), Grey, "limit-text", "is too long to be judged")
		return
	}
	if len(text) > maxSimple && crowded(text) {
		j.find(0, len(text), Grey, "limit-nodes", "has too many parts to be judged")
		return
	}
	f := j.parse(text)
	if f == nil {
		return
	}
	j.continued = strings.Contains(text, "\\\n")
	j.stmts(f.Stmts)
	if j.continued {
		j.comments(f)
		j.continuations()
	}
}

// comments notes where comments are.
func (j *judge) comments(f *syntax.File) {
	syntax.Walk(f, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.Comment); ok {
			j.touchy = append(j.touchy, span{int(c.Pos().Offset()), int(c.End().Offset())})
		}
		return true
	})
}

// inner judges a text that is an argument (sh -c, eval, trap). fresh is a new shell.
func (j *judge) inner(w table.Word, fresh bool, args []table.Word) {
	if !w.Fixed {
		j.findWord(w, Network, "code-unknown", "a shell text that is not literal cannot be judged")
		return
	}
	j.wraps++
	defer func() { j.wraps-- }()
	if j.tooWrapped(w) {
		return
	}
	text, at, raw, quoted, touchy, continued, depth := j.text, j.at, j.raw, j.quoted, j.touchy, j.continued, j.depth
	shell := j.shell
	j.text, j.at, j.raw, j.quoted, j.touchy, j.depth = w.Text, &w, nil, nil, nil, 0
	if fresh {
		j.shell = shell.program(args)
	}
	j.source(w.Text)
	if fresh {
		j.shell = shell
	}
	j.text, j.at, j.raw, j.quoted, j.touchy, j.continued, j.depth = text, at, raw, quoted, touchy, continued, depth
}

func (j *judge) tooWrapped(w table.Word) bool {
	if j.wraps <= MaxWraps {
		return false
	}
	if !j.over {
		j.over = true
		j.findWord(w, Grey, "limit-wraps", "has too many commands inside commands")
	}
	return true
}
