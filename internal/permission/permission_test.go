package permission

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckKeyP1(t *testing.T) {
	for _, good := range []string{"a", "github-token", "a_b", "A.b.c", "x.", "-", "COM0", "COM10", "console", "NULL.txt", strings.Repeat("k", 128)} {
		if err := CheckKey(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", ".", "..", ".git", "a/b", `a\b`, "a b", "a\x00", "a\n", "ä", "a:b", "a*", strings.Repeat("k", 129), "\xff",
		"CON", "con", "Prn", "aux.txt", "NUL.tar.gz", "com1", "COM9.x", "lpt1", "LPT9.",
	} {
		if err := CheckKey(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestKeyErrorQuotesSafelyP1(t *testing.T) {
	text := CheckKey("\x1b[2J\u202e/" + strings.Repeat("x", 500)).Error()
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' && r != '…' }) || len(text) > 250 {
		t.Errorf("%q", text)
	}
}

func TestRulesP2P7(t *testing.T) {
	for _, tt := range []struct {
		list List
		rule string
		want string // what the reason holds; empty: accepted
	}{
		{Allow, "VaultHttpFetch", "whole vault"},
		{Ask, "VaultHttpFetch", ""},
		{Deny, "VaultHttpFetch", ""},
		{Allow, "mcp__weir__VaultHttpFetch", "whole vault"},
		{Allow, "VaultHttpFetch(github-token)", ""},
		{Allow, "VaultHttpFetch(github-token@api.github.com)", ""},
		{Allow, "VaultHttpFetch(github-token@API.github.com)", "not written as hosts are compared"},
		{Allow, "VaultHttpFetch(github-token@https://api.github.com)", "not written as hosts are compared"},
		{Allow, "VaultHttpFetch(github-token@api.github.com GET /user)", ""}, // F34
		{Ask, "VaultHttpFetch(github-token@api.github.com:8443 DELETE /a%2A/b;c)", ""},
		{Deny, "VaultHttpFetch(github-token@api.github.com GET /user)", "another spelling"},
		{Allow, "VaultHttpFetch(github-token@api.github.com GET)", "not followed by a method and a path"},
		{Allow, "VaultHttpFetch(github-token@api.github.com get /user)", "not followed by a method and a path"},
		{Allow, "VaultHttpFetch(github-token@api.github.com GET user)", "not followed by a method and a path"},
		{Allow, "VaultHttpFetch(github-token@api.github.com  /user)", "not followed by a method and a path"},
		{Allow, "VaultHttpFetch(github-token@api.github.com GET /user?x)", "not followed by a method and a path"},
		{Allow, "VaultHttpFetch(github-token@api.github.com GET /*)", "wildcard"},
		{Allow, "VaultHttpFetch(git hub)", "no key"},
		{Allow, "VaultHttpFetch(*)", "wildcard"},
		{Ask, "VaultHttpFetch(git*)", "wildcard"},
		{Deny, "VaultHttpFetch(git*)", ""},
		{Deny, "VaultHttpFetch(*@evil.example)", ""},
		{Deny, "vaulthttpfetch", "spelled"},
		{Deny, "Vault_Http_Fetch", "spelled"},
		{Allow, "LocalMemoryRecall", "in full"},
		{Allow, "LocalMemoryRecall(fetch:notes/today)", ""},
		{Allow, "LocalMemoryRecall(fetch:notes/*)", "wildcard"},
		{Deny, "LocalMemoryRecall(fetch:*/*)", ""},
		{Deny, "LocalMemoryRecall(fetch:*)", ""},
		{Deny, "LocalMemoryRecall(*)", ""},
		{Deny, "LocalMemoryRecall(fetch:notes)", "does not name an entry"},
		{Deny, "LocalMemoryRecall(fetch:no/tes/x)", "no key"},
		{Deny, "LocalMemoryRecall(read:notes)", "not a content"},
		{Allow, "Bash(npm test)", ""},
		{Allow, "Bash(npm run:*)", ""}, // F30: agents' own tools have their own syntax
		{Deny, "Bash(git push *)", ""},
		{Deny, "Bash(echo (a))", ""},
		{Deny, "Bash(", "not closed"},
		{Deny, "Bash()", "empty"},
		{Deny, "", "empty"},
		{Deny, " Bash", "space"},
		{Deny, "Ba sh(x)", "not a tool"},
		{Deny, "(x)", "not a tool"},
		{Deny, "Bash(\x00)", "control"},
		{Deny, strings.Repeat("x", 5000), "more than"},
	} {
		_, err := ParseRule(tt.rule, tt.list)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s %q: %v", tt.list, tt.rule, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s %q: %v, want %q", tt.list, tt.rule, err, tt.want)
		}
	}
}

func parse(t *testing.T, own, managed string) (*Set, []Warning) {
	t.Helper()
	s, w, err := Parse(File{"managed-permissions.yaml", []byte(managed), true}, File{"permissions.yaml", []byte(own), false})
	if err != nil {
		t.Fatal(err)
	}
	return s, w
}

func TestOneBadRuleIsDroppedP3(t *testing.T) {
	s, warnings := parse(t, `
version: 1
deny:
  - Bash(rm -rf /)
  - "Vault HttpFetch"
allow: [VaultHttpFetch, "VaultHttpFetch(github-token)"]
`, "")
	want := []Warning{
		{"Vault HttpFetch", Deny, "permissions.yaml", 5, `"Vault HttpFetch" is not a tool's name`,
			"begin with the tool's name: letters, digits, _, - and .", "VaultHttpFetch", false},
		{"VaultHttpFetch", Allow, "permissions.yaml", 6, "the whole vault would be allowed",
			"allow one key: VaultHttpFetch(github-token)", "VaultHttpFetch(github-token)", false},
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Error(diff)
	}
	if s.Len() != 2 {
		t.Errorf("%d rules are in force", s.Len())
	}
	for _, w := range warnings {
		line := w.String()
		for _, part := range []string{w.Rule, string(w.List), w.File, w.Reason, w.Suggestion, w.Example} {
			if !strings.Contains(line, part) {
				t.Errorf("%q lacks %q", line, part)
			}
		}
	}
}

func TestFilesThatAreOddP3(t *testing.T) {
	for _, tt := range []struct {
		name, data string
		rules      int
		warnings   int
	}{
		{"empty", "", 0, 0},
		{"comment", "# nothing\n", 0, 0},
		{"empty list", "deny:\nallow: []\n", 0, 0},
		{"a lone rule still denies", "deny: VaultHttpFetch\n", 1, 0},
		{"JSON", `{"deny": ["Bash(\ud83d\ude00)"], "allow": ["VaultHttpFetch(a)"]}`, 2, 0},
		{"JSON with tabs", "{\n\t\"deny\": [\n\t\t\"Bash\"\n\t]\n}\n", 1, 0},
		{"an unknown setting", "denny: [Bash]\ndeny: [Bash]\n", 1, 1},
		{"a list twice", "deny: [Bash]\ndeny: [Read]\n", 2, 1},
		{"items of the wrong type", "deny: [1, true, null, {a: b}, [Bash], Bash]\n", 1, 5},
		{"a list of the wrong type", "deny: {Bash: true}\nask: [Bash]\n", 1, 1},
		{"an alias", "deny: [&a Bash]\nask: [*a]\n", 1, 1},
		{"a wrong version", "version: 7\ndeny: [Bash]\n", 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, w := parse(t, tt.data, "")
			if s.Len() != tt.rules || len(w) != tt.warnings {
				t.Errorf("%d rules, warnings %v", s.Len(), w)
			}
		})
	}
	for _, bad := range []string{"[", "deny: [Bash", "- Bash", "a\xff", "deny: []\n---\ndeny: [Bash]\n", strings.Repeat("#", 2<<20),
		"deny: [" + strings.Repeat("Bash,", 10001) + "]"} {
		if s, _, err := Parse(File{Name: "f", Data: []byte(bad)}); err == nil || s != nil || !strings.Contains(err.Error(), "permissions: f:") {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
}

const vaultInput = `{"url":"https://api.github.com/x","vault_auth_key":"gh","auth_scheme":"bearer","reason":"r"}`

func TestEvaluationP4(t *testing.T) {
	for _, tt := range []struct {
		name, own, managed string
		tool, input        string
		want               Decision
		reason             Reason
	}{
		{"no rule, an agent's own tool", "", "", "Bash", `{"command":"ls"}`, Allowed, Reason{"other", "", NoRule}},
		{"no rule, vault", "", "", "VaultHttpFetch", vaultInput, Asked, Reason{"other", "", NoRule}},
		{"a key is allowed", "allow: [VaultHttpFetch(gh)]", "", "mcp__weir__VaultHttpFetch", vaultInput, Allowed, Reason{"rule", "VaultHttpFetch(gh)", ""}},
		{"another key is", "allow: [VaultHttpFetch(other)]", "", "VaultHttpFetch", vaultInput, Asked, Reason{"other", "", NoRule}},
		{"a key for a host", "allow: [VaultHttpFetch(gh@api.github.com)]", "", "VaultHttpFetch", vaultInput, Allowed, Reason{"rule", "VaultHttpFetch(gh@api.github.com)", ""}},
		{"a key for another host", "allow: [VaultHttpFetch(gh@example.com)]", "", "VaultHttpFetch", vaultInput, Asked, Reason{"other", "", NoRule}},
		{"deny comes before allow", "allow: [VaultHttpFetch(gh)]\ndeny: [VaultHttpFetch]", "", "VaultHttpFetch", vaultInput, Denied, Reason{"rule", "VaultHttpFetch", ""}},
		{"allow comes before ask", "allow: [Bash(ls)]\nask: [Bash]", "", "Bash", `{"command":"ls"}`, Allowed, Reason{"rule", "Bash(ls)", ""}},
		{"ask", "ask: [Bash]", "", "Bash", `{"command":"ls"}`, Asked, Reason{"rule", "Bash", ""}},
		{"a wildcard denies", "deny: [LocalMemoryRecall(fetch:*/*)]", "", "LocalMemoryRecall", `{"action":"fetch","store":"s","key":"k","preview_only":false}`, Denied, Reason{"rule", "LocalMemoryRecall(fetch:*/*)", ""}},
		{"and previews of what it denies", "deny: [LocalMemoryRecall(fetch:*/*)]", "", "LocalMemoryRecall", `{"action":"fetch","store":"s","key":"k"}`, Denied, Reason{"rule", "LocalMemoryRecall(fetch:*/*)", ""}},
		{"ask about a text leaves its preview", "ask: [LocalMemoryRecall(fetch:s/k)]", "", "LocalMemoryRecall", `{"action":"fetch","store":"s","key":"k"}`, Allowed, Reason{"other", "", NoRule}},
		{"M1: a field is missing", "allow: [LocalMemoryRecall(fetch:s/k)]", "", "LocalMemoryRecall", `{"action":"fetch","store":"s"}`, Denied, Reason{"other", "", MissingField}},
		{"M1: no action", "", "", "LocalMemoryRecall", `{}`, Denied, Reason{"other", "", MissingField}},
		{"an unknown action", "", "", "LocalMemoryRecall", `{"action":"write"}`, Denied, Reason{"other", "", UnknownAction}},
		{"a key that is none", "", "", "LocalMemoryRecall", `{"action":"list_entries","store":"a/b"}`, Denied, Reason{"other", "", InvalidKey}},
		{"vault without reason", "allow: [VaultHttpFetch(gh)]", "", "VaultHttpFetch", `{"url":"https://x","vault_auth_key":"gh","auth_scheme":"bearer"}`, Denied, Reason{"other", "", MissingField}},
		{"names in another case", "deny: [VaultHttpFetch(gh)]\nallow: [VaultHttpFetch(x)]", "", "VaultHttpFetch", `{"url":"https://x","vault_auth_key":"gh","Vault_Auth_Key":"x","auth_scheme":"bearer","reason":"r"}`, Denied, Reason{"rule", "VaultHttpFetch(gh)", ""}},
		{"M1: names in another case", "", "", "LocalMemoryRecall", `{"action":"fetch","store":"s","key":"k","preview_only":false,"PREVIEW_ONLY":true,"Action":"list_stores"}`, Asked, Reason{"other", "", NoRule}},
		{"input that is no object", "", "", "VaultHttpFetch", `[]`, Denied, Reason{"other", "", MissingField}},
		{"M2: lists are allowed", "", "", "LocalMemoryRecall", `{"action":"list_stores"}`, Allowed, Reason{"other", "", NoRule}},
		{"M2: a full text asks", "", "", "LocalMemoryRecall", `{"action":"fetch","store":"s","key":"k","preview_only":false}`, Asked, Reason{"other", "", NoRule}},
		{"M2: and has its rule", "allow: ['LocalMemoryRecall(fetch:s/k)']", "", "LocalMemoryRecall", `{"action":"fetch","store":"s","key":"k","preview_only":false}`, Allowed, Reason{"rule", "LocalMemoryRecall(fetch:s/k)", ""}},
		{"P3: the administrator's deny holds", "allow: [Bash(ls)]", "deny: [Bash]", "Bash", `{"command":"ls"}`, Denied, Reason{"rule", "Bash", ""}},
		{"P3: the administrator's ask is not widened", "allow: [VaultHttpFetch(gh)]", "ask: [VaultHttpFetch]", "VaultHttpFetch", vaultInput, Asked, Reason{"rule", "VaultHttpFetch", ""}},
		{"P3: but narrowed", "deny: [VaultHttpFetch(gh)]", "allow: [VaultHttpFetch(gh)]", "VaultHttpFetch", vaultInput, Denied, Reason{"rule", "VaultHttpFetch(gh)", ""}},
		{"P3: the administrator cannot allow all either", "", "allow: [VaultHttpFetch]", "VaultHttpFetch", vaultInput, Asked, Reason{"other", "", NoRule}},
		{"P7: exact means exact", "deny: [Bash(ls)]", "", "Bash", `{"command":"ls -l"}`, Allowed, Reason{"other", "", NoRule}},
		{"a path", "deny: [Read(/etc/shadow)]", "", "Read", `{"file_path":"/etc/shadow"}`, Denied, Reason{"rule", "Read(/etc/shadow)", ""}},
		{"a domain", "deny: ['WebFetch(domain:example.com)']", "", "WebFetch", `{"url":"https://Example.com./x"}`, Denied, Reason{"rule", "WebFetch(domain:example.com)", ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := parse(t, tt.own, tt.managed)
			got := s.Check(Of(tt.tool, json.RawMessage(tt.input)), "")
			if diff := cmp.Diff(Result{tt.want, tt.reason}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEveryDenialHasAReasonP4(t *testing.T) {
	var zero Result
	if zero.Decision != Denied {
		t.Error("the zero result does not deny")
	}
	data, err := json.Marshal(Result{Denied, ruled(Rule{"Bash", "ls"})}.Reason)
	if err != nil || string(data) != `{"type":"rule","rule":"Bash(ls)"}` {
		t.Errorf("%s %v", data, err)
	}
	data, err = json.Marshal(other(MissingField))
	if err != nil || string(data) != `{"type":"other","reason":"missing_required_field"}` {
		t.Errorf("%s %v", data, err)
	}
}

func TestModesP5(t *testing.T) {
	vault, bash := Of("VaultHttpFetch", json.RawMessage(vaultInput)), Of("Bash", json.RawMessage(`{"command":"ls"}`))
	list := json.RawMessage(`{"action":"list_stores"}`)
	for _, tt := range []struct {
		name, own, managed string
		call               Call
		mode               string
		want               Decision
	}{
		{"absent means ask", "", "", vault, "", Asked},
		{"unknown means ask", "", "", vault, "yolo", Asked},
		{"default", "", "", vault, ModeDefault, Asked},
		{"acceptEdits", "", "", vault, "acceptEdits", Asked},
		{"plan", "", "", vault, "plan", Asked},
		{"bypass is asked all the same", "", "", vault, ModeBypass, Asked},
		{"bypass does not take a deny away", "deny: [VaultHttpFetch]", "", vault, ModeBypass, Denied},
		{"bypass of what needs no person", "ask: [Bash]", "", bash, ModeBypass, Allowed},
		{"but not of the administrator's ask", "", "ask: [Bash]", bash, ModeBypass, Asked},
		{"F29: all of the sensor's server, called by the tool's name alone", "ask: [mcp__weir]", "", Of("LocalMemoryRecall", list), ModeBypass, Asked},
		{"F29: by another name", "ask: ['mcp__weir__*']", "", Of("weir.LocalMemoryRecall", list), ModeBypass, Asked},
		{"F29: all servers", "ask: ['mcp__*']", "", Of("LocalMemoryRecall", list), ModeBypass, Asked},
		{"F29: denied", "deny: [mcp__weir]", "", Of("LocalMemoryRecall", list), ModeBypass, Denied},
		{"F29: denied by the administrator", "", "deny: ['mcp__weir__Local*']", Of("mcp__notes__LocalMemoryRecall", list), "", Denied},
		{"F29: another's server", "deny: [mcp__notes, 'mcp__weir__Vault*']", "", Of("LocalMemoryRecall", list), "", Allowed},
		{"no asking: deny", "", "", vault, ModeNoAsk, Denied},
		{"no asking: deny by rule", "ask: [Bash]", "", bash, ModeNoAsk, Denied},
		{"no asking leaves what is allowed", "allow: [VaultHttpFetch(gh)]", "", vault, ModeNoAsk, Allowed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := parse(t, tt.own, tt.managed)
			if got := s.Check(tt.call, tt.mode); got.Decision != tt.want {
				t.Errorf("%v %v", got.Decision, got.Reason)
			}
		})
	}
	var none *Set
	if got := none.Check(vault, ""); got.Decision != Asked {
		t.Errorf("without any rules: %v", got)
	}
}

func TestAdd(t *testing.T) {
	const rule = "VaultHttpFetch(gh@api.github.com)"
	for _, before := range []string{"", "# mine\ndeny: [Bash]\n", "allow:\n", "allow: VaultHttpFetch(a)\n", `{"allow": ["VaultHttpFetch(a)"]}`} {
		after, err := Add([]byte(before), Allow, rule)
		if err != nil {
			t.Fatalf("%q: %v", before, err)
		}
		was, _ := parse(t, before, "")
		s, warnings := parse(t, string(after), "")
		if len(warnings) > 0 || s.Len() != was.Len()+1 {
			t.Errorf("%q became %q: %v", before, after, warnings)
		}
		if strings.Contains(before, "# mine") && !strings.Contains(string(after), "# mine") {
			t.Errorf("the comment of %q is lost: %q", before, after)
		}
		if got := s.Check(Of("VaultHttpFetch", json.RawMessage(vaultInput)), ""); got.Decision != Allowed {
			t.Errorf("%q: %v", after, got)
		}
		again, err := Add(after, Allow, rule)
		if err != nil || string(again) != string(after) {
			t.Errorf("twice: %q %v", again, err)
		}
	}
	if _, err := Add(nil, Allow, "VaultHttpFetch"); err == nil {
		t.Error("a rule that is refused is written")
	}
}

func FuzzCheckKey(f *testing.F) {
	for _, s := range []string{"a", "a/b", "CON", "nul.txt", ".x", "\xff", strings.Repeat("a", 129)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		err := CheckKey(s)
		if err == nil {
			if s == "" || len(s) > 128 || s[0] == '.' || strings.ContainsAny(s, "/\\\x00:* ") || strings.ToValidUTF8(s, "") != s {
				t.Errorf("%q is accepted", s)
			}
			return
		}
		if strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x1b }) {
			t.Errorf("%q", err)
		}
	})
}

// No input makes a set that allows the vault as a whole, and what was read is the same when it is written and read again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"deny: [Bash]", `{"allow":["VaultHttpFetch(a)"]}`, "allow: [VaultHttpFetch, 'LocalMemoryRecall(fetch:*/*)']", "deny: &a [*a]", "allow: mcp__x__VaultHttpFetch"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, _, err := Parse(File{Name: "f", Data: data})
		if err != nil {
			return
		}
		for _, tool := range []string{VaultHTTPFetch, LocalMemoryRecall} {
			if _, ok := s.own.lists[Allow].first(&Call{Tool: tool, name: "mcp__weir__" + tool, Contents: []string{"no-such-content"}}, Allow); ok {
				t.Errorf("%q allows all of %s", data, tool)
			}
		}
		if more, err := Add(data, Deny, "Bash(x)"); err == nil {
			if next, _, err := Parse(File{Name: "f", Data: more}); err != nil || next.Len() < s.Len() {
				t.Errorf("%q became %q: %v", data, more, err)
			}
		}
	})
}

func FuzzMatches(f *testing.F) {
	f.Add("fetch:*/*", "fetch:a/b")
	f.Add("**", "")
	f.Add("a*a", "a")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 64 || len(text) > 64 {
			return
		}
		if got, want := Matches(pattern, text), slow(pattern, text); got != want {
			t.Errorf("%q %q: %v", pattern, text, got)
		}
	})
}

func slow(p, s string) bool {
	reach := make([]bool, len(s)+1)
	reach[0] = true
	for i := range len(p) {
		next := make([]bool, len(s)+1)
		for j := range reach {
			switch {
			case !reach[j]:
			case p[i] == '*':
				for k := j; k <= len(s); k++ {
					next[k] = true
				}
			case j < len(s) && s[j] == p[i]:
				next[j+1] = true
			}
		}
		reach = next
	}
	return reach[len(s)]
}
