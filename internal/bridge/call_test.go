package bridge

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/gate"
	"weir/internal/permission"
	"weir/internal/toolguard"
)

// carrier knows agent_update, and notes what it was made to do.
type carrier struct {
	ran []string
	run func(context.Context) *toolguard.Error
}

func (c *carrier) Prepare(tool string, args json.RawMessage) (Job, *toolguard.Error) {
	if tool != "agent_update" {
		return Job{}, &toolguard.Error{Code: toolguard.UnknownTool, Message: "unknown"}
	}
	var in struct{ URL, SHA256 string }
	if json.Unmarshal(args, &in) != nil || in.SHA256 == "" {
		return Job{}, &toolguard.Error{Code: toolguard.InvalidArgs, Message: "needs sha256"}
	}
	read := marshal(map[string]string{"url": in.URL, "sha256": in.SHA256})
	return Job{Args: read, Asks: "agent_update: " + in.URL, Run: func(ctx context.Context, who Asker) (json.RawMessage, *toolguard.Error) {
		c.ran = append(c.ran, in.URL+" "+who.Container.ID)
		if c.run != nil {
			if err := c.run(ctx); err != nil {
				return nil, err
			}
		}
		return json.RawMessage(`{"changed":true}`), nil
	}}, nil
}

const release = "https://github.com/acme/agent/releases/download/v1/agent"

func callLine(tool, url string) string {
	return fmt.Sprintf(`{"v":"0.5","id":"7d31","tool":%q,"args":{"url":%q,"sha256":"00"}}`, tool, url)
}

