package gate

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"time"

	"weir/internal/classify"
	"weir/internal/event"
)

// The states of a question.
const (
	StatePending  = "pending"
	StateApproved = "approved" // and not used yet
	StateDenied   = "denied"
	StateExpired  = "expired" // nobody answered, or nobody claimed the approval in time
	StateUsed     = "used"
)

// Question is what a person is asked, and what became of it. Text in Container,
// Process and Destination comes from a container and may hold anything: make it
// visible before it is shown. Its slices are shared and must not be changed.
type Question struct {
	ID          string            `json:"id"`
	Container   event.Container   `json:"container"`
	Process     event.Process     `json:"process"` // the first asker
	Destination event.Destination `json:"destination,omitzero"`
	Text        string            `json:"text,omitempty"`   // the command that a bridge was asked about; Process is who asked
	To          []classify.Place  `json:"to,omitempty"`     // where an approval of a command lets it go
	Tool        bool              `json:"tool,omitempty"`   // Text is what a call of a tool would do
	Note        string            `json:"note,omitempty"`   // why a person is asked: what the reviewer said, or how the review failed
	Failed      Reason            `json:"failed,omitempty"` // why a person has to decide, where something failed before
	Held        bool              `json:"held"`             // the first asker was held in the kernel
	Half        []string          `json:"half,omitempty"`   // who has approved it, where two people have to; of what is pending
	Gone        bool              `json:"gone,omitempty"`   // an asker waited, and nobody does any more; of what has ended: by then

	// Why the container was tainted when it was asked: of each bit what set it first, and what set it last.
	Causes []event.Cause `json:"causes,omitempty"`

	// Who an approval can let out with what it starts: the first asker, then its parents. Empty: an answer lets no process out.
	Chain        []event.Member `json:"chain,omitempty"`
	GrantSeconds int            `json:"grant_seconds,omitempty"` // for how long, as the policy said; 0: not known
	GrantBytes   int64          `json:"grant_bytes,omitempty"`   // and how many bytes, upstream; 0: not known
	Covers       []Cover        `json:"covers,omitempty"`        // what an approval of a tool's call can cover beyond it

	Asked    time.Time     `json:"asked"`    // UTC
	Deadline time.Time     `json:"deadline"` // UTC; unanswered by then it is denied
	State    string        `json:"state"`
	By       string        `json:"by,omitempty"`       // who answered
	Why      string        `json:"why,omitempty"`      // as given with the answer
	Scope    int           `json:"scope,omitempty"`    // of an approval: the place in Chain of who is let out, from 1
	For      string        `json:"for,omitempty"`      // of an approval: of a tool's call session or key, of a connection session or a time; empty: once
	Rule     string        `json:"rule,omitempty"`     // with For: of the one of Covers that was given
	Standing string        `json:"standing,omitempty"` // of an approval of a connection, with For: the id of the approval that goes on
	From     *event.Origin `json:"from,omitempty"`     // where the answer came from
	Shown    *event.Shown  `json:"shown,omitempty"`    // what who answered had before them
	Answered time.Time     `json:"answered,omitzero"`  // or expired; UTC
	Outcome  Reason        `json:"outcome,omitempty"`  // what those who waited were told
	Askers   int           `json:"askers"`             // processes that asked it
}

// Again says whether a command has to be run again to use q's approval.
func (q Question) Again() bool {
	return q.Outcome == Approved && (q.Gone || !q.Held && q.Text == "")
}

// Alike says whether q and o are of the same program of one container, and about the same destination.
func (q Question) Alike(o Question) bool {
	if q.Text != "" || o.Text != "" || q.Container.ID != o.Container.ID || q.Destination != o.Destination || q.Process.Exe == nil || o.Process.Exe == nil {
		return false
	}
	return *q.Process.Exe == *o.Process.Exe && q.Process.UID == o.Process.UID
}

// Groups puts questions that are alike behind the first of them; the order is kept otherwise.
func Groups(list []Question) [][]Question {
	var all [][]Question
	for _, q := range list {
		if i := slices.IndexFunc(all, func(g []Question) bool { return g[0].Alike(q) }); i >= 0 {
			all[i] = append(all[i], q)
		} else {
			all = append(all, []Question{q})
		}
	}
	return all
}

// Root is whom an approval with a scope above 1 lets out; nil: the asker.
func (q Question) Root() *event.Member {
	if q.Scope < 2 || q.Scope > len(q.Chain) {
		return nil
	}
	return &q.Chain[q.Scope-1]
}

