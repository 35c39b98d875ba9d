package bridge

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"weir/internal/bridge/wire"
	"weir/internal/permission"
	"weir/internal/strict"
)

const (
	announceTime = 10 * time.Minute // the agent may ask its own user before it makes the call
	maxAnnounced = 256              // of one container
)

// announcements are calls that hooks told of, until they are made (P6).
type announcements struct {
	now func() time.Time

	mu   sync.Mutex
	open map[string][]announcement // by place, oldest first
}

type announcement struct {
	tool, session, prompt, toolUse, mode string
	denied                               string // what the hook was answered; empty: the call may be made
	args                                 [sha256.Size]byte
	until                                time.Time
}

// Owns says whether a tool is one of this server's, by the name an agent calls it.
func (s *ToolServer) Owns(tool string) bool {
	name := permission.Canonical(tool)
	return name == permission.VaultHTTPFetch || name == permission.LocalMemoryRecall
}

// Announce takes what a hook tells of a call that the agent is about to make, and says why it is denied; empty: the call may be made
// once, by the main agent.
func (s *ToolServer) Announce(who Asker, r wire.Request) string {
	if r.AgentID != "" {
		return textSubAgent
	}
	tool := permission.Canonical(r.ToolName)
	args, ok := digest(r.ToolInput)
	if !ok {
		return textNoInput
	}
	if res := s.Rules.Check(permission.Of(r.ToolName, r.ToolInput), r.PermissionMode); res.Decision == permission.Denied {
		return textRule(res.Reason)
	}
	s.announced.add(place(who), announcement{
		tool: tool, session: r.SessionID, prompt: r.PromptID, toolUse: r.ToolUseID, mode: r.PermissionMode, args: args, until: s.Now().Add(announceTime),
	})
	return ""
}

// Denied notes that a hook was told no, so that the call, made all the same, is answered with the reason (F39).
func (s *ToolServer) Denied(who Asker, r wire.Request, reason string) {
	if args, ok := digest(r.ToolInput); ok {
		s.announced.add(place(who), announcement{
			tool: permission.Canonical(r.ToolName), session: r.SessionID, toolUse: r.ToolUseID, denied: reason, args: args, until: s.Now().Add(announceTime),
		})
	}
}

// digest is the same for inputs that say the same.
func digest(input json.RawMessage) (sum [sha256.Size]byte, ok bool) {
	if len(bytes.TrimSpace(input)) == 0 {
		input = json.RawMessage("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(input))
	dec.UseNumber()
	var v map[string]any
	if dec.Decode(&v) != nil || !strict.Ended(dec) {
		return sum, false
	}
	data, err := json.Marshal(v)
	return sha256.Sum256(data), err == nil
}

func (a *announcements) add(container string, one announcement) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open == nil {
		a.open = map[string][]announcement{}
	}
	now := a.now()
	for id, list := range a.open { // also of containers that are gone
		for len(list) > 0 && !now.Before(list[0].until) {
			list = list[1:]
		}
		if a.open[id] = list; len(list) == 0 {
			delete(a.open, id)
		}
	}
	list := slices.DeleteFunc(a.open[container], func(old announcement) bool { // the last answer counts
		return old.denied != "" && old.tool == one.tool && old.args == one.args && old.session == one.session
	})
	list = append(list, one)
	if len(list) > maxAnnounced {
		list = list[1:]
	}
	a.open[container] = list
}

// take finds the announcement of a call and removes it: it counts once. Where there is none, it finds the last denial of it, which stays. session
// is the agent's whose calls the client made before, empty: not known yet.
func (a *announcements) take(container, session string, in toolCall, args [sha256.Size]byte) (announcement, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := a.open[container]
	denied := announcement{}
	for i, one := range list {
		switch {
		case one.tool != in.tool || one.args != args || !a.now().Before(one.until):
		case session != "" && one.session != session:
		case in.toolUse != "" && one.toolUse != "" && in.toolUse != one.toolUse:
		case one.denied != "":
			denied = one
		default:
			a.open[container] = append(list[:i:i], list[i+1:]...)
			return one, true
		}
	}
	return denied, denied.denied != ""
}

// announcement is what a hook told of a call. It comes before all that costs something: any process of the container can make calls.
func (c *session) announcement(in toolCall) (announcement, error) {
	missing := refuse(textNotAnnounced, "not_announced")
	args, ok := digest(in.input)
	if !ok {
		return announcement{}, missing
	}
	a, ok := c.server.announced.take(place(in.who), c.name, in, args)
	if !ok {
		return announcement{}, missing
	}
	if a.denied != "" {
		return announcement{}, refuse("Denied: this call was not announced as one that may be made: the agent's hook asked before, and the answer was: "+a.denied, "hook_denied")
	}
	c.name, c.prompt = a.session, a.prompt
	return a, nil
}
