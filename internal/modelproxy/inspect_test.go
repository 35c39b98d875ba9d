package modelproxy

import (
	"fmt"
	"strings"
	"testing"
)

// B43, B156, B168: the model's service is not asked to contact an address of the request's choice, nor to do what it has stored, which may.
func TestB43B156B168Inspect(t *testing.T) {
	for _, tt := range []struct {
		api, body string
		want      Code
	}{
		{"anthropic", `{}`, ""},
		{"anthropic", ``, Content},
		{"anthropic", `[]`, Content},
		{"anthropic", `"x"`, Content},
		{"anthropic", `{} {}`, Content},
		{"anthropic", `{"a":1,"a":2}`, Content},
		{"anthropic", `{"a":{"b":[{"c":1,"\u0063":2}]}}`, Content},
		{"anthropic", `{"messages":[{"role":"user","content":[{"type":"text","text":"see \"https:\\\\example.org\" , {\"type\":\"url\"}"}]}],"stream":true,"n":-1.5e3}`, ""},
		{"anthropic", `{"messages":[{"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]}]}`, ""},
		{"anthropic", `{"messages":[{"content":[{"type":"image","source":{"type":"url","url":"https://example.org"}}]}]}`, Fetches},
		{"anthropic", `{"messages":[{"content":[{"source":{"url":"https://example.org","t\u0079pe":"\u0075rl"},"type":"document"}]}]}`, Fetches},
		{"anthropic", `{"messages":[{"content":[{"type":"tool_result","content":[{"type":"image","source":{"type":"url","url":"https://example.org"}}]}]}]}`, Fetches},
		{"anthropic", `{"messages":[{"content":[{"type":"tool_use","name":"f","input":{"source":{"type":"url"},"mcp_servers":[1],"a":1,"a":2}}]}],"tools":[{"name":"f","input_schema":{"type":"object","properties":{"tools":{"type":"array"}}}}]}`, ""},
		{"anthropic", `{"messages":[{"content":[{"type":"tool_use","input":{"a":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}},{"type":"image","source":{"type":"url"}}]}]}`, Fetches},
		{"anthropic", `{"mcp_servers":[{"type":"url","url":"https://example.org"}]}`, Fetches},
		{"anthropic", `{"mcp_servers":[]}`, ""},
		{"anthropic", `{"mcp_servers":null}`, ""},
		{"anthropic", `{"tools":[{"type":"bash_20250124","name":"bash"},{"name":"own","input_schema":{}},{"type":"custom"},{"type":"web_search_20250305"}]}`, ""},
		{"anthropic", `{"tools":[{"type":"web_fetch_20250910","name":"web_fetch"}]}`, Fetches},
		{"anthropic", `{"tools":[{"type":"mcp_toolset"}]}`, Fetches},
		{"anthropic", `{"tools":[{"name":"x","\u0074ype":"web_fetch_20250910"}]}`, Fetches},
		{"openai", `{"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}]}`, ""},
		{"openai", `{"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://example.org"}]}]}`, Fetches},
		{"openai", `{"messages":[{"content":[{"type":"image_url","image_url":{"url":"https://example.org"}}]}]}`, Fetches},
		{"openai", `{"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}]}`, ""},
		{"openai", `{"input":[{"content":[{"type":"input_file","file_url":"https://example.org"}]}]}`, Fetches},
		{"openai", `{"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{"file_url":{"type":"string"}}}}]}`, ""},
		{"openai", `{"tools":[{"type":"mcp","server_url":"https://example.org"}]}`, Fetches},
		{"openai", `{"tools":[{"type":"namespace","tools":[{"type":"mcp"}]}]}`, Fetches},
		{"openai", `{"tools":[{"type":"web_search"}]}`, Fetches},
		{"openai", `{"tools":[{"external_web_access":true,"type":"web_search"}]}`, Fetches},
		{"openai", `{"tools":[{"external_web_access":false,"type":"web_search"}]}`, ""},
		{"openai", `{"web_search_options":{}}`, Fetches},
		{"codex", `{"tools":[{"type":"shell"}]}`, Fetches},
		{"openai", `{"model":"gpt-4o-search-preview","messages":[]}`, Fetches},
		{"openai", `{"model":"gpt-5-search-api","messages":[]}`, Fetches},
		{"openai", `{"model":"gpt-4o\u002dsearch-preview"}`, Fetches},
		{"openai", `{"model":"gpt-4o-\u0073earch-preview"}`, Fetches},
		{"openai", `{"\u006dodel":"gpt-4o-\u0053earch-preview"}`, Fetches},
		{"openai", `{"model":"GPT-4o-Search-Preview"}`, Fetches},
		{"openai", `{"model":["gpt-4o\u002dsearch-preview"]}`, Content},
		{"openai", `{"model":"gpt-5","messages":[{"content":"a depth-search"}]}`, ""},
		{"openai", `{"model":"gpt-5","prompt":{"id":"pmpt_1","variables":{"q":"secret"}}}`, Stored},
		{"codex", `{"Pr\u006fmpt":{"id":"pmpt_1"}}`, Stored},
		{"openai", `{"prompt":"pmpt_1"}`, Stored},
		{"openai", `{"prompt":null,"input":[{"type":"function_call","arguments":"{\"prompt\":1}"},{"type":"image_generation_call","prompt":"x"}],"previous_response_id":"resp_1","conversation":{"id":"conv_1"}}`, ""},
		{"openai", `{"input":"x","agent":{"type":"agent_reference","name":"a"}}`, Stored},
		{"openai", `{"input":"x","agent_reference":{"name":"a"}}`, Stored},
		{"openai", `{"tools":[{"type":"code_interpreter","container":"cntr_1"}]}`, Fetches},
		{"openai", `{"tools":[{"type":"shell","environment":{"type":"container_reference","container_id":"cntr_1"}}]}`, Fetches},
		{"openai", `{"tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]}`, Fetches},
		{"anthropic", `{"container":{"skills":[{"type":"custom","skill_id":"skill_1"}]}}`, Stored},
		{"anthropic", `{"requests":[{"params":{"container":{"id":"c","S\u006bills":[{"type":"custom"}]}}}]}`, Stored},
		{"anthropic", `{"container":{"id":"container_1","skills":[]},"tools":[{"type":"code_execution_20250825","name":"code_execution"}]}`, ""},
		{"anthropic", `{"container":"container_1","messages":[{"content":[{"type":"tool_use","name":"f","input":{"skills":[1],"prompt":"x"}}]}]}`, ""},
		{"anthropic", `{"MCP_servers":[{"type":"url"}]}`, Fetches},
		{"anthropic", `{"mcp_\u017Fervers":[{"type":"url"}]}`, Fetches},
		{"anthropic", `{"messages":[{"content":[{"type":"image","Source":{"Type":"url"}}]}]}`, Fetches},
		{"anthropic", `{"messages":[{"content":[{"type":"image","TYPE":"text"}]}]}`, Content},
		{"anthropic", many(4000), ""},
		{"anthropic", many(6000), Content},
		{"anthropic", many(3000000), Content}, // 32 MiB
	} {
		api, ok := Find(tt.api)
		if !ok {
			t.Fatal(tt.api)
		}
		if got := api.inspect([]byte(tt.body)); got != tt.want {
			t.Errorf("%s: %.200s: %q, want %q", tt.api, tt.body, got, tt.want)
		}
	}
}

