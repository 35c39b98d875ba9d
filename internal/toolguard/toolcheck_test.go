package toolguard

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func fixture(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../docs/fixtures", name))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(data)
}

// TestFixturesK9: what this end answers is what the fixtures say, byte for byte.
func TestFixturesK9(t *testing.T) {
	g := testGuard()
	for _, tt := range []struct {
		request, answer string
		killed          bool
	}{
		{string(fixture(t, "request_powershell.json")), "response_error_blocked.json", false},
		{string(fixture(t, "request_powershell.json")), "response_error_disabled.json", true},
		{string(fixture(t, "request_fs_read.json")), "response_ok.json", false},
		{string(fixture(t, "request_fs_read.json")), "response_ok.json", true},
		{`{"v":"0.5","id":"7d33","tool":"teleport","args":{}}`, "response_error_unknown_tool.json", false},
		{`{"v":"0.5","id":"7d34","tool":"fs_read","args":{"path":5}}`, "response_error_invalid_args.json", false},
	} {
		got, err := json.Marshal(g.Answer([]byte(tt.request), func() bool { return tt.killed }))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(fixture(t, tt.answer)), string(got)); diff != "" {
			t.Errorf("%s: %s", tt.answer, diff)
		}
	}
}

// old is how an end of 0.4 reads an answer: it knows six codes, and takes any other for a plain error.
type old struct {
	ID     string
	OK     bool
	Result json.RawMessage
	Error  *struct{ Code, Message string }
}

func (o old) plain() bool {
	if o.Error == nil {
		return false
	}
	switch o.Error.Code {
	case "unknown_tool", "invalid_args", "unauthorized", "disabled", "timeout", "internal":
		return false
	}
	return true
}

// TestOlderClientK9: a client of 0.4 asks as it always did, reads every answer, and takes blocked for a plain error with a message.
func TestOlderClientK9(t *testing.T) {
	g := testGuard()
	for _, tt := range []struct {
		request       string
		ok, unheardOf bool
		killed        bool
	}{
		{`{"v":"0.4","id":"1","tool":"fs_read","args":{"path":"/work/a"}}`, true, false, false},
		{`{"id":"1","tool":"fs_read","args":{"path":"/work/a"}}`, true, false, false},
		{`{"v":"0.4","id":"1","tool":"bash","args":{"command":"rm -rf /"}}`, false, true, false},
		{`{"v":"0.4","id":"1","tool":"bash","args":{"command":"rm -rf /"}}`, false, false, true},
		{`{"v":"0.4","id":"1","tool":"bash","args":{}}`, false, false, false},
		{`{"v":"0.4","id":"1","tool":"nothing","args":{}}`, false, false, false},
	} {
		data, err := json.Marshal(g.Answer([]byte(tt.request), func() bool { return tt.killed }))
		if err != nil {
			t.Fatal(err)
		}
		var got old
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&got); err != nil {
			t.Fatalf("%s: a client of 0.4 cannot read %s: %v", tt.request, data, err)
		}
		if got.ID != "1" || got.OK != tt.ok || got.plain() != tt.unheardOf || !got.OK && got.Error.Message == "" {
			t.Errorf("%s: got %s", tt.request, data)
		}
	}
}

// TestRequestsK9: what is no request is answered with invalid_args, and with its id if it had one.
func TestRequestsK9(t *testing.T) {
	g := testGuard()
	for line, id := range map[string]string{
		"": "", "{": "", "[]": "", `"x"`: "", `{"id":5,"tool":"bash"}`: "", `{"id":"a"}`: "a", `{"v":"9","id":"a","tool":"bash"}`: "a", `{"id":"a","tool":"bash"}{}`: "a", "\xff": "",
		`{"id":"a","tool":"bash","args":[]}`: "a", `{"id":"a","tool":"bash","args":5}`: "a", `{"id":"a","tool":"bash"}`: "a",
	} {
		a := g.Answer([]byte(line), func() bool { return false })
		if a.OK || a.Error == nil || a.Error.Code != InvalidArgs || a.ID != id {
			t.Errorf("%q: got %+v, %v", line, a, a.Error)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	g := testGuard()
	f.Add([]byte(`{"v":"0.5","id":"1","tool":"bash","args":{"command":"ls"}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		a := g.Answer(line, func() bool { return false })
		if a.OK != (a.Error == nil) || a.OK != (a.Result != nil) {
			t.Errorf("%q: %+v", line, a)
		}
	})
}
