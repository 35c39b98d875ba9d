package agenthook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"weir/internal/bridge/wire"
)

// FuzzHook (G9, G19): where the sensor denies everything, nothing that an agent hands over passes, and each denial is what the agent understands.
func FuzzHook(f *testing.F) {
	for _, seed := range []string{
		claudeCall + `"tool_name":"Bash","tool_input":{"command":"ls"}}`, claudeCall + `"tool_name":"Write","tool_input":null}`, `{"hook_event_name":"PostToolUse","tool_name":"Bash"}`,
		`{"Tool_Name":"x","tool_name":"Bash","tool_input":{"command":"a","command":"b"}}`, `{"tool_name":["Bash"]}`, "", "null", `{"tool_name":"Read","tool_input":{"file_path":"\u0000"},"cwd":5}`,
	} {
		f.Add([]byte(seed))
	}
	environ, _ := sensor(f, answer(wire.Deny, "Denied: because."))
	f.Fuzz(func(t *testing.T, data []byte) {
		var out, errs bytes.Buffer
		w := World{Stdin: bytes.NewReader(data), Stdout: &out, Stderr: &errs, Environ: environ, Self: "weir-hook", trust: trusted}
		switch code := w.PreToolUse(context.Background()); {
		case code == block:
			if errs.Len() == 0 {
				t.Fatal("blocked without a reason")
			}
		case code != ok:
			t.Fatalf("exit code %d lets it pass", code)
		case out.Len() == 0:
			var in map[string]any
			if err := json.Unmarshal(data, &in); err != nil {
				t.Fatalf("it passes: %v", err)
			}
			if event, _ := in["hook_event_name"].(string); event == "" || event == "PreToolUse" {
				t.Fatalf("it passes, as the event %q", event)
			}
		default:
			var said hookOutput
			if err := json.Unmarshal(out.Bytes(), &said); err != nil || said.Specific.Decision != "deny" || said.Specific.Event != "PreToolUse" || said.Specific.Reason == "" {
				t.Fatalf("%s: %v", out.Bytes(), err)
			}
		}
	})
}

// FuzzMCP (F39): each message is answered at most once, under its own id, in JSON-RPC; and without a sensor no call is made.
func FuzzMCP(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`, `{"jsonrpc":"2.0","id":"a","method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"LocalMemoryRecall","arguments":{"action":"list_stores"},"_meta":{"progressToken":1}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, `[{"jsonrpc":"2.0"}]`, `{"jsonrpc":"2.0","id":null,"method":"ping"}`, `{"jsonrpc":"2.0","id":1e999,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":3,"result":{}}`, `{"jsonrpc":"2.0","id":3,"method":5}`, `{"JSONRPC":"2.0","id":1,"Method":"ping"}`, `{"jsonrpc":"2.0","id":"\ud800","method":"ping","params":[]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var out bytes.Buffer
		s := &mcpServer{asker: World{Self: "weir-hook", trust: trusted}.asker(), ctx: context.Background(), out: &out, open: map[string]context.CancelFunc{}}
		s.take(line)
		s.calls.Wait()
		if s.failed != nil {
			t.Fatal(s.failed)
		}
		if out.Len() == 0 {
			return
		}
		var m struct {
			Version string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Result  map[string]any  `json:"result"`
			Error   *struct{ Code int }
		}
		if err := json.Unmarshal(out.Bytes(), &m); err != nil || m.Version != "2.0" || (m.Result == nil) == (m.Error == nil) || bytes.Count(out.Bytes(), []byte("\n")) != 1 {
			t.Fatalf("%s: %v", out.Bytes(), err)
		}
		if _, call := m.Result["content"]; call && m.Result["isError"] != true {
			t.Fatalf("a call was made: %s", out.Bytes())
		}
		var in fields
		if err := json.Unmarshal(line, &in); (err != nil || in["id"] == nil) && string(m.ID) != "null" || string(m.ID) != "null" && compact(m.ID) != compact(in["id"]) {
			t.Fatalf("%s answers %s", m.ID, in["id"])
		}
	})
}

// FuzzSettings (G19, G23): settings that are taken have the hook first and once, and deny direct fetches; taken out again, neither is left, and what is
// the agent's own stays.
func FuzzSettings(f *testing.F) {
	for _, seed := range []string{
		"", `{"model":"x","permissions":{"deny":["Bash(rm:*)"]}}`, `{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"/x/weir-hook claude"},{"command":"own"}]}]}}`,
		`{"hooks":{"PreToolUse":[1,null,{"hooks":{}},{"hooks":[5,{"command":7}]}]}}`, `{"hooks":[]}`, `{"permissions":{"deny":"WebFetch"}}`, "{} // x", `{"n":12345678901234567890,"n":1.0}`, "null",
	} {
		f.Add([]byte(seed))
	}
	const command = "weir-hook claude"
	f.Fuzz(func(t *testing.T, data []byte) {
		with, err := withHook("s", data, command, true)
		if err != nil {
			if !strings.Contains(err.Error(), "nothing was changed") {
				t.Fatal(err)
			}
			return
		}
		root, err := parse("s", with)
		if err != nil {
			t.Fatal(err)
		}
		list := root["hooks"].(map[string]any)["PreToolUse"].([]any)
		if first := fmt.Sprint(list[0]); !strings.Contains(first, command) || !deniesFetch(with) {
			t.Fatalf("%s", with)
		}
		if again, err := withHook("s", with, command, true); err != nil || !bytes.Equal(again, with) {
			t.Fatalf("again: %s, %v", again, err)
		}
		before, err := withoutHook("s", data, "claude")
		if err != nil {
			t.Fatal(err)
		}
		out, err := withoutHook("s", with, "claude")
		if err != nil {
			t.Fatal(err)
		}
		if again, err := withoutHook("s", out, "claude"); err != nil || !bytes.Equal(again, out) {
			t.Fatalf("the hook is left in %s, %v", out, err)
		}
		for key, own := range must(t, before) {
			if after := must(t, out)[key]; key != "hooks" && key != "permissions" && fmt.Sprint(after) != fmt.Sprint(own) {
				t.Fatalf("%s was %v and is %v", key, own, after)
			}
		}
	})
}

func must(t *testing.T, data []byte) map[string]any {
	t.Helper()
	root, err := parse("s", data)
	if err != nil {
		t.Fatal(err)
	}
	return root
}
