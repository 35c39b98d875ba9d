package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"weir/internal/bridge/wire"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/memory"
	"weir/internal/permission"
	"weir/internal/vault"
)

// ToolApprover is the gate: it asks a person about a call.
type ToolApprover interface {
	Confirm(context.Context, gate.Request) gate.Verdict
	Consume(question string) error
}

// ToolRules are the permission rules in force.
type ToolRules interface {
	Check(c permission.Call, mode string) permission.Result
	Allow(rule string) error // writes a rule for good
	Killed(tool string) bool // the kill switch is on, and turns this tool off (K10)
}

// ToolHost is the sensor.
type ToolHost interface {
	Log(event.Event) error
	// Taint sets bits before what a tool read is handed over.
	Taint(who Asker, secret, corruption bool, why string) error
	// Trusts says whether what comes from an address is not somebody else's input (V10).
	Trusts(who Asker, addr netip.Addr) bool
}

// ToolOptions are what a server needs. All but Now must be set; Vault may give nil, where there is no vault.
type ToolOptions struct {
	Gate   ToolApprover
	Rules  ToolRules
	Host   ToolHost
	Vault  func() *vault.Fetcher
	Memory *memory.Memory
	Logger logrus.FieldLogger
	Now    func() time.Time
}

// ToolServer makes calls of the sensor's own tools. Its methods may be called at the same time.
type ToolServer struct {
	ToolOptions
	turns     memory.Turns
	pages     pages
	announced announcements

	mu      sync.Mutex
	calls   int
	own     map[string]int // calls of each container
	granted []grant        // for a session, oldest first
	asking  []*grant       // what people are asked about now
}

// grant is what a person allowed for a session: a content of a rule, in a container with the taint that it had then, and with no more.
type grant struct {
	container event.Container
	rule      string
}

func (g grant) is(in event.Container, rule string) bool {
	return g.rule == rule && g.container.CgroupID == in.CgroupID && g.container.ID == in.ID
}

// place tells containers apart, also those that have one id after another: the id of a service is its path.
func place(who Asker) string { return fmt.Sprint(who.Container.CgroupID, " ", who.Container.ID) }

const (
	maxCalls  = 64 // at once
	maxOwn    = 16 // of one container
	maxGrants = 1000
	tellEvery = 5 * time.Second // that a person is being waited for
)

// NewToolServer makes a server.
func NewToolServer(o ToolOptions) *ToolServer {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &ToolServer{ToolOptions: o, own: map[string]int{}}
	s.announced.now, s.pages.now = o.Now, o.Now
	return s
}

// session is one call, of an agent's session.
type session struct {
	server *ToolServer
	who    func() (Asker, error)
	name   string // the agent's session, once it is known
	prompt string // of its turn, where the agent tells it
}

// Call makes one call, and gives its end; tell is given what it waits for. who says at each step who asks.
func (s *ToolServer) Call(ctx context.Context, who func() (Asker, error), r wire.Request, tell func(waits string)) wire.CallAnswer {
	c := &session{server: s, who: who, name: r.SessionID}
	text, meta, err := c.call(ctx, r, tell)
	end := wire.CallAnswer{Answer: wire.Answer{RequestID: r.RequestID, Decision: wire.Allow}, Text: text, Meta: meta, SessionID: c.name}
	if err != nil {
		end.Text, end.Answer = "", deny(r.RequestID, err.Error())
		if no, ok := errors.AsType[*refusal](err); ok {
			end.Meta = map[string]any{"weir/reason": no.reason}
		}
	}
	return end
}

func (c *session) call(ctx context.Context, r wire.Request, tell func(string)) (string, map[string]any, error) {
	who, err := c.who()
	if err != nil {
		return "", nil, refuse(textToolStranger, "stranger")
	}
	if !c.server.enter(place(who)) {
		return "", nil, refuse(textToolsBusy, "busy")
	}
	defer c.server.leave(place(who))
	in := toolCall{who, tell, r.ToolName, r.ToolInput, r.ToolUseID}
	switch r.ToolName {
	case permission.VaultHTTPFetch:
		return c.fetch(ctx, in)
	case permission.LocalMemoryRecall:
		return c.recall(ctx, in)
	}
	return "", nil, refuse(textNoSuchTool, "unknown_tool")
}

// refusal is a call that is not made: a text for the model, a reason for machines.
type refusal struct {
	text   string
	reason permission.Reason
}

