package classify

import (
	"strings"

	"weir/internal/commands"
	"weir/internal/shell"
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
	Rule   string         `json:"rule"`
	Offset int            `json:"offset"`
	Length int            `json:"length"`
	Text   string         `json:"text"`
	Class  commands.Class `json:"-"` // of this part alone
}

// judge is one classification. It walks a text in the order in which it runs.
type judge struct {
	Text string // what is parsed now
	// At is the word of the outer text that the parsed text was taken from; nil for
	// the outer text itself.
	At      *commands.Word
	Class   commands.Class
	Reasons []Reason
	Facts   Facts
	Shell   shellState
	Over    bool // a limit is reached
	Depth   int  // nesting of the syntax tree
	arrays  bool // a list of an array stands before this in the text: POSIX shells end at it, and run nothing of this
	Piped   bool // what is written to the standard output surely goes to no terminal

	git    Git
	found  map[string]string // what git said, by directory
	looked commands.Word     // a command of git whose repositories were looked at
	brings bool              // some part puts directories somewhere

	names map[string]bool // variables that some part of the text sets; true: or removes. A path that is not seen may lead there (F15)
	any   bool            // some part sets or removes a variable whose name is not seen

	spans     shell.Spans // kept only for texts with line continuations
	continued bool
	scanned   int             // nodes looked at ahead of the walk
	words     []commands.Word // a stack of the words of commands that are looked at

	nodes int              // parts looked at so far
	spent int              // bytes looked at so far
	wraps int              // commands inside commands
	calls []*commands.Call // reused, one for each level of wraps
}

// newJudge begins the classification of a text, or of an argv when it is empty.
func newJudge(text, dir string, git Git) *judge {
	return &judge{Text: text, Class: commands.Local, Shell: shellState{Dir: commands.In(dir)}, git: git}
}

// worse is the riskier of two classes (G10): network, then grey, then local.
func worse(a, b commands.Class) commands.Class {
	if a == commands.Network || b == commands.Network {
		return commands.Network
	}
	if a == commands.Grey || b == commands.Grey {
		return commands.Grey
	}
	return commands.Local
}

// maxReasons bounds what a hostile text can make the judge remember.
const maxReasons = 200

// Find notes a part that mattered, at bytes of the text that is parsed.
func (j *judge) Find(offset, length int, class commands.Class, rule, why string) {
	if j.At != nil {
		offset, length = j.At.Offset, j.At.Length
	}
	j.findAt(offset, length, class, rule, why)
}

func (j *judge) findAt(offset, length int, class commands.Class, rule, why string) {
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
func (j *judge) FindWord(w commands.Word, class commands.Class, rule, why string) {
	j.findAt(w.Offset, w.Length, class, rule, why)
}

// Step counts a part; false when the limits are reached.
func (j *judge) Step() bool { return j.within(&j.nodes, MaxNodes) }

func (j *judge) within(count *int, most int) bool {
	if *count++; *count > most && !j.Over {
		j.Over = true
		j.Find(0, len(j.Text), commands.Grey, "limit-nodes", "has too many parts to be judged")
	}
	return !j.Over
}

// maxSpent bounds the bytes that are looked at: loops, eval and variables make a text
// look at the same ones again and again.
const maxSpent = 4 * MaxText

// Spend counts bytes; false when the limits are reached.
func (j *judge) Spend(n int) bool {
	j.spent += n
	if j.spent > maxSpent && !j.Over {
		j.Over = true
		j.Find(0, len(j.Text), commands.Grey, "limit-nodes", "looks at too much text to be judged")
	}
	return !j.Over
}

// Write judges a file that is written to.
func (j *judge) Write(w commands.Word) {
	switch {
	case w.Fixed:
	case w.Text == "~":
		j.FindWord(w, commands.Grey, "redirect-write", "writes to a home directory, where start-up files are")
		return
	default:
		j.FindWord(w, commands.Grey, "redirect-write", "writes to a file whose name is not known")
		return
	}
	if why, ok := j.Shell.Dir.Writable(w.Text); !ok {
		j.FindWord(w, commands.Grey, "redirect-write", "writes to a file that "+why)
		return
	}
	if !commands.Device(w.Text) {
		j.Facts.Write(w.Text)
	}
}

// inner judges a text that is an argument (sh -c, eval, trap). fresh is a new shell.
func (j *judge) inner(w commands.Word, fresh bool, args []commands.Word) {
	if !w.Fixed {
		j.FindWord(w, commands.Network, "code-unknown", "a shell text that is not literal cannot be judged")
		return
	}
	j.wraps++
	defer func() { j.wraps-- }()
	if j.tooWrapped(w) || !j.Spend(len(w.Text)) {
		return
	}
	text, at, depth, shell, arrays := j.Text, j.At, j.Depth, j.Shell, j.arrays
	j.Text, j.At, j.Depth = w.Text, &w, 0
	if fresh {
		j.Shell, j.arrays = shell.program(args), false
	}
	j.nested(w.Text)
	if fresh {
		j.Shell = shell
	}
	j.Text, j.At, j.Depth, j.arrays = text, at, depth, arrays
}

func (j *judge) tooWrapped(w commands.Word) bool {
	if j.wraps <= MaxWraps {
		return false
	}
	if !j.Over {
		j.Over = true
		j.FindWord(w, commands.Grey, "limit-wraps", "has too many commands inside commands")
	}
	return true
}
