package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"

	"weir/internal/bridge/wire"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/memory"
	"weir/internal/permission"
	"weir/internal/show"
	"weir/internal/vault"
)

const (
	fetchName  = permission.VaultHTTPFetch
	recallName = permission.LocalMemoryRecall
)

// V2, V3, V10, V11: a call is announced, asked about, made, logged, and its answer taints.
func TestFetchIsAskedV2V3V10V11(t *testing.T) {
	r := newRig(t)
	r.bind(r.host())
	s := r.client()
	asked := r.person(gate.Reply{Allow: true})
	text, res := r.announced(s, "", fetchName, r.request("/x?q=1"))
	about := <-asked
	if res.IsError || !strings.Contains(text, "HTTP/2.0 200") || !strings.Contains(text, "hello Bearer [removed]") {
		t.Fatalf("%q, asked %q", text, about)
	}
	for _, part := range []string{"key gh", "GET", `"https://example.com:` + r.port + `/x?q=1"`, `"to look\nat it"`} {
		if !strings.Contains(about, part) {
			t.Errorf("the question lacks %s: %q", part, about)
		}
	}
	if diff := cmp.Diff([]string{"Bearer " + secret}, r.sent); diff != "" {
		t.Error(diff)
	}
	if len(r.tainted) != 1 || !strings.HasPrefix(r.tainted[0], "secret false, corruption true") {
		t.Error(r.tainted)
	}
	uses := r.uses()
	if len(uses) != 1 {
		t.Fatal(uses)
	}
	u := uses[0].Use
	if u.Tool != fetchName || u.Key != "gh" || u.Method != "GET" || u.Host != r.host() || u.Path != "/x" || u.Status != 200 || u.Bytes == 0 ||
		u.Reason != "to look\nat it" || uses[0].Verdict.Decision != "allow" || uses[0].Verdict.By != "alice" || uses[0].Process.PID == 0 {
		t.Errorf("%+v %+v", u, uses[0].Verdict)
	}
	told := func() []string { r.mu.Lock(); defer r.mu.Unlock(); return r.told }
	for deadline := time.Now().Add(time.Minute); len(told()) == 0 && time.Now().Before(deadline); { // not ordered with the answer
		time.Sleep(time.Millisecond)
	}
	if got := told(); len(got) == 0 || !strings.Contains(got[0], "A person is asked") {
		t.Errorf("progress: %q", got)
	}
	r.mu.Lock()
	r.trusted = true
	r.mu.Unlock()
	// V2, P4: once means once, and a refusal is one.
	asked = r.person(gate.Reply{})
	text, res = r.announced(s, "", fetchName, r.request("/x"))
	if !res.IsError || !strings.Contains(text, "a person looked at this call and refused it") || <-asked == "" {
		t.Error(text)
	}
	// V10: a trusted host does not taint.
	r.allow("allow: [VaultHttpFetch(gh)]", "")
	if text, res = r.announced(s, "", fetchName, r.request("/x")); res.IsError || len(r.tainted) != 1 {
		t.Error(text, r.tainted)
	}
}

// V12: nothing of the secret in result, events, logs and errors; newRig's check searches them.
func TestNothingLeaksV12(t *testing.T) {
	r := newRig(t)
	r.bind(r.host())
	r.allow("allow: [VaultHttpFetch(gh)]", "")
	s := r.client()
	for path, want := range map[string]string{"/": "hello Bearer [removed]", "/401": "401", "/redirect": "302", "/reset": "Failed: "} {
		if text, _ := r.announced(s, "", fetchName, r.request(path)); !strings.Contains(text, want) {
			t.Errorf("%s: %q", path, text)
		}
	}
	for _, url := range []string{"http://example.com/", "file:///etc/passwd", "ftp://example.com/"} {
		q := r.request("/")
		q["url"] = url
		if text, res := r.announced(s, "", fetchName, q); !res.IsError || !strings.Contains(text, "not https") {
			t.Errorf("%s: %q", url, text)
		}
	}
	before := len(r.sent)
	r.mu.Lock()
	r.logErr = errors.New("disk full")
	r.mu.Unlock()
	if text, res := r.announced(s, "", fetchName, r.request("/")); !res.IsError || !strings.Contains(text, "could not be recorded") || len(r.sent) != before {
		t.Error(text)
	}
	r.mu.Lock()
	r.logErr, r.taint = nil, errors.New("no")
	r.mu.Unlock()
	if text, res := r.announced(s, "", fetchName, r.request("/")); !res.IsError || strings.Contains(text, "hello") {
		t.Error("handed over without its taint:", text)
	}
}