// TestCallK9: what of a call of a tool is answered how, and that only what all let through is carried out.
func TestCallK9(t *testing.T) {
	allow := func(context.Context, gate.Request) gate.Verdict {
		return gate.Verdict{Decision: gate.Allow, Reason: gate.Approved}
	}
	refuse := func(r gate.Reason) func(context.Context, gate.Request) gate.Verdict {
		return func(context.Context, gate.Request) gate.Verdict {
			return gate.Verdict{Reason: r, Text: "not now"}
		}
	}
	update := callLine("agent_update", release)
	for name, c := range map[string]struct {
		line, mode, rules string
		killed            bool
		decide            func(context.Context, gate.Request) gate.Verdict
		code, says        string
		asked             int
	}{
		"a person allows":      {line: update, decide: allow, asked: 1},
		"also in observe":      {line: update, mode: "observe", decide: refuse(gate.Denied), code: toolguard.Unauthorized, says: "not now", asked: 1},
		"in seal":              {line: update, mode: "seal", rules: "allow: [agent_update]", decide: refuse(gate.Sealed), code: toolguard.Unauthorized, says: "closed", asked: 1},
		"a person refuses":     {line: update, decide: refuse(gate.Denied), code: toolguard.Unauthorized, says: "a person looked at this call", asked: 1},
		"nobody answers":       {line: update, decide: refuse(gate.Timeout), code: toolguard.Timeout, says: "in time", asked: 1},
		"nobody is there":      {line: update, decide: refuse(gate.NoApprover), code: toolguard.Unauthorized, says: "nobody is there", asked: 1},
		"kill switch":          {line: update, killed: true, decide: allow, code: toolguard.Disabled, says: "turned off"},
		"guard":                {line: callLine("agent_update", "https://evil.example/agent"), decide: allow, code: toolguard.Blocked, says: "update-source"},
		"guard in observe":     {line: callLine("agent_update", "http://github.com/a/b/releases/download/v1/c"), mode: "observe", decide: allow, code: toolguard.Blocked, says: "update-source"},
		"guard, twice":         {line: `{"id":"7d31","tool":"agent_update","args":{"url":"https://evil.example/a","url":"` + release + `","sha256":"00"}}`, decide: allow, code: toolguard.Blocked, says: "evil.example"},
		"a rule allows":        {line: update, rules: "allow: [agent_update]", decide: refuse(gate.Denied)},
		"a rule denies":        {line: update, rules: "deny: [agent_update]", decide: allow, code: toolguard.Unauthorized, says: "permission rules"},
		"denies, in observe":   {line: update, mode: "observe", rules: "deny: [agent_update]", decide: allow, code: toolguard.Unauthorized, says: "permission rules"},
		"a rule denies a host": {line: update, rules: "deny: ['agent_update(domain:github.com)']", decide: allow, code: toolguard.Unauthorized, says: "permission rules"},
		"a rule asks":          {line: update, rules: "ask: [agent_update]", decide: allow, asked: 1},
		"no sum":               {line: `{"v":"0.5","id":"7d31","tool":"agent_update","args":{"url":"` + release + `"}}`, decide: allow, code: toolguard.InvalidArgs, says: "sha256"},
		"another tool":         {line: `{"v":"0.5","id":"7d31","tool":"fs_read","args":{"path":"/work/a"}}`, decide: allow, code: toolguard.UnknownTool},
		"guard, another tool":  {line: `{"v":"0.5","id":"7d31","tool":"fs_read","args":{"path":"/etc/shadow"}}`, decide: allow, code: toolguard.Blocked, says: "shadow-file"},
		"0.4":                  {line: strings.Replace(update, "0.5", "0.4", 1), decide: allow, asked: 1},
		"another version":      {line: strings.Replace(update, "0.5", "9", 1), decide: allow, code: toolguard.InvalidArgs, says: "version"},
		"no tool":              {line: `{"v":"0.5","id":"7d31"}`, decide: allow, code: toolguard.InvalidArgs, says: "no tool"},
	} {
		t.Run(name, func(t *testing.T) {
			h, did := &host{asker: inside(), decide: c.decide}, new(carrier)
			if c.mode != "" {
				h.asker.Mode = c.mode
			}
			s := New(h, quiet())
			s.Carry(did)
			set, warnings, err := permission.Parse(permission.File{Name: "permissions.yaml", Data: []byte(c.rules)})
			if err != nil || len(warnings) > 0 {
				t.Fatal(err, warnings)
			}
			s.Use(Rules{Permissions: set, Killed: func() bool { return c.killed }})
			got := s.call(t.Context(), []byte(c.line), func() (Asker, error) { return h.asker, nil })
			code, says := "", ""
			if got.Error != nil {
				code, says = got.Error.Code, got.Error.Message
			}
			if got.ID != "7d31" || code != c.code || !strings.Contains(says, c.says) || got.OK != (code == "") || (got.Result != nil) != got.OK {
				t.Errorf("got %+v: %s %s", got, code, says)
			}
			var want []string
			if c.code == "" {
				want = []string{release + " g-test"}
			}
			if diff := cmp.Diff(want, did.ran); diff != "" {
				t.Error(diff)
			}
			if len(h.confirmed) != c.asked || c.asked == 1 && h.confirmed[0] != "agent_update: "+release {
				t.Errorf("asked %q", h.confirmed)
			}
			if (code == toolguard.Blocked || code == toolguard.Disabled) && len(h.denied) != 1 {
				t.Errorf("written: %+v", h.denied)
			}
		})
	}
}

