package command

import (
	"strings"

	"weir/internal/classify/facts"
	"weir/internal/classify/rules"
	"weir/internal/classify/table"
)

// Limits. What is over one is grey, with its own reason.
const (
	MaxText  = 1 << 20 // bytes of a text, or of an argv in all
	MaxNodes = 20_000  // parts of a text that are looked at
	MaxDepth = 60      // nesting of brackets and substitutions
	MaxWraps = 12      // commands inside commands: sh -c, eval, xargs, env
)

// Reason says what part of the input mattered and why. Offset and Length count
// bytes of the text; for an argv, of its words joined by single spaces.
type Reason struct {
	Rule   string      `json:"rule"`
	Offset int         `json:"offset"`
	Length int         `json:"length"`
	Text   string      `json:"text"`
	Class  table.Class `json:"-"` // of this part alone
}

// Judge is one classification.
type Judge struct {
	Text string // what is parsed now
	// At is the word of the outer text that the parsed text was taken from; nil for
	// the outer text itself.
	At      *table.Word
	Class   table.Class
	Reasons []Reason
	Facts   facts.Facts
	Shell   State
	Over    bool // a limit is reached
	Depth   int  // nesting of the syntax tree

	// Source judges a text in the present state of the shell; whoever reads texts sets it.
	Source func(text string)

	nodes int           // parts looked at so far
	spent int           // bytes looked at so far
	wraps int           // commands inside commands
	calls []*table.Call // reused, one for each level of wraps
}

// New begins the classification of a text, or of an argv when it is empty.
func New(text string) *Judge { return &Judge{Text: text, Class: table.Local} }

// worse is the riskier of two classes (G10): network, then grey, then local.
func worse(a, b table.Class) table.Class {
	if a == table.Network || b == table.Network {
		return table.Network
	}
	if a == table.Grey || b == table.Grey {
		return table.Grey
	}
	return table.Local
}

// maxReasons bounds what a hostile text can make the judge remember.
const maxReasons = 200

// Find notes a part that mattered, at bytes of the text that is parsed.
func (j *Judge) Find(offset, length int, class table.Class, rule, why string) {
	if j.At != nil {
		offset, length = j.At.Offset, j.At.Length
	}
	j.findAt(offset, length, class, rule, why)
}

func (j *Judge) findAt(offset, length int, class table.Class, rule, why string) {
	if strings.HasPrefix(rule, "limit-") {
		j.Facts.Cut = true // the rest is not looked at
	}
	for i := max(0, len(j.Reasons)-32); i < len(j.Reasons); i++ {
		if r := &j.Reasons[i]; r.Offset == offset && r.Length == length && r.Rule == rule {
			return // a loop's body is judged for each value
		}
	}
	worst := worse(j.Class, class)
	if len(j.Reasons) >= maxReasons {
		if worst == j.Class {
			return
		}
		j.Reasons = j.Reasons[:maxReasons-1]
	}
	j.Class = worst
	if j.Reasons == nil {
		j.Reasons = make([]Reason, 0, 4)
	}
	j.Reasons = append(j.Reasons, Reason{Rule: rule, Offset: offset, Length: length, Text: why, Class: class})
}

// FindWord notes a word of a command; its place is that in the outer text already.
func (j *Judge) FindWord(w table.Word, class table.Class, rule, why string) {
	j.findAt(w.Offset, w.Length, class, rule, why)
}

// Step counts a part; false when the limits are reached.
func (j *Judge) Step() bool {
	j.nodes++
	if j.nodes > MaxNodes && !j.Over {
		j.Over = true
		j.Find(0, len(j.Text), table.Grey, "limit-nodes", "has too many parts to be judged")
	}
	return !j.Over
}

// maxSpent bounds the bytes that are looked at: loops, eval and variables make a text
// look at the same ones again and again.
const maxSpent = 4 * MaxText

// Spend counts bytes; false when the limits are reached.
func (j *Judge) Spend(n int) bool {
	j.spent += n
	if j.spent > maxSpent && !j.Over {
		j.Over = true
		j.Find(0, len(j.Text), table.Grey, "limit-nodes", "looks at too much text to be judged")
	}
	return !j.Over
}

// Write judges a file that is written to.
func (j *Judge) Write(w table.Word) {
	switch {
	case w.Fixed:
	case w.Text == "~":
		j.FindWord(w, table.Grey, "redirect-write", "writes to a home directory, where start-up files are")
		return
	default:
		j.FindWord(w, table.Grey, "redirect-write", "writes to a file whose name is not known")
		return
	}
	if why, ok := j.Shell.Dir.Writable(w.Text); !ok {
		j.FindWord(w, table.Grey, "redirect-write", "writes to a file that "+why)
		return
	}
	if !rules.Device(w.Text) {
		j.Facts.Write(w.Text)
	}
}

// inner judges a text that is an argument (sh -c, eval, trap). fresh is a new shell.
func (j *Judge) inner(w table.Word, fresh bool, args []table.Word) {
	if !w.Fixed {
		j.FindWord(w, table.Network, "code-unknown", "a shell text that is not literal cannot be judged")
		return
	}
	j.wraps++
	defer func() { j.wraps-- }()
	if j.tooWrapped(w) || !j.Spend(len(w.Text)) {
		return
	}
	text, at, depth, shell := j.Text, j.At, j.Depth, j.Shell
	j.Text, j.At, j.Depth = w.Text, &w, 0
	if fresh {
		j.Shell = shell.program(args)
	}
	j.Source(w.Text)
	if fresh {
		j.Shell = shell
	}
	j.Text, j.At, j.Depth = text, at, depth
}

func (j *Judge) tooWrapped(w table.Word) bool {
	if j.wraps <= MaxWraps {
		return false
	}
	if !j.Over {
		j.Over = true
		j.FindWord(w, table.Grey, "limit-wraps", "has too many commands inside commands")
	}
	return true
}