// P8: what these tools give out stands in no log, event or trace, whether the call passed or failed; newRig's check looks for the vault's secret.
func TestOutputsAreRedactedP8(t *testing.T) {
	r := newRig(t)
	r.bind(r.host())
	const kept = "a line of the notes that nobody but the agent reads"
	if err := r.memory.Import("notes", "today", kept); err != nil {
		t.Fatal(err)
	}
	r.allow("allow: [VaultHttpFetch(gh), 'LocalMemoryRecall(fetch:notes/today)']", "")
	s := r.client()
	for _, preview := range []bool{true, false} {
		text, _ := r.announced(s, "", recallName, map[string]any{"action": "fetch", "store": "notes", "key": "today", "preview_only": preview})
		if !strings.Contains(text, kept) {
			t.Error(text)
		}
	}
	for path, want := range map[string]string{"/": "hello Bearer", "/401": "X-Echo", "/redirect": "elsewhere.example.com", "/long": "the end"} {
		text, res := r.announced(s, "", fetchName, r.request(path))
		for page := 2; !strings.Contains(text, want) && !res.IsError && page < 9; page++ {
			q := r.request(path)
			q["page"] = page
			text, res = r.announced(s, "", fetchName, q)
		}
		if !strings.Contains(text, want) {
			t.Errorf("%s: %.200q", path, text)
		}
	}
	if len(r.uses()) < 6 {
		t.Errorf("%d uses are written", len(r.uses()))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	written := r.logged.String()
	for _, e := range r.events {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		written += string(line)
	}
	for _, output := range []string{kept, "hello", "X-Echo", "elsewhere.example.com", "文", "the end"} {
		if strings.Contains(written, output) {
			t.Errorf("%q was written down: %s", output, written)
		}
	}
}

// P5, V12: bypass does not bypass, and a mode that does not ask denies.
func TestModesP5V12(t *testing.T) {
	r := newRig(t)
	r.bind(r.host())
	s := r.client()
	asked := r.person(gate.Reply{})
	if text, res := r.announced(s, permission.ModeBypass, fetchName, r.request("/")); !res.IsError || !strings.Contains(<-asked, "VaultHttpFetch") {
		t.Error(text)
	}
	text, res := r.announced(s, permission.ModeNoAsk, fetchName, r.request("/"))
	if !res.IsError || !strings.Contains(text, "mode_does_not_ask") {
		t.Error(text)
	}
	r.mu.Lock()
	r.mode = "seal"
	r.mu.Unlock()
	if text, res := r.announced(s, "", fetchName, r.request("/")); !res.IsError || !strings.Contains(text, "closed") {
		t.Error(text)
	}
	if len(r.sent) > 0 || len(r.gate.Pending()) > 0 {
		t.Error(r.sent)
	}
}

// P4: a denial tells its rule, also to machines.
func TestDenialsHaveReasonsP4(t *testing.T) {
	r := newRig(t)
	r.bind(r.host())
	s := r.client()
	if a := r.hook(wire.Request{}, fetchName, r.request("/")); a.Decision != wire.Allow {
		t.Fatal(a)
	}
	r.allow("", "deny: [VaultHttpFetch]") // the kill switch, thrown between announcement and call
	text, res := r.call(s, fetchName, r.request("/"))
	want := map[string]any{"type": "rule", "rule": "VaultHttpFetch"}
	if diff := cmp.Diff(want, res.Meta["weir/reason"]); diff != "" || !res.IsError || !strings.Contains(text, `{"type":"rule","rule":"VaultHttpFetch"}`) {
		t.Error(text, diff)
	}
	if text, _ := r.announced(s, "", fetchName, r.request("/")); !strings.Contains(text, "VaultHttpFetch") {
		t.Error(text)
	}
	_, res = r.call(s, recallName, map[string]any{"action": "fetch"})
	if diff := cmp.Diff(map[string]any{"type": "other", "reason": "missing_required_field"}, res.Meta["weir/reason"]); diff != "" {
		t.Error(diff)
	}
}

// K10: the switch is obeyed at once, also by calls that were announced, or asked about, before it.
func TestToolsKillSwitchK10(t *testing.T) {
	r := newRig(t)
	r.bind(r.host())
	s := r.client()
	turn := func(on bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.killed = on
	}
	denied := func(text string, res *callResult) {
		t.Helper()
		want := map[string]any{"type": "other", "reason": "kill_switch"}
		if diff := cmp.Diff(want, res.Meta["weir/reason"]); diff != "" || !res.IsError || !strings.Contains(text, "turned off every tool") {
			t.Error(text, diff)
		}
	}
	if a := r.hook(wire.Request{}, fetchName, r.request("/")); a.Decision != wire.Allow {
		t.Fatal(a)
	}
	turn(true)
	denied(r.call(s, fetchName, r.request("/")))
	turn(false)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for len(r.gate.Pending()) == 0 && t.Context().Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		turn(true)
		<-r.person(gate.Reply{Allow: true})
	}()
	denied(r.announced(s, "", fetchName, r.request("/")))
	<-done
	if len(r.sent) != 0 {
		t.Errorf("sent: %s", r.sent)
	}
}

