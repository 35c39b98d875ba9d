package bridge

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"sync"
	"time"

	"weir/internal/bridge/wire"
	"weir/internal/permission"
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
	s.announced.add(place(who), announcement{tool, r.SessionID, r.PromptID, r.ToolUseID, r.PermissionMode, args, s.Now().Add(announceTime)})
	return ""
}

// digest is the same for inputs that say the same.
func digest(input json.RawMessage) (sum [sha256.Size]byte, ok bool) {
	if len(bytes.TrimSpace(input)) == 0 {
		input = json.RawMessage("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(input))
	dec.UseNumber()
	var v map[string]any
	if dec.Decode(&v) != nil || dec.More() {
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
	list := append(a.open[container], one)
	if len(list) > maxAnnounced {
		list = list[1:]
	}
	a.open[container] = list
}

// take finds the announcement of a call and removes it: it counts once. session is the agent's that the connection serves, empty: not
// known yet.
func (a *announcements) take(container, session string, in toolCall, args [sha256.Size]byte) (announcement, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := a.open[container]
	for i, one := range list {
		switch {
		case one.tool != in.tool || one.args != args || !a.now().Before(one.until):
		case session != "" && one.session != session:
		case in.toolUse != "" && one.toolUse != "" && in.toolUse != one.toolUse:
		default:
			a.open[container] = append(list[:i:i], list[i+1:]...)
			return one, true
		}
	}
	return announcement{}, false
}

// announcement is what a hook told of a call. It comes before all that costs something: any process of the container can make calls.
func (c *session) announcement(in toolCall) (announcement, error) {
	missing := refuse(textNotAnnounced, "not_announced")
	args, ok := digest(in.input)
	if !ok {
		return announcement{}, missing
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.server.announced.take(place(in.who), c.name, in, args)
	if !ok {
		return announcement{}, missing
	}
	if c.name == "" {
		c.name = a.session
	}
	c.prompt = a.prompt
	return a, nil
}