// Error implements error.
func (r *refusal) Error() string { return r.text }

func refuse(text, reason string) error {
	return &refusal{text, permission.Reason{Type: "other", Reason: reason}}
}

// toolCall is one call under way.
type toolCall struct {
	who      Asker
	progress func(message string)
	tool     string
	input    json.RawMessage
	toolUse  string // the agent's id of the call; empty: not told
}

// enter counts a call; false: there are too many, of this container or of all.
func (s *ToolServer) enter(of string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls >= maxCalls || s.own[of] >= maxOwn {
		return false
	}
	s.calls++
	s.own[of]++
	return true
}

func (s *ToolServer) leave(of string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls--
	if s.own[of]--; s.own[of] == 0 {
		delete(s.own, of)
	}
}

// admit goes the steps before a call that was announced is made: rules, person. seen is the call as rules see it; covers are what an approval for more
// than once can cover; ask is why a person decides where rules would allow, or empty.
func (c *session) admit(ctx context.Context, in toolCall, a announcement, seen permission.Call, covers []gate.Cover, about, ask string) (admission, error) {
	got := c.server.Rules.Check(seen, a.mode)
	if got.Decision == permission.Allowed && ask != "" {
		got = permission.Result{Decision: permission.Asked, Reason: permission.Reason{Type: "other", Reason: ask}}
		if a.mode == permission.ModeNoAsk {
			got = permission.Result{Reason: permission.Reason{Type: "other", Reason: permission.NoAsking}}
		}
	}
	switch got.Decision {
	case permission.Allowed:
		return admission{decision: allowed(got.Reason), mode: a.mode}, nil
	case permission.Asked:
	default:
		return admission{}, &refusal{textRule(got.Reason), got.Reason}
	}
	if ask == "" && in.who.Mode != "seal" && c.server.isGranted(in.who, covers) {
		return admission{decision: event.Decision{Decision: "allow", Reason: "approved", Text: "a person allowed it for this session"}, mode: a.mode}, nil
	}
	admitted, err := c.confirm(ctx, in, covers, about)
	admitted.mode = a.mode
	return admitted, err
}

// admission is why a call may be made.
type admission struct {
	decision event.Decision
	approved bool   // by a person, just now
	mode     string // of the agent, as it was announced
}

// still says whether what was admitted may still be done: a person may have taken an hour to answer, and who asked may be elsewhere by then.
func (c *session) still(in toolCall, seen permission.Call, a admission) error {
	s := c.server
	who, err := c.who()
	if err != nil || who.Container.ID != in.who.Container.ID || who.Container.CgroupID != in.who.Container.CgroupID {
		return refuse(textToolStranger, "stranger")
	}
	if s.Rules.Killed(in.tool) {
		return refuse(textKilled, "kill_switch")
	}
	if who.Mode == "seal" && seen.Tool == permission.VaultHTTPFetch {
		return refuse(textSealed, "sealed")
	}
	if res := s.Rules.Check(seen, a.mode); res.Decision == permission.Denied {
		return &refusal{textRule(res.Reason), res.Reason}
	}
	return nil
}

func allowed(r permission.Reason) event.Decision {
	if r.Rule != "" {
		return event.Decision{Decision: "allow", Reason: "rule", Text: "the rule " + r.Rule + " allows it"}
	}
	return event.Decision{Decision: "allow", Reason: r.Reason}
}