// K10, V7, P4: what a person allows is not done if meanwhile the network was closed, a rule denied it, or who asked went elsewhere; and then a key
// that is bound nowhere stays so.
func TestWhatChangesWhileAPersonIsAskedK10P4V7(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *rig)
		reason string
	}{
		"sealed":            {func(r *rig) { r.mode = "seal" }, "sealed"},
		"denied":            {func(r *rig) { r.rules = parse(r.t, "", "deny: ['VaultHttpFetch(gh)', LocalMemoryRecall]") }, "VaultHttpFetch(gh)"},
		"another container": {func(r *rig) { r.cgroup++ }, "stranger"},
		"no container":      {func(r *rig) { r.gone = true }, "stranger"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.bind()
			if err := r.memory.Import("notes", "today", "bread"); err != nil {
				t.Fatal(err)
			}
			s := r.client()
			ask := func(tool string, input any) (string, *callResult) {
				if a := r.hook(wire.Request{}, tool, input); a.Decision != wire.Allow {
					t.Fatal(a)
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					for len(r.gate.Pending()) == 0 && t.Context().Err() == nil {
						time.Sleep(5 * time.Millisecond)
					}
					r.mu.Lock()
					c.change(r)
					r.mu.Unlock()
					<-r.person(gate.Reply{Allow: true})
				}()
				text, res := r.call(s, tool, input)
				<-done
				return text, res
			}
			text, res := ask(fetchName, r.request("/"))
			reason, _ := res.Meta["weir/reason"].(map[string]any)
			if !res.IsError || reason["reason"] != c.reason && reason["rule"] != c.reason || len(r.sent) != 0 {
				t.Errorf("%q, %v, sent %q", text, reason, r.sent)
			}
			if list, err := r.vault.List(); err != nil || len(list[0].Binding.Hosts) != 0 {
				t.Error("it was bound:", list, err)
			}
			if uses := r.uses(); len(uses) != 1 || uses[0].Verdict.Decision != "deny" {
				t.Errorf("%+v", uses)
			}
			if name == "sealed" {
				return // the operator's notes need no network
			}
			r.mu.Lock()
			r.gone, r.rules = false, nil
			r.mu.Unlock()
			text, res = ask(recallName, map[string]any{"action": "fetch", "store": "notes", "key": "today", "preview_only": false})
			if !res.IsError || strings.Contains(text, "bread") {
				t.Error(text)
			}
		})
	}
}

// P6: only announced calls of the main agent are made, once, also for forks.
func TestOnlyTheMainAgentP6(t *testing.T) {
	r := newRig(t)
	r.bind(r.host())
	r.allow("allow: [VaultHttpFetch(gh)]", "")
	s := r.client()
	denied := func(what string, q map[string]any) {
		t.Helper()
		if text, res := r.call(s, fetchName, q); !res.IsError || !strings.Contains(text, "not announced") {
			t.Errorf("%s: %q", what, text)
		}
	}
	denied("no hook", r.request("/"))
	unknown := r.request("/")
	unknown["vault_auth_key"] = "none" // the vault, which takes a second to open, is not even looked into
	denied("no such key", unknown)
	// A sub-agent, a fork with the parent's own tools, and a fork that was resumed: the event names an agent.
	for _, q := range []wire.Request{
		{SessionID: "s1", ToolUseID: "t1", AgentID: "a5f1c3", PermissionMode: "default"},
		{SessionID: "s1", ToolUseID: "t2", AgentID: "fork-77ab", PermissionMode: permission.ModeBypass},
		{SessionID: "s2", ToolUseID: "t3", AgentID: "fork-77ab"},
	} {
		if a := r.hook(q, fetchName, r.request("/")); a.Decision != wire.Deny || !strings.Contains(a.Reason, "sub-agents") {
			t.Errorf("%+v", a)
		}
		denied(q.AgentID, r.request("/"))
	}
	// The main agent's: once, for this tool, with these arguments, in whatever order they are.
	other := r.request("/other")
	if a := r.hook(wire.Request{SessionID: "s1"}, fetchName, r.request("/")); a.Decision != wire.Allow {
		t.Fatal(a)
	}
	denied("other arguments", other)
	if text, res := r.call(s, fetchName, json.RawMessage(fmt.Sprintf(
		`{"reason":"to look\nat it", "auth_scheme":"bearer","vault_auth_key":"gh","url":"https://%s/"}`, r.host()))); res.IsError {
		t.Error(text)
	}
	denied("a second time", r.request("/"))
	// The connection is now session s1's: what another session announced is not made here.
	if a := r.hook(wire.Request{SessionID: "s2"}, fetchName, other); a.Decision != wire.Allow {
		t.Fatal(a)
	}
	denied("another session", other)
	if text, res := r.call(r.client(), fetchName, other); res.IsError {
		t.Error(text)
	}
	// An agent that tells the call's id: another call with the same arguments is not the one that was announced.
	if a := r.hook(wire.Request{SessionID: "s1", ToolUseID: "t9"}, fetchName, other); a.Decision != wire.Allow {
		t.Fatal(a)
	}
	for _, tt := range []struct {
		id      string
		refused bool
	}{{"t8", true}, {"t9", false}, {"t9", true}} {
		res, err := s.CallTool(t.Context(), &callParams{Name: fetchName, Arguments: other, ToolUse: tt.id})
		if err != nil || res.IsError != tt.refused {
			t.Error(tt.id, res, err)
		}
	}
}

// An approval for a session, and one for a key and its host.
func TestFor(t *testing.T) {
	r := newRig(t)
	r.bind(r.host())
	s := r.client()
	asked := r.person(gate.Reply{Allow: true, For: gate.ForSession})
	if text, res := r.announced(s, "", fetchName, r.request("/")); res.IsError {
		t.Error(text, <-asked)
	}
	if text, res := r.announced(s, "", fetchName, r.request("/again")); res.IsError || len(r.written) != 0 {
		t.Error(text)
	}
	r2 := newRig(t)
	r2.bind(r2.host())
	asked = r2.person(gate.Reply{Allow: true, For: gate.ForKey})
	if text, res := r2.announced(r2.client(), "", fetchName, r2.request("/")); res.IsError {
		t.Error(text, <-asked)
	}
	if diff := cmp.Diff([]string{"VaultHttpFetch(gh@" + r2.host() + ")"}, r2.written); diff != "" {
		t.Error(diff)
	}
}

