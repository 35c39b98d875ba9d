package gate

import (
	"time"

	"weir/internal/classify"
	"weir/internal/event"
)

// Ask is what a request wants. Its zero value is what is judged hardest.
type Ask uint8

// What can be asked.
const (
	Connect Ask = iota // to reach Destination
	Run                // to go on with Process, which was seen to be executed; Destination is not looked at
	Command            // to run Command, before it runs; Process is the one that asks
	Tool               // to call a tool, as Command words it; only Confirm takes it
)

// Request is one thing that a process in a container wants to do, as the host
// established it.
type Request struct {
	Container   event.Container // Taint holds the names of the bits, with those of ancestors; any name counts
	Process     event.Process
	Destination event.Destination
	Command     string // a shell text, with Ask Command; what a call would do, with Ask Tool
	Dir         string // where it would run, if that is known
	Ask         Ask
	Above       []event.Member // with Ask Connect: the asker's parents that an approval can cover, nearest first
	Held        bool           // the asker waits in the kernel; false: it was refused and may retry, or waits for an answer over a bridge
	Mode        string         // observe, enforce or seal
	AskFlagged  bool           // a person is asked about what the reviewer flags, also with one taint bit (cop.flagged)
	ReviewExec  bool           // with Ask Run, not held: the policy has commands stopped as they are executed, and judged (review: exec)
	Person      bool           // a person decides where the reviewer would (G22)
	Policy      string         // its version, for the reviewer's cache

	GrantSeconds int     // for how long an approval opens Destination; 0: not known
	GrantBytes   int64   // and for how many bytes, upstream; 0: not known
	CopBytes     int64   // for how many where the reviewer let it
	Covers       []Cover // with Ask Tool: what an approval can cover beyond the call

	TaintRead time.Duration `json:"-"` // since boot, when Container.Taint was read: what is cleared afterwards it has no more; 0: as it is decided

	Git classify.Git `json:"-"` // looks at the repositories of a command; nil: nobody can any more

	Judged *classify.Result // how it was classified; the gate's
	Failed Reason           // what failed, so that a person has to decide; the gate's
}

var asks = []Ask{Connect, Run, Command}

// The modes; an empty one is enforce.
const (
	modeObserve = "observe"
	modeEnforce = "enforce"
	modeSeal    = "seal"
)

// pointOf is where in the cascade a request stands.
func pointOf(r Request) Point {
	switch {
	case r.Ask == Connect:
		return Out
	case r.Ask == Run && !r.Held:
		return Seen
	}
	return Asked
}