// many is an object of n fields.
func many(n int) string {
	var b strings.Builder
	b.WriteString(`{"z":0`)
	for i := range n {
		fmt.Fprintf(&b, `,"%x":0`, i)
	}
	return b.String() + "}"
}

// Every code has a text and a status.
func TestCodes(t *testing.T) {
	for _, c := range []Code{Malformed, Method, Host, Path, Upgrade, NoLength, TooLarge, Slow, Busy, Rate, NoKey, ForeignKey, Content, Fetches, Stored, Redirect, Upstream} {
		if !c.Known() || c.Text() == "" || meanings[c].status < 400 {
			t.Errorf("%s: %+v", c, meanings[c])
		}
	}
	if Code("x").Known() || len(meanings) != 17 {
		t.Errorf("%d codes", len(meanings))
	}
}

// talk is a body of about n bytes, as an agent's grows.
func talk(n int) string {
	var b strings.Builder
	b.WriteString(`{"model":"m","stream":true,"messages":[`)
	for i := 0; b.Len() < n; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":%q}]}`, i, strings.Repeat("a line of a \"file\"\n", 50))
	}
	return b.String() + "]}"
}

func BenchmarkInspect(b *testing.B) {
	api, _ := Find("anthropic")
	body := []byte(talk(200 << 10))
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if api.inspect(body) != "" {
			b.Fatal("refused")
		}
	}
}