// confirm asks a person.
func (c *session) confirm(ctx context.Context, in toolCall, covers []gate.Cover, about string) (admission, error) {
	s := c.server
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(tellEvery)
		defer tick.Stop()
		for in.progress("A person is asked whether this call may be made."); ; in.progress("Still waiting for a person to answer.") {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	asked := s.asks(in.who)
	defer s.answered(asked)
	v := s.Gate.Confirm(ctx, gate.Request{
		Container: in.who.Container, TaintRead: in.who.TaintRead, Process: in.who.Process, Command: about, Mode: in.who.Mode, Policy: in.who.Policy, Covers: covers,
	})
	close(done)
	if v.Decision != gate.Allow {
		return admission{}, refuse(textVerdict(v), string(v.Reason))
	}
	if err := s.Gate.Consume(v.Question); err != nil {
		s.Logger.WithError(err).WithField("question", v.Question).Warn("use an approval of a call")
		v = gate.Unused(err)
		return admission{}, refuse(textVerdict(v), string(v.Reason))
	}
	switch v.For {
	case gate.ForSession:
		s.grant(asked, v.Rule)
	case gate.ForKey:
		if err := s.Rules.Allow(v.Rule); err != nil {
			rule := v.Rule
			v.For, v.Rule, v.Text = "", "", strings.TrimSpace(v.Text+" (for this call alone: the rule "+rule+" was not written)")
			s.Logger.WithError(err).Error("write a permission rule")
			if err := s.Host.Log(event.Event{
				Kind: event.Error, Container: &in.who.Container,
				Message: "a person allowed a call for good, but the rule " + rule + " could not be written, and the next such call is asked about: " + err.Error(),
			}); err != nil {
				return admission{}, refuse(textLog, "log_failed")
			}
		}
	}
	return admission{decision: event.Decision{Decision: "allow", Reason: "approved", Text: v.Text, By: v.By, For: v.For, Rule: v.Rule}, approved: true}, nil
}

// asks notes a container that a person is asked about, with the taint that it has: what is cleared of that meanwhile is not what the answer is for.
func (s *ToolServer) asks(who Asker) *grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &grant{container: who.Container}
	s.asking = append(s.asking, g)
	return g
}

func (s *ToolServer) answered(asked *grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = slices.DeleteFunc(s.asking, func(g *grant) bool { return g == asked })
}

// grant keeps what a person allowed. The oldest makes room: nothing tells of containers that are gone, and who needs it still is asked again.
func (s *ToolServer) grant(asked *grant, rule string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := grant{asked.container, rule}
	if i := slices.IndexFunc(s.granted, func(old grant) bool { return old.is(g.container, rule) }); i >= 0 {
		s.granted[i] = g // under more taint, perhaps
		return
	}
	if len(s.granted) >= maxGrants {
		s.Logger.WithField("rule", s.granted[0].rule).Warn("an approval for a session ends: there are too many")
		s.granted = slices.Delete(s.granted, 0, 1)
	}
	s.granted = append(s.granted, g)
}

func (s *ToolServer) isGranted(who Asker, covers []gate.Cover) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.granted, func(g grant) bool {
		return gate.Within(who.Container.Taint, g.container.Taint) && slices.ContainsFunc(covers, func(c gate.Cover) bool { return g.is(who.Container, c.Rule) })
	})
}

// Cleared is told of taint that is about to be cleared in the containers that of names: when it comes again, it is new to what was allowed there
// for a session.
func (s *ToolServer) Cleared(bits []string, of func(event.Container) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lose := func(g *grant) {
		if left, some := gate.Without(g.container, bits, of); some {
			g.container.Taint = left
		}
	}
	for i := range s.granted {
		lose(&s.granted[i])
	}
	for _, g := range s.asking {
		lose(g)
	}
}

// covers are what an approval of a call can cover beyond it: those calls that one of the contents allows, the widest first (V2, F34).
func covers(tool string, contents, texts []string) []gate.Cover {
	var all []gate.Cover
	for _, last := range []struct{ lasts, text string }{{gate.ForSession, "until this container ends or is tainted more"}, {gate.ForKey, "from now on, in every container"}} {
		for i, content := range contents {
			rule := permission.Rule{Tool: tool, Content: content}.String()
			if _, err := permission.ParseRule(rule, permission.Allow); err == nil { // else it is too long to be one
				all = append(all, gate.Cover{For: last.lasts, Narrow: i > 0, Rule: rule, Text: texts[i] + ", " + last.text})
			}
		}
	}
	return all
}

// log writes one use; an error means that nothing may be handed over.
func (s *ToolServer) log(who Asker, use event.ToolUse, d event.Decision) error {
	err := s.Host.Log(event.Event{Kind: event.Tool, Container: &who.Container, Process: &who.Process, Use: &use, Verdict: &d})
	if err != nil {
		s.Logger.WithError(err).Error("write the event of a tool")
		return refuse(textLog, "log_failed")
	}
	return nil
}

// denied writes a call that is not made, and gives the error on.
func (s *ToolServer) denied(who Asker, use event.ToolUse, err error) error {
	d := event.Decision{Decision: "deny", Reason: "failed"}
	if r, ok := errors.AsType[*refusal](err); ok {
		if d.Reason = r.reason.Reason; r.reason.Rule != "" {
			d.Reason, d.Text = "rule", "the rule "+r.reason.Rule+" denies it"
		}
	}
	if failed := s.log(who, use, d); failed != nil {
		return failed
	}
	return err
}
