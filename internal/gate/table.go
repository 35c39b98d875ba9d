package gate

import (
	"slices"

	"weir/internal/classify"
)

// Level is how much taint a container has.
type Level string

// The levels: by the number of bits that are set (G7, G8).
const (
	Clean Level = "none"
	One   Level = "one"
	Both  Level = "both"
)

func levelOf(bits []string) Level {
	switch len(bits) {
	case 0:
		return Clean
	case 1:
		return One
	}
	return Both
}

// Point is where a command is judged.
type Point string

// The points.
const (
	Seen  Point = "seen"  // it was seen to run: it runs sealed, and is judged again when it wants out
	Asked Point = "asked" // it has not gone on yet, and waits: over the bridge, or frozen as it was executed
	Out   Point = "out"   // it wants to get out
)

// Step is what a row of the table does.
type Step string

// The steps. Where a step fails, Failures says what follows.
const (
	Pass   Step = "allow"
	Review Step = "review" // by the Cop: not flagged allows, flagged is Row.Flagged
	Person Step = "person"
	Refuse Step = "deny"

	ByPolicy Step = "cop.flagged" // in Row.Flagged only: what the policy says there, Refuse or Person
)

// Row is a line of the decision table. It applies where all of its lists have
// what is asked.
type Row struct {
	Modes   []string         `json:"modes"`
	Levels  []Level          `json:"taint"`
	Classes []classify.Class `json:"-"`
	Points  []Point          `json:"points"`
	Step    Step             `json:"step"`
	Flagged Step             `json:"flagged,omitempty"` // with Review
	Reason  Reason           `json:"reason,omitempty"`  // with Pass and Refuse
	Why     string           `json:"why"`
}

var (
	modes    = []string{modeObserve, modeEnforce, modeSeal}
	levels   = []Level{Clean, One, Both}
	classes  = []classify.Class{classify.Local, classify.Network, classify.Grey}
	points   = []Point{Seen, Asked, Out}
	tainted  = []Level{One, Both}
	enforced = []string{modeEnforce, modeSeal}
	enforce  = []string{modeEnforce} // seal asks nobody: what would have to be asked about is refused
	seal     = []string{modeSeal}
)

// Table is the cascade (G4 to G8, G24, G25): the first row that applies decides.
func Table() []Row {
	return []Row{
		{seal, levels, classes, []Point{Out}, Refuse, "", Sealed, "the mode is seal: nothing leaves, whatever the verdict"},
		{modes, []Level{Clean}, classes, points, Pass, "", Untainted, "nothing was read that matters"},
		{[]string{modeObserve}, tainted, classes, points, Pass, "", Observe, "the mode is observe: nothing is denied"},
		{enforced, tainted, []classify.Class{classify.Local}, []Point{Seen, Asked}, Pass, "", LocalRun, "it provably stays here; nothing is opened for it"},
		{enforced, tainted, []classify.Class{classify.Network, classify.Grey}, []Point{Seen}, Pass, "", SealedRun, "it may run; what it sends is judged when it tries"},
		{seal, tainted, []classify.Class{classify.Network, classify.Grey}, []Point{Asked}, Refuse, "", Sealed, "the mode is seal: nobody is asked, since no answer opens anything"},
		{enforce, []Level{One}, []classify.Class{classify.Network}, []Point{Asked, Out}, Review, ByPolicy, "", "one bit: the reviewer decides"},
		{enforce, []Level{Both}, []classify.Class{classify.Network}, []Point{Asked, Out}, Person, "", "", "both bits: untrusted input and a secret are in one place"},
		{enforce, []Level{One}, []classify.Class{classify.Grey}, []Point{Asked, Out}, Review, ByPolicy, "", "one bit: the reviewer decides"},
		{enforce, []Level{Both}, []classify.Class{classify.Grey}, []Point{Asked, Out}, Review, Person, "", "both bits: a person decides what the reviewer flags"},
		{enforce, []Level{One}, []classify.Class{classify.Local}, []Point{Out}, Review, ByPolicy, "", "local opens nothing: it is not what it seemed, so it is judged as grey"},
		{enforce, []Level{Both}, []classify.Class{classify.Local}, []Point{Out}, Review, Person, "", "the same"},
	}
}