// F34, V2: the question says which calls an approval for longer covers, and it can be for the same method and path alone.
func TestF34ForIsToldAndNarrowV2(t *testing.T) {
	for _, lasts := range []string{gate.ForSession, gate.ForKey} {
		r := newRig(t)
		r.bind(r.host())
		s := r.client()
		var q gate.Question
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			for len(r.gate.Pending()) == 0 && t.Context().Err() == nil {
				time.Sleep(5 * time.Millisecond)
			}
			q = r.gate.Pending()[0]
			<-r.person(gate.Reply{Allow: true, For: lasts, Narrow: true})
		}()
		if text, res := r.announced(s, "", fetchName, r.request("/a*(b)?q=1")); res.IsError {
			t.Fatal(text)
		}
		<-asked
		told := show.Question(q)
		for _, part := range []string{
			"this call, once", "--for session: every call with the key gh to " + r.host() + ", with any method, path and body, until this container ends",
			"--for session --narrow: calls with the key gh to " + r.host() + " that are GET /a*(b), with any query and body",
			"--for key: ", "--for key --narrow: ", "from now on, in every container",
		} {
			if !strings.Contains(told, part) {
				t.Errorf("%s: the question lacks %q:\n%s", lasts, part, told)
			}
		}
		narrow := "VaultHttpFetch(gh@" + r.host() + " GET /a%2A%28b%29)"
		uses := r.uses()
		if d := uses[len(uses)-1].Verdict; d.For != lasts || d.Rule != narrow {
			t.Errorf("%s: logged as %+v", lasts, d)
		}
		if lasts == gate.ForKey {
			if diff := cmp.Diff([]string{narrow}, r.written); diff != "" {
				t.Error(diff)
			}
			r.allow("allow: ['"+narrow+"']", "")
		}
		// The same method and path pass, whatever the query; others are asked about.
		if text, res := r.announced(s, "", fetchName, r.request("/a*(b)?q=2")); res.IsError {
			t.Error(lasts, text)
		}
		for what, change := range map[string]func(map[string]any){
			"another path": func(q map[string]any) { q["url"] = "https://" + r.host() + "/a" }, "below it": func(q map[string]any) { q["url"] = "https://" + r.host() + "/a*(b)/c" },
			"another method": func(q map[string]any) { q["method"] = "POST" }, "another spelling": func(q map[string]any) { q["url"] = "https://" + r.host() + "/x/../a*(b)" },
		} {
			in := r.request("/a*(b)")
			change(in)
			refused := r.person(gate.Reply{})
			if text, res := r.announced(s, "", fetchName, in); !res.IsError || <-refused == "nobody was asked" {
				t.Error(lasts, what, text)
			}
		}
	}
}

// F34: what an approval of a note covers is told, too, and it has nothing narrower.
func TestF34ForOfANote(t *testing.T) {
	r := newRig(t)
	if err := r.memory.Import("notes", "today", "bread"); err != nil {
		t.Fatal(err)
	}
	s, full := r.client(), map[string]any{"action": "fetch", "store": "notes", "key": "today", "preview_only": false}
	asked := r.person(gate.Reply{Allow: true, For: gate.ForSession, Narrow: true})
	done := make(chan struct{})
	go func() {
		defer close(done)
		if about := <-asked; !strings.Contains(about, gate.ErrFor.Error()) {
			t.Error(about)
		}
		if told := show.Question(r.gate.Pending()[0]); !strings.Contains(told, "--for session: the whole text of notes/today, also as it will be changed, until this container ends") || strings.Contains(told, "--narrow") {
			t.Error(told)
		}
		<-r.person(gate.Reply{Allow: true, For: gate.ForSession})
	}()
	for range 2 { // the second is asked about no more
		if text, res := r.announced(s, "", recallName, full); res.IsError {
			t.Error(text)
		}
	}
	<-done
}

// F39, M5: a budget that is used up has a code of its own.
func TestF39BudgetHasACodeM5(t *testing.T) {
	r := newRig(t)
	if err := r.memory.Import("notes", "long", strings.Repeat("bread ", 9000)); err != nil {
		t.Fatal(err)
	}
	r.allow("allow: ['LocalMemoryRecall(fetch:notes/long)']", "")
	s := r.client()
	for i := range 3 {
		text, res := r.announced(s, "", recallName, map[string]any{"action": "fetch", "store": "notes", "key": "long", "preview_only": false})
		reason, _ := res.Meta["weir/reason"].(map[string]any)
		if res.IsError != (i == 2) || res.IsError && (reason["reason"] != "budget_used" || !strings.Contains(text, "are used up")) {
			t.Errorf("%d: %.80q %v", i, text, reason)
		}
	}
	uses := r.uses()
	if d := uses[len(uses)-1].Verdict; d.Decision != "deny" || d.Reason != "budget_used" {
		t.Errorf("%+v", d)
	}
}

// F36: a call without auth_scheme sends the secret as a bearer token, and the answer has the text of the status.
func TestF36DefaultSchemeAndStatusText(t *testing.T) {
	r := newRig(t)
	r.bind(r.host())
	r.allow("allow: [VaultHttpFetch(gh)]", "")
	in := r.request("/401")
	delete(in, "auth_scheme")
	text, res := r.announced(r.client(), "", fetchName, in)
	if res.IsError || !strings.HasPrefix(text, "HTTP/2.0 401 Unauthorized\n") || res.Meta["weir/statusText"] != "Unauthorized" || r.sent[0] != "Bearer "+secret {
		t.Errorf("%q %v %q", text, res.Meta, r.sent)
	}
}

