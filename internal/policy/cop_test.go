package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCop(t *testing.T) {
	usual := Default().Cop
	for _, c := range []struct {
		text string
		want Cop
	}{
		{"{}", usual},
		{"{grant_seconds: 9, grant_bytes: 64KiB}", Cop{Reviewer: "static", Flagged: "deny", Seconds: 5, Concurrency: 8, CacheSeconds: 300, Grant: Grant{Seconds: 9, Bytes: 64 << 10}}},
		{"{flagged: person}", Cop{Reviewer: "static", Flagged: "person", Seconds: 5, Concurrency: 8, CacheSeconds: 300, Grant: usual.Grant}}, // F06
		{"{reviewer: none}", Cop{Reviewer: "none", Flagged: "deny", Seconds: 5, Concurrency: 8, CacheSeconds: 300, Grant: usual.Grant}},
		{"{seconds: 60, concurrency: 256, cache_seconds: 0}", Cop{Reviewer: "static", Flagged: "deny", Seconds: 60, Concurrency: 256, Grant: usual.Grant}},
		{"{reviewer: anthropic, model: m-1, base_url: 'https://models.example.com/x', key_env: MY_KEY}",
			Cop{"anthropic", "m-1", "https://models.example.com/x", "", "MY_KEY", "deny", 5, 8, 300, usual.Grant}},
		{"{reviewer: anthropic, key_file: /etc/weir/key}", Cop{"anthropic", "", "", "/etc/weir/key", "", "deny", 5, 8, 300, usual.Grant}},
		{"{reviewer: openai, model: org/m, base_url: 'http://192.0.2.7:8000/v1'}", Cop{"openai", "org/m", "http://192.0.2.7:8000/v1", "", "", "deny", 5, 8, 300, usual.Grant}},
		{"{reviewer: openai, model: m, base_url: 'http://127.0.0.1:8000/v1', key_env: K}", Cop{"openai", "m", "http://127.0.0.1:8000/v1", "", "K", "deny", 5, 8, 300, usual.Grant}},
		{"{reviewer: openai, model: m, key_file: /k}", Cop{"openai", "m", "", "/k", "", "deny", 5, 8, 300, usual.Grant}},
	} {
		p, err := Parse("p", []byte("cop: "+c.text))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
		}
		if diff := cmp.Diff(c.want, p.Cop); diff != "" {
			t.Errorf("%s, want - got +\n%s", c.text, diff)
		}
	}
}

// TestCopMistakesG13: also, that nothing that may be a key is repeated (G13).
func TestCopMistakesG13(t *testing.T) {
	const key = "sk-not-a-real-key-1234"
	for _, c := range []struct{ text, want string }{
		{"static", `p:1:6: cop is "static": accepted is a mapping of reviewer, model, base_url, key_file, key_env, flagged, seconds, concurrency, cache_seconds, grant_seconds, grant_bytes`},
		{"{key: " + key + "}", `p:1:7: unknown key "key" in cop: accepted are reviewer, model, base_url, key_file, key_env, flagged, seconds, concurrency, cache_seconds, grant_seconds, grant_bytes`},
		{"{api_key: " + key + "}", `p:1:7: unknown key "api_key" in cop: accepted are reviewer, model, base_url, key_file, key_env, flagged, seconds, concurrency, cache_seconds, grant_seconds, grant_bytes`},
		{"{reviewer: claude}", `p:1:17: cop.reviewer is "claude": accepted are static, anthropic, openai, none`},
		{"{reviewer: antropic}", `p:1:17: cop.reviewer is "antropic": did you mean "anthropic"?`},
		{"{model: m}", `p:1:7: cop.model is not used by the reviewer static: leave it out, or name anthropic or openai`},
		{"{reviewer: none, key_env: K}", `p:1:23: cop.key_env is not used by the reviewer none: leave it out, or name anthropic or openai`},
		{"{reviewer: anthropic}", `p:1:7: cop.reviewer anthropic needs a key: set cop.key_file or cop.key_env`},
		{"{reviewer: anthropic, base_url: 'https://x.example.com'}", `p:1:7: cop.reviewer anthropic needs a key: set cop.key_file or cop.key_env`},
		{"{reviewer: openai, model: m}", `p:1:7: cop.reviewer openai needs a key (cop.key_file or cop.key_env), or the cop.base_url of a server that asks for none`},
		{"{reviewer: openai, key_env: K}", `p:1:7: cop.reviewer openai needs cop.model: it has no default`},
		{"{reviewer: anthropic, key_env: K, key_file: /k}", `p:1:28: cop.key_env and cop.key_file are both set: keep one`},
		{"{reviewer: anthropic, key_env: " + key + "}", `p:1:28: cop.key_env is not the name of an environment variable such as ANTHROPIC_API_KEY: the key itself never stands in a policy`},
		{"{reviewer: anthropic, key_file: key}", `p:1:28: cop.key_file is not an absolute path: write one, such as /etc/weir/key; what the file holds never stands in a policy`},
		{"{reviewer: anthropic, key_file: /a/../k}", `p:1:28: cop.key_file is "/a/../k": write it as "/k"`},
		{"{reviewer: anthropic, key_env: K, base_url: 'https://u:" + key + "@x.example.com'}", `p:1:40: cop.base_url holds a user: leave it out; a key belongs into a key_file`},
		{"{reviewer: anthropic, key_env: K, base_url: 'https://x.example.com/?k=" + key + "'}", `p:1:40: cop.base_url has a query or a fragment: leave it out`},
		{"{reviewer: anthropic, key_env: K, base_url: x.example.com}", `p:1:40: cop.base_url is not an http or https URL such as https://models.example.com/v1`},
		{"{reviewer: anthropic, key_env: K, base_url: 'http://x.example.com'}", `p:1:40: cop.base_url is http, so the key would go out in the clear: use https`},
		{"{reviewer: anthropic, key_env: K, model: 'a b'}", `p:1:47: cop.model: accepted is the name of a model, without blanks`},
		{"{reviewer: anthropic, key_env: K, model: 1}", `p:1:47: cop.model: accepted is the name of a model, without blanks`},
		{"{reviewer: anthropic, key_env: ''}", `p:1:37: cop.key_env: accepted is the name of an environment variable, without blanks`},
		{"{flagged: allow}", `p:1:16: cop.flagged is "allow": accepted are deny, person`}, // F06
		{"{flagged: persn}", `p:1:16: cop.flagged is "persn": did you mean "person"?`},
		{"{flagged: true}", `p:1:16: cop.flagged is "true": accepted are deny, person`},
		{"{seconds: 0}", `p:1:16: cop.seconds is "0": accepted are seconds from 1 to 60`},
		{"{concurrency: 257}", `p:1:20: cop.concurrency is "257": accepted are reviews from 1 to 256`},
		{"{cache_seconds: -1}", `p:1:22: cop.cache_seconds is "-1": accepted are seconds from 0 to 86400`},
	} {
		p, err := Parse("p", []byte("cop: "+c.text))
		if diff := cmp.Diff(c.want, fmt.Sprint(err)); diff != "" {
			t.Errorf("%s, want - got +\n%s", c.text, diff)
		}
		if diff := cmp.Diff(Policy{}, p, netips); diff != "" {
			t.Errorf("%s: a refused file gives a policy:\n%s", c.text, diff)
		}
		if strings.Contains(fmt.Sprint(err), key) {
			t.Errorf("%s: the error repeats the key: %v", c.text, err)
		}
	}
}