// TestCallOrderK1: calls that are carried out go the way of all others, and no further than the first that denies.
func TestCallOrderK1(t *testing.T) {
	order := []string{"kill switch", "guard", "permission rules", "gate", "kill switch"}
	for i, denies := range order[:4] {
		st, did := &stages{denies: denies}, new(carrier)
		s := New(&host{decide: func(context.Context, gate.Request) gate.Verdict {
			if st.at("gate") {
				return gate.Verdict{Reason: gate.Denied}
			}
			return gate.Verdict{Decision: gate.Allow, Reason: gate.Approved}
		}}, quiet())
		s.Carry(did)
		s.Use(Rules{Guard: guardStage{st}, Permissions: permissionDefault{st}, Killed: func() bool { return st.at("kill switch") }})
		if a := s.call(t.Context(), []byte(callLine("agent_update", release)), func() (Asker, error) { return inside(), nil }); a.OK || len(did.ran) > 0 {
			t.Errorf("%s: %+v, %v", denies, a, did.ran)
		}
		if diff := cmp.Diff(order[:i+1], st.asked); diff != "" {
			t.Error(diff)
		}
	}
	// The switch that is turned while a person thinks.
	on, did := false, new(carrier)
	s := New(&host{decide: func(context.Context, gate.Request) gate.Verdict {
		on = true
		return gate.Verdict{Decision: gate.Allow, Reason: gate.Approved}
	}}, quiet())
	s.Carry(did)
	s.Use(Rules{Killed: func() bool { return on }})
	a := s.call(t.Context(), []byte(callLine("agent_update", release)), func() (Asker, error) { return inside(), nil })
	if a.OK || a.Error.Code != toolguard.Disabled || len(did.ran) > 0 {
		t.Errorf("%+v, %v", a, did.ran)
	}
}

// permissionDefault allows where no rule counts.
type permissionDefault struct{ *stages }

func (s permissionDefault) Check(permission.Call, string) permission.Result {
	if s.at("permission rules") {
		return permission.Result{}
	}
	return permission.Result{Decision: permission.Allowed, Reason: permission.Reason{Type: "other"}}
}

// TestCallSocketK9: the channel of calls is the bridge's socket; questions go on beside it, strangers and servers without tools carry out
// nothing, and who hangs up has the call withdrawn.
func TestCallSocketK9(t *testing.T) {
	h, did := &host{asker: inside()}, new(carrier)
	path := serveWith(t, h, did)
	conn := dial(t, path)
	in := bufio.NewReader(conn)
	read := func() (a toolguard.Answer) {
		t.Helper()
		line, err := in.ReadBytes('\n')
		if err != nil || json.Unmarshal(line, &a) != nil {
			t.Fatalf("%q: %v", line, err)
		}
		return a
	}
	io.WriteString(conn, callLine("agent_update", release)+"\n")
	if a := read(); !a.OK || a.ID != "7d31" || string(a.Result) != `{"changed":true}` {
		t.Errorf("got %+v", a)
	}
	io.WriteString(conn, bash("1", "ls"))
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, `"decision":"allow"`) {
		t.Errorf("got %q, %v", line, err)
	}
	h.set(func() { h.err = io.EOF })
	io.WriteString(conn, callLine("agent_update", release)+"\n")
	if a := read(); a.OK || a.Error.Code != toolguard.Unauthorized {
		t.Errorf("got %+v", a)
	}
	h.set(func() { h.err = nil })
	begun, ended := make(chan struct{}), make(chan struct{})
	did.run = func(ctx context.Context) *toolguard.Error {
		close(begun)
		<-ctx.Done()
		close(ended)
		return &toolguard.Error{Code: toolguard.Internal, Message: "cancelled"}
	}
	io.WriteString(conn, callLine("agent_update", release)+"\n")
	<-begun
	conn.Close()
	<-ended

	bare := dial(t, serve(t, &host{asker: inside()}))
	in = bufio.NewReader(bare)
	io.WriteString(bare, callLine("agent_update", release)+"\n")
	if a := read(); a.OK || a.Error.Code != toolguard.UnknownTool {
		t.Errorf("got %+v", a)
	}
}

// TestAsksCall: which lines are calls.
func TestAsksCall(t *testing.T) {
	var got []string
	for _, line := range []string{
		`{"v":"0.5","id":"1","tool":"x"}`, `{"tool":"x"}`, `{"v":"0.4"}`, `{"type":"security:tool_check","tool":"x"}`, `{"type":"security:bash_check","command":"ls"}`, `{"id":"1"}`, `[]`, `x`,
	} {
		if asksCall([]byte(line)) {
			got = append(got, line)
		}
	}
	if !slices.Equal(got, []string{`{"v":"0.5","id":"1","tool":"x"}`, `{"tool":"x"}`, `{"v":"0.4"}`}) {
		t.Errorf("got %q", got)
	}
}
