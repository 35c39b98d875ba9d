package classify

import "weir/internal/classify/table"

// Class is local, network or grey; the zero value is grey.
type Class = table.Class

const (
	Grey    = table.Grey
	Local   = table.Local
	Network = table.Network
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
	Rule   string `json:"rule"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
	Text   string `json:"text"`
	Class  Class  `json:"-"` // of this part alone
}

// Facts are what later stages want to know of a command. Only literal values are
// listed, each once, in order.
type Facts struct {
	Programs []string // as they were called: /usr/bin/curl, grep
	URLs     []string
	Hosts    []string
	Reads    []string // files
	Writes   []string
	Listens  []string // addresses or ports of listening sockets
	Encoders []string // programs that change how data looks
	Install  bool
	Runtime  bool
	Upload   bool
	Download bool
}

// Result is how a text was judged. Its zero value is grey.
type Result struct {
	Class   Class
	Reasons []Reason
	Facts   Facts
}

// Observed is a command as the kernel saw it start.
type Observed struct {
	Argv      []string
	Env       []string // dangerous variables that are set: NAME or NAME=value
	File      string   // path of the file that runs, when known
	Truncated bool     // argv or the environment is not whole: never local
}

// Shell judges a text as bash and POSIX shells would read it.
func Shell(text string) Result {
	j := newJudge(text)
	j.source(text)
	return j.result()
}

// Argv judges a command that was seen to run.
func Argv(o Observed) Result {
	j := newJudge("")
	j.observed(o)
	return j.result()
}