// A rule that could not be written is told of: the call is allowed, once.
func TestRuleThatIsNotWritten(t *testing.T) {
	r := newRig(t)
	r.bind(r.host())
	r.unruled = errors.New("read-only file system")
	s := r.client()
	asked := r.person(gate.Reply{Allow: true, For: gate.ForKey})
	if text, res := r.announced(s, "", fetchName, r.request("/")); res.IsError {
		t.Fatal(text, <-asked)
	}
	if uses := r.uses(); len(uses) != 1 || !strings.Contains(uses[0].Verdict.Text, "was not written") || uses[0].Verdict.For != "" {
		t.Errorf("%+v", uses[0].Verdict)
	}
	told := 0
	r.mu.Lock()
	for _, e := range r.events {
		if e.Kind == event.Error && strings.Contains(e.Message, "read-only file system") && strings.Contains(e.Message, "VaultHttpFetch(gh@") {
			told++
		}
	}
	r.mu.Unlock()
	if told != 1 {
		t.Errorf("%d events tell of it", told)
	}
	asked = r.person(gate.Reply{})
	if text, res := r.announced(s, "", fetchName, r.request("/")); !res.IsError || !strings.Contains(<-asked, "key gh") {
		t.Error(text)
	}
}

// Why an approval could not be used is told as it is: not every failure is a second use.
func TestApprovalThatIsNotUsed(t *testing.T) {
	r := newRig(t)
	r.bind(r.host())
	s := r.client()
	for want, err := range map[string]error{
		"used_once": gate.ErrUsed, "unclaimed": gate.ErrExpired, "store_failed": errors.New("no space left on device"),
	} {
		r.mu.Lock()
		r.unused = fmt.Errorf("use question: %w", err)
		r.mu.Unlock()
		asked := r.person(gate.Reply{Allow: true})
		text, res := r.announced(s, "", fetchName, r.request("/"+want))
		<-asked
		reason, _ := res.Meta["weir/reason"].(map[string]any)
		if !res.IsError || reason["reason"] != want || strings.Contains(text, "used already") != (want == "used_once") || strings.Contains(text, "space left") {
			t.Errorf("%s: %q %v", want, text, res.Meta)
		}
	}
	for _, u := range r.uses() {
		if u.Verdict.Decision != "deny" || !strings.HasSuffix(u.Use.Path, u.Verdict.Reason) {
			t.Errorf("%+v %+v", u.Use, u.Verdict)
		}
	}
}

// What a person allows for a session, and the pages of an answer, are of one container: another one that has its id later, as a service that starts again
// has, is asked about anew. Of too many approvals the oldest ends.
func TestSessionsEndWithTheirContainer(t *testing.T) {
	r := newRig(t)
	r.bind(r.host())
	s := r.client()
	asked := r.person(gate.Reply{Allow: true, For: gate.ForSession})
	if text, res := r.announced(s, "", fetchName, r.request("/long")); res.IsError {
		t.Fatal(text, <-asked)
	}
	r.mu.Lock()
	r.cgroup++
	r.mu.Unlock()
	asked = r.person(gate.Reply{})
	if text, res := r.announced(s, "", fetchName, r.request("/")); !res.IsError || !strings.Contains(<-asked, "key gh") {
		t.Error(text)
	}
	q := r.request("/long")
	q["page"] = 2
	if text, res := r.announced(s, "", fetchName, q); !res.IsError {
		t.Errorf("%.100q", text)
	}
	var log strings.Builder
	logger := logrus.New()
	logger.SetOutput(&log)
	server, who := NewToolServer(ToolOptions{Logger: logger}), Asker{Container: event.Container{ID: "g-test"}}
	for i := range maxGrants + 1 {
		server.grant(&grant{container: who.Container}, fmt.Sprint(i))
		server.grant(&grant{container: who.Container}, fmt.Sprint(i))
	}
	granted := func(rule int) bool { return server.isGranted(who, []gate.Cover{{Rule: fmt.Sprint(rule)}}) }
	if granted(0) || !granted(1) || !granted(maxGrants) || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("%d are kept: %s", len(server.granted), log.String())
	}
}

