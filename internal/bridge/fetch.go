package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/permission"
	"weir/internal/vault"
)

// fetch is VaultHttpFetch.
func (c *session) fetch(ctx context.Context, in toolCall) (string, map[string]any, error) {
	s := c.server
	use := event.ToolUse{Tool: permission.VaultHTTPFetch}
	seen := permission.Of(in.tool, in.input)
	r, err := vault.ParseRequest(in.input)
	if err != nil {
		return "", nil, s.denied(in.who, use, refuse("Denied: "+err.Error(), cmp.Or(seen.Wrong, string(vault.Invalid))))
	}
	use.Key, use.Method, use.Host, use.Path, use.Reason = r.Key, r.Method, r.Host(), r.Path(), r.Reason
	use.Scheme, use.Header = r.Way(vault.Binding{})
	if s.Rules.Killed(in.tool) { // since the call was announced
		return "", nil, s.denied(in.who, use, refuse(textKilled, "kill_switch"))
	}
	fetcher := s.Vault()
	if fetcher == nil {
		return "", nil, s.denied(in.who, use, refuse(textNoVault, string(vault.Locked)))
	}
	if in.who.Mode == "seal" {
		return "", nil, s.denied(in.who, use, refuse(textSealed, "sealed"))
	}
	announced, err := c.announcement(in)
	if err != nil {
		return "", nil, s.denied(in.who, use, err)
	}
	if r.Page > 1 {
		return c.next(in, announced, seen, r, use)
	}
	info, err := fetcher.Check(r)
	if err != nil {
		return "", nil, s.denied(in.who, use, classed(err))
	}
	wider := []string{permission.ForHost(r.Key, r.Host()), permission.ForRequest(r.Key, r.Host(), r.Method, r.Path())}
	use.Scheme, use.Header = r.Way(info.Binding)
	free, ask := len(info.Binding.Hosts) == 0, ""
	switch {
	case info.Binding.Scheme == "" && use.Scheme != vault.Bearer && use.Scheme != vault.Basic: // some servers show others what is in a header (B161)
		ask = "header_not_bound"
	case free && s.Rules.Check(permission.Call{Tool: seen.Tool, Contents: wider}, "").Decision != permission.Allowed:
		// Of a key that is bound nowhere, a person says where it may go (V7): a rule without a host does not.
		ask = "key_not_bound"
	}
	a, err := c.admit(ctx, in, announced, seen, covers(seen.Tool, wider, []string{
		fmt.Sprintf("every call with the key %s to %s, with any method, path and body", r.Key, r.Host()),
		fmt.Sprintf("calls with the key %s to %s that are %s %s, with any query and body", r.Key, r.Host(), r.Method, r.Path()),
	}), asked(r, info.Binding, free), ask)
	if err != nil {
		return "", nil, s.denied(in.who, use, err)
	}
	if err := c.still(in, seen, a); err != nil {
		return "", nil, s.denied(in.who, use, err)
	}
	if free {
		if err := fetcher.Vault.BindFirst(r.Key, r.Host()); err != nil {
			s.Logger.WithError(err).Error("bind a key")
			return "", nil, s.denied(in.who, use, refuse(textNoVault, string(vault.Locked)))
		}
	}
	return c.make(ctx, in, seen, fetcher, r, info, use, a)
}

// next hands over a later page: of what was handed over already, so that nobody is asked again; but it is announced, and no rule denies it.
func (c *session) next(in toolCall, a announcement, seen permission.Call, r vault.Request, use event.ToolUse) (string, map[string]any, error) {
	s := c.server
	if res := s.Rules.Check(seen, a.mode); res.Decision == permission.Denied {
		return "", nil, s.denied(in.who, use, &refusal{textRule(res.Reason), res.Reason})
	}
	key, err := keyOf(place(in.who), r)
	text, of, ok := s.pages.read(key, r.Page)
	if err != nil || !ok {
		return "", nil, s.denied(in.who, use, refuse("Failed: there is no such page, or it is too long ago: make the call without page again.", "not_there"))
	}
	use.Bytes = int64(len(text))
	if err := s.log(in.who, use, event.Decision{Decision: "allow", Reason: "page"}); err != nil {
		return "", nil, err
	}
	if err := s.taint(in.who, of); err != nil { // who reads on may have been untainted since
		return "", nil, err
	}
	return text, nil, nil
}

