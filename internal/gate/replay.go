package gate

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"weir/internal/cop"
	"weir/internal/event"
	"weir/internal/policy"
)

// ReplayOutcome is what a decision came to, or would.
type ReplayOutcome string

// The outcomes.
const (
	ReplayAllow  ReplayOutcome = "allow"
	ReplayDeny   ReplayOutcome = "deny"
	ReplayPerson ReplayOutcome = "person" // a person is asked
	Model        ReplayOutcome = "model"  // the reviewing model is asked
)

// ReplayChange is an event that would be decided otherwise.
type ReplayChange struct {
	Event  event.Event   `json:"event"`
	Was    ReplayOutcome `json:"was"`
	WasBy  string        `json:"was_reason"`
	Now    ReplayOutcome `json:"now"`
	NowBy  string        `json:"now_reason"`
	Reason string        `json:"why"` // in a sentence
}

// ReplayTotals count what was replayed.
type ReplayTotals struct {
	Events    uint64                   `json:"events"`
	Decisions uint64                   `json:"decisions"` // of them, those that a policy decides
	Follow    uint64                   `json:"follow"`    // that only carry out an earlier answer, or that no policy changes
	Changed   uint64                   `json:"changed"`
	Now       map[ReplayOutcome]uint64 `json:"now"` // what the decisions would be
}

// Replay decides events under one policy. It keeps only ids of questions.
type Replay struct {
	policy   policy.Policy
	allow    []policy.Destination
	reviewer Reviewer
	seen     map[string]bool // questions
	Totals   ReplayTotals
}

// NewReplay makes a replay under p. A model that p names is not asked: what the embedded
// reviewer is not sure of comes out as Model.
func NewReplay(p policy.Policy) (*Replay, error) {
	allow, err := p.Destinations()
	if err != nil {
		return nil, err
	}
	r := &Replay{policy: p, allow: allow, seen: map[string]bool{}, Totals: ReplayTotals{Now: map[ReplayOutcome]uint64{}}}
	o := cop.Options{}
	switch p.Cop.Reviewer {
	case policy.None:
		return r, nil
	case policy.Anthropic, policy.OpenAI:
		o.Model = &unasked{}
	}
	c, err := cop.New(o)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	r.reviewer = &replayReviewer{c, o.Model}
	return r, nil
}

// unasked stands for the model.
type unasked struct{ wanted bool }

// Review implements cop.Reviewer.
func (u *unasked) Review(context.Context, cop.Case) (cop.Opinion, error) {
	u.wanted = true
	return cop.Opinion{}, cop.Fail(cop.Refused, "a replay asks nobody")
}

// reviewer tells a model that would be asked from a failure. It reviews one case at
// a time.
type replayReviewer struct {
	cop   *cop.Cop
	model cop.Reviewer
}

// Review implements gate.Reviewer.
func (r *replayReviewer) Review(ctx context.Context, c cop.Case) (cop.Opinion, error) {
	u, _ := r.model.(*unasked)
	if u != nil {
		u.wanted = false
	}
	o, err := r.cop.Review(ctx, c)
	if u != nil && u.wanted {
		return cop.Opinion{}, ErrUnasked
	}
	return o, err
}

// Event decides e again; changed says whether the policy would change it.
func (r *Replay) Event(ctx context.Context, e event.Event) (c ReplayChange, changed bool) {
	r.Totals.Events++
	was, by, kind := recorded(e)
	if e.Kind == event.Hold && kind != noDecision {
		if r.seen[e.Question] {
			kind = noDecision // another process that asks the same
		}
		r.seen[e.Question] = true
	}
	if kind == noDecision {
		return ReplayChange{}, false
	}
	r.Totals.Decisions++
	now, nowBy, why := was, by, ""
	switch {
	case kind != follows:
		now, nowBy, why = r.decide(ctx, e)
	case r.policy.Mode == policy.Seal && by == "granted":
		now, nowBy, why = r.decide(ctx, e)
	case r.policy.Mode == policy.Observe && slices.Contains(observed, by):
		now, nowBy, why = ReplayAllow, string(Observe), "the mode is observe: nothing is denied"
	default:
		r.Totals.Follow++
	}
	// A call that could not wait was refused, and its question asked: that it
	// would be refused or asked again is no change.
	if kind == refused && now != ReplayAllow && nowBy != string(Sealed) {
		now = was
	}
	r.Totals.Now[now]++
	if now == was {
		return ReplayChange{}, false
	}
	r.Totals.Changed++
	return ReplayChange{Event: e, Was: was, WasBy: by, Now: now, NowBy: nowBy, Reason: why}, true
}