// What a person allows for a session ends with new taint, as it does for commands, and opens nothing in seal. What was cleared is new when it
// comes again.
func TestSessionsEndWithNewTaint(t *testing.T) {
	r := newRig(t)
	r.bind(r.host())
	s := r.client()
	set := func(taint ...string) { r.mu.Lock(); defer r.mu.Unlock(); r.bits = taint }
	lasts := func() {
		t.Helper()
		asked := r.person(gate.Reply{Allow: true, For: gate.ForSession})
		text, res := r.announced(s, "", fetchName, r.request("/"))
		if about := <-asked; res.IsError || !strings.Contains(about, "key gh") {
			t.Fatalf("asked %q: %s", about, text)
		}
	}
	covered := func(when string, want bool) {
		t.Helper()
		path := "/" + strings.ReplaceAll(when, " ", "-") // no question twice: who was told no is not asked about again
		if want {
			if text, res := r.announced(s, "", fetchName, r.request(path)); res.IsError {
				t.Errorf("%s: %s", when, text)
			}
			return
		}
		asked := r.person(gate.Reply{})
		if text, res := r.announced(s, "", fetchName, r.request(path)); !res.IsError || !strings.Contains(<-asked, "key gh") {
			t.Errorf("%s: %s", when, text)
		}
	}
	lasts()
	covered("at once", true)
	set("corruption")
	covered("tainted", false)
	lasts() // now for that, too
	covered("tainted, and given for that", true)
	set("corruption", "secret")
	covered("tainted more", false)
	set()
	covered("without taint", true)
	r.tools.Cleared([]string{"corruption"}, func(c event.Container) bool { return c.ID == "g-test" })
	covered("cleared", true)
	set("corruption")
	covered("tainted anew", false)

	asked := make(chan string, 1)
	go func() {
		for len(r.gate.Pending()) == 0 && t.Context().Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		r.tools.Cleared([]string{"corruption"}, func(c event.Container) bool { return c.ID == "g-test" })
		asked <- <-r.person(gate.Reply{Allow: true, For: gate.ForSession})
	}()
	if text, res := r.announced(s, "", fetchName, r.request("/asked")); res.IsError {
		t.Fatalf("asked %q: %s", <-asked, text)
	}
	covered("tainted anew after it was cleared during the answer", false)
	set()
	covered("as it was when the answer came", true)

	if err := r.memory.Import("notes", "today", "a note"); err != nil {
		t.Fatal(err)
	}
	note := map[string]any{"action": "fetch", "store": "notes", "key": "today", "preview_only": false}
	about := r.person(gate.Reply{Allow: true, For: gate.ForSession})
	if text, res := r.announced(s, "", recallName, note); res.IsError || !strings.Contains(<-about, "notes") {
		t.Fatal(text)
	}
	r.mu.Lock()
	r.mode = "seal"
	r.mu.Unlock()
	if text, res := r.announced(s, "", recallName, note); !res.IsError {
		t.Errorf("in seal: %s", text)
	}
}

// V7: a key that is bound nowhere is asked about whatever its rule, and the first approval binds it.
func TestFirstApprovalBindsV7(t *testing.T) {
	r := newRig(t)
	r.bind()
	r.allow("allow: [VaultHttpFetch(gh)]", "")
	s := r.client()
	asked := r.person(gate.Reply{})
	if text, res := r.announced(s, "", fetchName, r.request("/")); !res.IsError || !strings.Contains(<-asked, "binds it to "+r.host()) {
		t.Error(text)
	}
	list, err := r.vault.List()
	if err != nil || len(list[0].Binding.Hosts) != 0 {
		t.Error("a refusal binds:", list, err)
	}
	asked = r.person(gate.Reply{Allow: true})
	if text, res := r.announced(s, "", fetchName, r.request("/other")); res.IsError {
		t.Error(text, <-asked)
	}
	list, err = r.vault.List()
	if err != nil || !cmp.Equal(list[0].Binding.Hosts, []string{r.host()}) {
		t.Error(list, err)
	}
	if text, res := r.announced(s, "", fetchName, r.request("/third")); res.IsError { // now the rule is enough
		t.Error(text)
	}
	q := r.request("/")
	q["url"] = "https://evil.example.com/"
	if text, res := r.announced(s, "", fetchName, q); !res.IsError || !strings.Contains(text, "not_bound") {
		t.Error(text)
	}
}

// B161: a header that the key does not name is a person's to allow, each time and whatever the rules say, and they see it; so does the log.
func TestB161HeaderIsAsked(t *testing.T) {
	r := newRig(t)
	r.bind(r.host())
	r.allow("allow: [VaultHttpFetch(gh)]", "")
	s := r.client()
	q := r.request("/")
	q["auth_scheme"], q["auth_header_name"] = "custom", "X-Title"
	key := r.request("/")
	key["auth_scheme"] = vault.XAPIKey
	asked := r.person(gate.Reply{})
	if text, res := r.announced(s, "", fetchName, key); !res.IsError || !strings.Contains(<-asked, "in the header X-Api-Key") {
		t.Errorf("X-Api-Key: %s", text)
	}
	for i, reply := range []gate.Reply{{}, {Allow: true, For: gate.ForSession}, {}} {
		q["url"] = fmt.Sprintf("https://%s/%d", r.host(), i)
		asked := r.person(reply)
		text, res := r.announced(s, "", fetchName, q)
		if about := <-asked; res.IsError == reply.Allow || !strings.Contains(about, "with the key gh in the header X-Title (custom), because") {
			t.Errorf("%q: %s", about, text)
		}
	}
	if text, res := r.announced(s, permission.ModeNoAsk, fetchName, q); !res.IsError {
		t.Errorf("nobody may be asked: %s", text)
	}
	if text, res := r.announced(s, "", fetchName, r.request("/")); res.IsError {
		t.Errorf("bearer: %s", text)
	}
	list, err := r.vault.List()
	if err != nil {
		t.Fatal(err)
	}
	b := list[0].Binding
	b.Header = "X-Title"
	if err := r.vault.Bind("gh", b); err != nil {
		t.Fatal(err)
	}
	if text, res := r.announced(s, "", fetchName, q); res.IsError {
		t.Errorf("the key's own: %s", text)
	}
	if text, res := r.announced(s, "", fetchName, r.request("/")); !res.IsError || !strings.Contains(text, "not_bound") {
		t.Errorf("another than the key's: %s", text)
	}
	var used []string
	for _, e := range r.uses() {
		used = append(used, e.Verdict.Decision+" "+e.Use.Scheme+" "+e.Use.Header)
	}
	const custom, bearer = " custom X-Title", " bearer Authorization"
	if d := cmp.Diff([]string{"deny header_x_api_key X-Api-Key", "deny" + custom, "allow" + custom, "deny" + custom, "deny" + custom, "allow" + bearer, "allow" + custom, "deny" + bearer}, used); d != "" {
		t.Error(d)
	}
}