// rowFor is the row that applies to a request, with what its policy says of flagged commands.
func rowFor(table []Row, r Request, c classify.Class) Row {
	row := rowOf(table, r.Mode, levelOf(r.Container.Taint), c, pointOf(r))
	if r.Person && row.Step == Review {
		row.Step, row.Flagged, row.Why = Person, "", "a person decides on what is pushed from a tainted container"
	}
	if r.ReviewExec && row.Reason == SealedRun {
		row.Reason, row.Why = ReviewExec, "review: exec stops it, and the verdict on it follows; where it cannot be stopped it runs sealed"
	}
	switch {
	case row.Flagged != ByPolicy:
	case r.AskFlagged:
		row.Flagged = Person
	default:
		row.Flagged = Refuse
	}
	return row
}

// rowOf is the row that applies. Were there none, the zero Row would deny.
func rowOf(table []Row, mode string, l Level, c classify.Class, p Point) Row {
	i := slices.IndexFunc(table, func(r Row) bool {
		return slices.Contains(r.Modes, mode) && slices.Contains(r.Levels, l) && slices.Contains(r.Classes, c) && slices.Contains(r.Points, p)
	})
	if i < 0 {
		return Row{Step: Refuse, Reason: Malformed, Why: "no row of the decision table applies"}
	}
	return table[i]
}

// Failure is a way in which the cascade fails in a tainted container (G9). Then is
// Person, who is asked where the policy has one and everybody is denied otherwise,
// or Refuse.
type Failure struct {
	Reason Reason `json:"reason"`
	Then   Step   `json:"then"`
	What   string `json:"what"`
}

// Failures are the rows of what goes wrong. None of them allows.
func Failures() []Failure {
	return []Failure{
		{Unparsable, Person, "the command's text is no shell text"},
		{TextLimit, Person, "the command is too long, too deep or has too many parts to be judged"},
		{ArgvLimit, Person, "the kernel did not see all of the arguments or the environment; an answer counts for that process alone"},
		{Differs, Person, "a process below an approved command is not what was approved"},
		{CopTimeout, Person, "the reviewer gave no answer within its time"},
		{CopTransport, Person, "the reviewer was not reached, or the connection closed in the middle, twice"},
		{CopRateLimited, Person, "the reviewer's service answered 429"},
		{CopServer, Person, "the reviewer's service answered with a status of 500 or more"},
		{CopRefused, Person, "the reviewer's service refused: a wrong key, an unknown model"},
		{CopMalformed, Person, "the reviewer answered, but not in the one form"},
		{CopTooLarge, Person, "the command and its facts are more than a reviewer is shown"},
		{CopQueueFull, Person, "too many reviews wait"},
		{CopClosed, Person, "the reviewer is being replaced or the sensor stops"},
		{CopCancelled, Person, "the asker went away during the review"},
		{CopNone, Person, "the policy names no reviewer"},
		{CopFailed, Person, "the reviewer failed in another way"},
		{NoApprover, Refuse, "a person is needed, and the policy has none"},
		{Timeout, Refuse, "nobody answered in time"},
		{QueueFull, Refuse, "too many questions wait, or too many ask the same"},
		{Flood, Refuse, "the container has its share of the questions, or asks too often"},
		{Malformed, Refuse, "the request does not say who wants what: there is nothing to approve"},
		{StoreFailed, Refuse, "the question or its answer could not be made durable"},
		{LogFailed, Refuse, "the event could not be written"},
		{Cancelled, Refuse, "the asker went away, or the sensor stops"},
		{Unsound, Refuse, "the verdict would have broken a rule that always holds: a fault of the sensor's"},
		{UsedOnce, Refuse, "another process that asked the same has the approval"},
	}
}

func reasons() []Reason {
	all := []Reason{Untainted, Observe, LocalRun, SealedRun, ReviewExec, Passed, Approved, Recognised, Standing, Denied, Flagged, Sealed, QUIC, Unclaimed}
	for _, f := range Failures() {
		all = append(all, f.Reason)
	}
	return all
}