// kind says what an event is to a replay.
type kind int

const (
	noDecision kind = iota
	decided         // by a policy
	refused         // since it could not wait for its question, which is an event of its own
	follows         // from an answer, or from what no policy changes
)

// recorded reads what was decided.
func recorded(e event.Event) (ReplayOutcome, string, kind) {
	if e.Container == nil || e.Process == nil {
		return "", "", noDecision
	}
	switch {
	case e.Kind == event.Hold:
		return ReplayPerson, "asked", decided
	case e.Kind == event.Verdict && e.Question != "":
		return "", "", noDecision // the answer to a hold, or its use
	case e.Verdict == nil, !slices.Contains([]event.Kind{event.Verdict, event.Connect, event.Deny, event.Exec}, e.Kind):
		return "", "", noDecision
	}
	was := ReplayDeny
	if e.Verdict.Decision == "allow" {
		was = ReplayAllow
	}
	by := e.Verdict.Reason
	switch {
	case e.Kind == event.Connect && e.Question != "":
		return "", "", noDecision // how one of those who asked the same was told
	case slices.Contains([]string{"tainted", "denied"}, by):
		return was, by, refused
	case slices.Contains(fixed, by), by == "outside_container" && (e.Destination == nil || e.Destination.Protocol != "unix"):
		return was, by, follows
	}
	return was, by, decided
}

// fixed are reasons of the kernel and of failures, which no policy changes, and what
// was let out since it was approved before.
var fixed = []string{
	"granted", "recognised", "loopback", "cgroup_depth", "socket_family", "control_socket", "attach", "escaped", "unreadable_address",
	"kernel_traffic", "queue_full", "flood", "malformed", "store_failed", "log_failed", "cancelled", "used_once", "unsound", "timeout",
}

// observed are those of them that the mode observe lets be.
var observed = []string{"socket_family", "outside_container", "unreadable_address", "kernel_traffic"}

// decide is what the policy makes of the event's request, in the order of the
// kernel and the gate.
func (r *Replay) decide(ctx context.Context, e event.Event) (ReplayOutcome, string, string) {
	req := Request{Container: *e.Container, Process: *e.Process, Command: e.Command, Dir: e.Process.Dir, Mode: string(r.policy.Mode), AskFlagged: r.policy.Cop.AskFlagged()}
	req.Held = e.Kind != event.Exec
	switch {
	case e.Command != "":
		req.Ask = Command
		req.Held = false
	case e.Destination == nil:
		req.Ask = Run
	default:
		req.Destination = *e.Destination
		if req.Mode != string(policy.Seal) && len(e.Container.Taint) > 0 {
			if out, by, why := r.open(*e.Destination); out != "" {
				return out, by, why
			}
		}
	}
	f := DryRun(ctx, req, r.reviewer, r.policy.Approver == policy.Person)
	switch f.Step {
	case Pass:
		return ReplayAllow, string(f.Reason), f.Text
	case Person:
		return ReplayPerson, "asked", f.Text
	case Review:
		return Model, "asked", f.Text
	}
	return ReplayDeny, string(f.Reason), f.Text
}

// open says what the policy says of a destination without asking anybody.
func (r *Replay) open(d event.Destination) (ReplayOutcome, string, string) {
	if d.Protocol == "unix" {
		switch {
		case slices.Contains(r.policy.AllowUnixSockets, d.Address):
			return ReplayAllow, "listed", "allow_unix_sockets has it"
		case r.policy.Mode == policy.Observe:
			return ReplayAllow, string(Observe), "the mode is observe: nothing is denied"
		}
		return ReplayDeny, "outside_container", "it is a Unix socket outside the container"
	}
	addr, err := netip.ParseAddr(d.Address)
	if err != nil {
		return "", "", ""
	}
	if r.listed(addr, d) {
		return ReplayAllow, "listed", "allow has it"
	}
	return "", "", ""
}

// listed is the kernel's longest match.
func (r *Replay) listed(addr netip.Addr, d event.Destination) bool {
	number, known := map[string]uint8{"tcp": 6, "udp": 17}[d.Protocol]
	if !known {
		number = 255 // a protocol that only a rule for any of them opens
	}
	return policy.Opens(r.allow, netip.AddrPortFrom(addr, d.Port), number)
}