// M1, M2, M6 over MCP.
func TestRecallM1M2M6(t *testing.T) {
	r := newRig(t)
	for _, err := range []error{r.memory.Import("notes", "today", "bread"), r.memory.Import("marked", "x", "y"), r.memory.Mark("marked", memory.Marks{Secret: true, Foreign: true})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s := r.client()
	for _, in := range []map[string]any{{"action": "list_stores"}, {"action": "list_entries", "store": "notes"}, {"action": "fetch", "store": "notes", "key": "today"}} {
		text, res := r.announced(s, "", recallName, in)
		if res.IsError || !strings.Contains(text, "notes") && !strings.Contains(text, "today") {
			t.Error(in, text)
		}
	}
	if len(r.tainted) != 0 {
		t.Error(r.tainted)
	}
	full := map[string]any{"action": "fetch", "store": "notes", "key": "today", "preview_only": false}
	asked := r.person(gate.Reply{Allow: true})
	if text, res := r.announced(s, permission.ModeBypass, recallName, full); res.IsError || !strings.Contains(text, "bread") || !strings.Contains(<-asked, "notes/today") {
		t.Error(text)
	}
	r.allow("allow: ['LocalMemoryRecall(fetch:notes/today)']", "")
	if text, res := r.announced(s, "", recallName, full); res.IsError {
		t.Error(text)
	}
	marked := map[string]any{"action": "fetch", "store": "marked", "key": "x"}
	if text, res := r.announced(s, "", recallName, marked); res.IsError || len(r.tainted) != 1 || !strings.HasPrefix(r.tainted[0], "secret true, corruption true") {
		t.Error(text, r.tainted)
	}
	r.mu.Lock()
	r.taint = errors.New("no")
	r.mu.Unlock()
	if text, res := r.announced(s, "", recallName, marked); !res.IsError || strings.Contains(text, ">\ny\n<") {
		t.Error("handed over without its taint:", text)
	}
	for _, in := range []map[string]any{{"action": "fetch", "store": "notes", "key": "none"}, {"action": "fetch", "store": "../x", "key": "y"}, {"action": "list_stores", "extra": 1}, {}} {
		if text, res := r.announced(s, "", recallName, in); !res.IsError {
			t.Error(in, text)
		}
	}
}

// One container takes no more than its share of the calls that are under way, and gives it back.
func TestShareOfCalls(t *testing.T) {
	r := newRig(t)
	r.bind(r.host())
	s, more := r.client(), r.client()
	notes := map[string]any{"action": "list_stores"}
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for i := range maxOwn {
		q := r.request(fmt.Sprint("/", i))
		if a := r.hook(wire.Request{}, fetchName, q); a.Decision != wire.Allow {
			t.Fatal(a)
		}
		on := s
		if i%2 == 0 {
			on = more
		}
		waiting.Go(func() {
			// it is cancelled
			_, _ = on.CallTool(ctx, &callParams{Name: fetchName, Arguments: q})
		})
	}
	for deadline := time.Now().Add(time.Minute); len(r.gate.Pending()) < maxOwn; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d wait", len(r.gate.Pending()))
		}
	}
	if text, res := r.announced(r.client(), "", recallName, notes); !res.IsError || !strings.Contains(text, "too many calls") {
		t.Error(text)
	}
	r.mu.Lock()
	r.cgroup++
	r.mu.Unlock()
	if text, res := r.announced(r.client(), "", recallName, notes); res.IsError {
		t.Error("another container:", text)
	}
	r.mu.Lock()
	r.cgroup--
	r.mu.Unlock()
	cancel()
	waiting.Wait()
	last := r.client() // one: a container has its share of connections, too
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		text, res := r.announced(last, "", recallName, notes)
		if !res.IsError {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(text)
		}
	}
}