// Request is q as its first asker put it, for events.
func (q Question) Request() Request {
	r := Request{Container: q.Container, Process: q.Process, Destination: q.Destination, Command: q.Text, Held: q.Held, Failed: q.Failed}
	switch {
	case q.Tool:
		r.Ask = Tool
	case q.Text != "":
		r.Ask = Command
	case q.Destination == event.Destination{}:
		r.Ask = Run
	}
	return r
}

// process names one process of this boot: a pid alone is reused.
type process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

// record is a question as it is stored.
type record struct {
	Question
	Command   string    `json:"command,omitempty"`    // digest of argv and environment names, before JSON replaces bytes
	Bound     bool      `json:"bound,omitempty"`      // to the first asker: another process never matches
	Claim     time.Time `json:"claim_until,omitzero"` // end of the approval, or of the denial for its askers
	Asking    []process `json:"asking"`
	ClaimedBy process   `json:"claimed_by,omitzero"` // who was given the approval

	Boot string        `json:"boot,omitempty"` // in which Ends counts; empty: the wall clock does
	Ends time.Duration `json:"ends,omitempty"` // of the present state, since then
}

// question is a record that can still lead to a verdict.
type question struct {
	record
	until   time.Time // end of its present state, on the queue's clock
	waiters []*waiter // in the order of asking
}

// waiter is one blocked Decide.
type waiter struct {
	CheckedRequest
	question *question
	answer   chan Verdict // holds one
}

// CheckedRequest is a request that was checked, with what it is matched by.
type CheckedRequest struct {
	Request
	self    process
	command string
	bound   bool
	chain   []event.Member // as Question.Chain
	Why     string         // why a person is asked, where there is more to say than the table's row
}

// matches says whether a's request is the one that q asks about (G16). The
// kernel's hash of argv can be collided on purpose, so argv itself counts too;
// only the very process that asked may come without it.
func (q *question) matches(a CheckedRequest) bool {
	if q.Container.ID != a.Container.ID || q.Destination != a.Destination || (q.Text != "") != (a.Request.Command != "") {
		return false
	}
	if q.Text != "" {
		return q.Command == a.command
	}
	if !sameImage(q.Process, a.Process) {
		return false
	}
	if q.Asking[0] == a.self {
		return q.Command == a.command || q.Command == "" || a.command == ""
	}
	return !q.Bound && !a.bound && q.Command == a.command
}

func (q *question) asked(p process) bool {
	for _, a := range q.Asking {
		if a == p {
			return true
		}
	}
	return false
}

func sameImage(p, o event.Process) bool {
	pd, pi := exeID(p)
	od, oi := exeID(o)
	return pd == od && pi == oi && p.ArgvHash == o.ArgvHash && p.UID == o.UID
}

func exeID(p event.Process) (device, inode uint64) {
	if p.Exe == nil {
		return 0, 0
	}
	return p.Exe.Device, p.Exe.Inode
}

// bound says whether p cannot be told from other programs by its command: then
// only the process itself can use an answer. The inode of a file without a name
// may be another program's by the time of the retry.
func bound(p event.Process) bool {
	_, inode := exeID(p)
	return inode == 0 || p.Exe.Memfd || p.Exe.Deleted || p.ArgvHash == 0 || len(p.Argv) == 0 || p.Truncated
}

// Digest names a text that is shown, or a command's.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// command digests what the person sees of the command beside its file.
func command(p event.Process) string {
	if len(p.Argv) == 0 {
		return ""
	}
	h := sha256.New()
	for _, list := range [][]string{p.Argv, p.Env} {
		write := func(s string) {
			var n [8]byte
			binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
			h.Write(n[:])
			h.Write([]byte(s))
		}
		for _, s := range list {
			write(s)
		}
		h.Write([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}) // no length: the list's end
	}
	return hex.EncodeToString(h.Sum(nil))
}

const (
	idLetters = "abcdefghjkmnpqrstuvwxyz23456789" // none that looks like another
	idLength  = 6
)

// newID makes a random id that a person can type.
func newID() string {
	id := make([]byte, 0, idLength)
	var b [1]byte
	for len(id) < idLength {
		rand.Read(b[:]) // never fails
		if n := int(b[0]); n < 256/len(idLetters)*len(idLetters) {
			id = append(id, idLetters[n%len(idLetters)])
		}
	}
	return string(id)
}

// Within says whether all of these bits are among those.
func Within(bits, those []string) bool {
	return !slices.ContainsFunc(bits, func(b string) bool { return !slices.Contains(those, b) })
}
