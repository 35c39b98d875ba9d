package bridge

import (
	"cmp"
	"context"
	"errors"

	"weir/internal/event"
	"weir/internal/memory"
	"weir/internal/permission"
)

// recall is LocalMemoryRecall.
func (c *session) recall(ctx context.Context, in toolCall) (string, map[string]any, error) {
	s := c.server
	use := event.ToolUse{Tool: permission.LocalMemoryRecall}
	r, err := memory.ParseRequest(in.input)
	if err != nil {
		reason := cmp.Or(permission.Of(in.tool, in.input).Wrong, "invalid_request")
		return "", nil, s.denied(in.who, use, refuse("Denied: "+err.Error()+".", reason))
	}
	use.Method, use.Store, use.Key = r.Action, r.Store, r.Key
	seen := permission.Of(in.tool, in.input)
	what := "the beginning of " + r.Store + "/" + r.Key
	switch {
	case r.Action == memory.ListStores:
		what = "the names of all stores"
	case r.Action == memory.ListEntries:
		what = "the names of what is in " + r.Store
	case r.Preview != nil && !*r.Preview:
		what = "the whole text of " + r.Store + "/" + r.Key
	}
	wider := covers(permission.LocalMemoryRecall, seen.Contents, []string{what + ", also as it will be changed"})
	question := "LocalMemoryRecall: hand " + what + " to the agent"
	var a admission
	announced, err := c.announcement(in)
	if err == nil {
		a, err = c.admit(ctx, in, announced, seen, wider, question, "")
	}
	if err == nil {
		err = c.still(in, seen, a)
	}
	if err != nil {
		return "", nil, s.denied(in.who, use, err)
	}
	got, err := s.Memory.Recall(r, &s.turns, place(in.who), c.name+" "+c.prompt)
	switch {
	case errors.Is(err, memory.ErrTurn):
		return "", nil, s.denied(in.who, use, refuse("Denied: "+err.Error()+".", "budget_used"))
	case errors.Is(err, memory.ErrNoStore), errors.Is(err, memory.ErrNoEntry):
		return "", nil, s.denied(in.who, use, refuse("Failed: "+err.Error()+".", "not_there"))
	case err != nil:
		s.Logger.WithError(err).Error("recall")
		return "", nil, s.denied(in.who, use, refuse("Failed: the memory could not be read; the operator finds why in the sensor's log.", "failed"))
	}
	use.Bytes = int64(len(got.Text))
	if err := s.log(in.who, use, a.decision); err != nil {
		return "", nil, err
	}
	if got.Marks.Secret || got.Marks.Foreign {
		if err := s.Host.Taint(in.who, got.Marks.Secret, got.Marks.Foreign, "the store "+r.Store+" was recalled"); err != nil {
			s.Logger.WithError(err).Error("taint for a recall")
			return "", nil, refuse(textToolNotTainted, "not_tainted")
		}
	}
	return got.Text, map[string]any{"truncated": got.Truncated}, nil
}