// B163: a call that waits for the key is held against the operator's word once its turn has come.
func TestB163SealedMeanwhile(t *testing.T) {
	r := newRig(t)
	r.bind(r.host())
	r.allow("allow: [VaultHttpFetch(gh)]", "")
	until := func(what string, seen func() bool) {
		t.Helper()
		deadline := time.Now().Add(time.Minute)
		for met := false; !met; time.Sleep(time.Millisecond) {
			r.mu.Lock()
			met = seen()
			r.mu.Unlock()
			if time.Now().After(deadline) {
				t.Fatal(what)
			}
		}
	}
	for _, path := range []string{"/slow", "/"} {
		if a := r.hook(wire.Request{}, fetchName, r.request(path)); a.Decision != wire.Allow {
			t.Fatal(a)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go r.client().CallTool(ctx, &callParams{Name: fetchName, Arguments: r.request("/slow")})
	until("the first is not sent", func() bool { return len(r.sent) == 1 })
	checked := r.checked
	answer := make(chan *callResult, 1)
	go func() {
		res, err := r.client().CallTool(t.Context(), &callParams{Name: fetchName, Arguments: r.request("/")})
		if err != nil {
			t.Error(err)
		}
		answer <- res
	}()
	until("the second is not checked", func() bool { return r.checked >= checked+2 })
	r.mu.Lock()
	r.mode = "seal"
	r.mu.Unlock()
	cancel()
	if res := <-answer; res == nil || !res.IsError || !strings.Contains(res.Text, "closed") || len(r.sent) != 1 {
		t.Errorf("%+v, sent %d", res, len(r.sent))
	}
	if uses := r.uses(); !slices.ContainsFunc(uses, func(e event.Event) bool { return e.Verdict.Decision == "deny" && e.Verdict.Reason == "sealed" }) {
		t.Errorf("%+v", uses)
	}
}

// V4: a call that is cancelled cancels its request, and its question has nobody who waits.
func TestCancelV4(t *testing.T) {
	r := newRig(t)
	r.bind(r.host())
	r.allow("allow: [VaultHttpFetch(gh)]", "")
	s := r.client()
	if a := r.hook(wire.Request{}, fetchName, r.request("/slow")); a.Decision != wire.Allow {
		t.Fatal(a)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // once the request is under way
		defer cancel()
		arrived := func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.sent) > 0 }
		for !arrived() && t.Context().Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
	}()
	if _, err := s.CallTool(ctx, &callParams{Name: fetchName, Arguments: r.request("/slow")}); err == nil {
		t.Error("no error")
	}
	for range 6000 {
		if uses := r.uses(); len(uses) > 0 {
			if uses[0].Use.Failure != "cancelled" {
				t.Errorf("%+v", uses[0].Use)
			}
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the request was not cancelled")
}

func TestClientsThatBehaveBadly(t *testing.T) {
	r := newRig(t)
	s := r.client()
	for _, args := range []any{json.RawMessage(`[]`), json.RawMessage(`"x"`), json.RawMessage(`{"action":{"a":1}}`), map[string]any{"action": strings.Repeat("x", 1<<20)}} {
		for _, tool := range []string{fetchName, recallName} {
			res, err := s.CallTool(t.Context(), &callParams{Name: tool, Arguments: args})
			if err == nil && !res.IsError {
				t.Errorf("%s takes %.40v", tool, args)
			}
		}
	}
	if res, err := s.CallTool(t.Context(), &callParams{Name: "VaultRead"}); err != nil || !res.IsError || !strings.Contains(res.Text, "no such tool") {
		t.Errorf("a tool that is none is called: %+v %v", res, err)
	}
}

// F29: where a rule asks about a tool that needs a person, no mode of the agent's leaves the question out, whatever the tool is asked for. An
// approval covers what was shown.
func TestAskIsAskedF29(t *testing.T) {
	calls := []struct {
		in          map[string]any
		shown, rule string
	}{
		{map[string]any{"action": "list_stores"}, "the names of all stores", "LocalMemoryRecall(list_stores)"},
		{map[string]any{"action": "list_entries", "store": "notes"}, "the names of what is in notes", "LocalMemoryRecall(list_entries:notes)"},
		{map[string]any{"action": "fetch", "store": "notes", "key": "today"}, "the beginning of notes/today", "LocalMemoryRecall(preview:notes/today)"},
		{map[string]any{"action": "fetch", "store": "notes", "key": "today", "preview_only": false}, "the whole text of notes/today", "LocalMemoryRecall(fetch:notes/today)"},
	}
	for _, c := range calls {
		r := newRig(t) // a container has not so many questions in a minute
		if err := r.memory.Import("notes", "today", "bread"); err != nil {
			t.Fatal(err)
		}
		s := r.client()
		for _, rules := range [][2]string{{"ask: [LocalMemoryRecall]"}, {"ask: ['" + c.rule + "']"}, {"allow: ['" + c.rule + "']", "ask: [LocalMemoryRecall]"}, {"ask: [mcp__weir]"}, {"", "ask: ['mcp__*']"}} {
			r.allow(rules[0], rules[1])
			for _, mode := range []string{"", permission.ModeDefault, permission.ModeBypass, "acceptEdits", "plan", "auto"} {
				asked := r.person(gate.Reply{Allow: true})
				text, res := r.announced(s, mode, recallName, c.in)
				if shown := <-asked; res.IsError || !strings.Contains(shown, c.shown) {
					t.Errorf("%v in mode %q: %q, asked %q", c.in, mode, text, shown)
				}
			}
			if text, res := r.announced(s, permission.ModeNoAsk, recallName, c.in); !res.IsError || !strings.Contains(text, "mode_does_not_ask") {
				t.Errorf("%v: %q", c.in, text)
			}
		}
		r.allow("ask: [LocalMemoryRecall]", "")
		asked := r.person(gate.Reply{Allow: true, For: gate.ForKey})
		if text, res := r.announced(s, permission.ModeBypass, recallName, c.in); res.IsError {
			t.Error(text, <-asked)
		}
		if last := r.written[len(r.written)-1]; last != c.rule {
			t.Errorf("written %q", last)
		}
		if _, err := permission.ParseRule(c.rule, permission.Allow); err != nil {
			t.Error(err)
		}
	}
}