// taint notes that somebody reads an answer (V10).
func (s *ToolServer) taint(who Asker, of kept) error {
	if of.trusted {
		return nil
	}
	if err := s.Host.Taint(who, false, true, "an answer from "+of.host+" to "+permission.VaultHTTPFetch); err != nil {
		s.Logger.WithError(err).Error("taint for an answer")
		return refuse(textToolNotTainted, "not_tainted")
	}
	return nil
}

// make makes the request, logs it, taints, and words the answer.
func (c *session) make(ctx context.Context, in toolCall, seen permission.Call, fetcher *vault.Fetcher, r vault.Request, info vault.Info, use event.ToolUse, a admission) (string, map[string]any, error) {
	s := c.server
	still := func() error { // binding a key and waiting for it take their time too
		if err := c.still(in, seen, a); err != nil || a.approved { // a person's word is in the log already
			return err
		}
		before := a.decision
		if err := s.Host.Log(event.Event{
			Kind: event.Verdict, Container: &in.who.Container, Process: &in.who.Process, Command: asked(r, info.Binding, false), Verdict: &before,
		}); err != nil {
			s.Logger.WithError(err).Error("write the event of a tool")
			return refuse(textLog, "log_failed")
		}
		return nil
	}
	begun := s.Now()
	got, err := fetcher.Fetch(ctx, place(in.who), still, r)
	use.Duration = s.Now().Sub(begun).Round(time.Millisecond).Milliseconds()
	fetcher.Clean(r.Key, &use.Path, &use.Reason)
	if no, ok := errors.AsType[*refusal](err); ok {
		return "", nil, s.denied(in.who, use, no)
	}
	if err != nil {
		use.Failure = string(vault.ClassOf(err))
		if failed := s.log(in.who, use, a.decision); failed != nil {
			return "", nil, failed
		}
		return "", nil, classed(err)
	}
	use.Status, use.Bytes = got.Status, got.Bytes
	if err := s.log(in.who, use, a.decision); err != nil {
		return "", nil, err
	}
	answer := kept{text: worded(got), host: use.Host, trusted: s.Host.Trusts(in.who, got.Address.Addr())}
	if err := s.taint(in.who, answer); err != nil {
		return "", nil, err
	}
	key, err := keyOf(place(in.who), r)
	if err != nil {
		return "", nil, refuse("Failed: the answer could not be kept.", "failed")
	}
	return s.pages.keep(key, answer), map[string]any{"weir/status": got.Status, "weir/statusText": got.Text, "weir/truncated": got.Truncated}, nil
}

func classed(err error) error {
	if e, ok := errors.AsType[*vault.Error](err); ok {
		return refuse("Failed: "+e.Text+" ("+string(e.Class)+").", string(e.Class))
	}
	return refuse("Failed: the request could not be made.", "failed")
}

// asked words a request for the person who decides (V2). All that the agent chose is quoted.
func asked(r vault.Request, b vault.Binding, free bool) string {
	scheme, header := r.Way(b)
	// No colon behind the key: what follows "token:" looks like a secret, and is hidden from who is asked elsewhere.
	text := fmt.Sprintf("VaultHttpFetch: %s %s with the key %s in the header %s (%s), because %s", r.Method, strconv.Quote(r.URL), r.Key, header, scheme, strconv.Quote(r.Reason))
	if free {
		text += fmt.Sprintf("; the key is bound to no host yet: an approval binds it to %s", r.Host())
	}
	if r.Body == "" {
		return text
	}
	text += fmt.Sprintf("; it sends %d bytes of %s", len(r.Body), strconv.Quote(r.Type()))
	body := strconv.Quote(r.Body)
	if len(body) <= shownBody {
		return text + ": " + body
	}
	// What is approved is all of it (B162).
	return text + ", SHA-256 " + gate.Digest(r.Body) + ", which begin with " + strings.ToValidUTF8(body[:shownBody], "") + "…"
}

// shownBody is how much of a quoted body a question shows: with the rest of the text it has room there.
const shownBody = 8 << 10

// worded is an answer as a model reads it.
func worded(r vault.Response) string {
	var b strings.Builder
	b.WriteString(strings.TrimRight(fmt.Sprintf("%s %d %s", r.Proto, r.Status, r.Text), " ") + "\n")
	for _, h := range r.Headers {
		fmt.Fprintf(&b, "%s: %s\n", h.Name, h.Value)
	}
	b.WriteString("\n" + r.Body)
	if r.Truncated {
		b.WriteString("\n[The answer is longer than 1 MiB; the rest was left out.]")
	}
	return b.String()
}
