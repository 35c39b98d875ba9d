package modelproxy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// FuzzHead (B43): a head that is taken says one thing, also to Go's server, and comes out the same whatever its pieces are.
func FuzzHead(f *testing.F) {
	for _, seed := range []string{
		"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\nHost: x\n\n",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "GET / HTTP/1.1\r\nHost : x\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
		"CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://a/ HTTP/1.1\r\nHost: x\r\n\r\n", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\n", "\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		head, code, err := readHead(bytes.NewReader(data))
		again, code2, err2 := readHead(iotest.OneByteReader(bytes.NewReader(data)))
		if code != code2 || (err == nil) != (err2 == nil) {
			t.Fatalf("%q, %v, and byte by byte %q, %v", code, err, code2, err2)
		}
		if code != "" || err != nil {
			if len(head) > 0 && err != nil {
				t.Fatalf("%v, with %d bytes", err, len(head))
			}
			return
		}
		if !bytes.HasPrefix(data, head) || !bytes.HasPrefix(head, again) {
			t.Fatalf("%q came out as %q and %q", data, head, again)
		}
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(data)))
		if err != nil {
			return // the server refuses it
		}
		if r.Method == http.MethodConnect || !strings.HasPrefix(r.RequestURI, "/") || len(r.TransferEncoding) > 0 || len(r.Trailer) > 0 || r.ContentLength < 0 || r.Header.Get("Upgrade") != "" {
			t.Fatalf("taken: %+v", r)
		}
		end := bytes.Index(data, []byte("\r\n\r\n")) + 4
		if body, err := io.ReadAll(r.Body); err == nil && !bytes.Equal(body, data[end:][:r.ContentLength]) {
			t.Fatalf("the body is %q, want %q", body, data[end:][:r.ContentLength])
		}
	})
}

// FuzzInspect (B43): what passes has no field, at any depth, that names an address for the upstream, and no tool that fetches.
func FuzzInspect(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","messages":[{"role":"user","content":"hi"}]}`, `{"mcp_servers":[{"url":"https://x"}]}`, `{"MCP_servers":[1]}`, `{"a":{"file_url":"x"}}`, `{"\u0066ile_url":"x"}`,
		`{"tools":[{"type":"web_fetch_20250910"}]}`, `{"tools":[{"type":"custom","type":"web_fetch"}]}`, `{"messages":[{"source":{"type":"url","url":"x"}}]}`, `{"image_url":{"url":"http://x"}}`,
		`{"a":"\\","b":"\"","file_url":null}`, `{"ſerver_url":"x"}`, `[{"server_url":"x"}]`, `{"tools":[{"type":"mcp"}],"x":[[{}]]}`, `{"input":{"file_url":"x"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, a := range apis {
			if a.inspect(body) != "" {
				continue
			}
			var v map[string]any
			if err := json.Unmarshal(body, &v); err != nil || v == nil {
				t.Fatalf("%s: it is no object: %v", a.Name, err)
			}
			if name := a.fetching(v, ""); name != "" {
				t.Fatalf("%s: %s passes", a.Name, name)
			}
		}
	})
}

// fetching is what inspect must refuse, found in another way; without what a client keeps under a schema's name.
func (a API) fetching(v any, in string) string {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			if name := a.fetching(one, in); name != "" {
				return name
			}
		}
	case map[string]any:
		for name, value := range v {
			lower := strings.ToLower(name)
			if slices.Contains(a.schemas, lower) {
				continue
			}
			switch lower {
			case "mcp_servers":
				if text, err := json.Marshal(value); err != nil || string(bytes.Trim(text, "[]")) != "" && string(bytes.Trim(text, "[]")) != "null" {
					return name
				}
			case "file_url", "server_url", "connector_id", "web_search_options":
				if value != nil {
					return name
				}
			case "type":
				kind, _ := value.(string)
				if in == "tools" && kind != "" && !a.harmless(kind) && kind != "web_search" || in == "source" && kind == "url" {
					return kind
				}
			}
			if name := a.fetching(value, lower); name != "" {
				return name
			}
		}
	}
	return ""
}
