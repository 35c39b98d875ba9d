package strict

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzDecode: what is taken says the same to a reader that takes fields in any case and the last of several, and says it again when it is written anew.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"url":"x","list":["a"],"count":1}`, `{"url":"a","URL":"b"}`, `{"url":"a","url":"b"}`, `{"url":null}{}`, " ", `{"\u0075rl":"x"}`, `{"in":{"deep":1,"deep":2}}`, "{\"url\":\"\xff\"}", `{"url":`} {
		f.Add([]byte(seed))
	}
	type input struct {
		URL   string          `json:"url"`
		List  []string        `json:"list"`
		Count int             `json:"count"`
		In    json.RawMessage `json:"in"`
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var in input
		if err := Decode(data, &in); err != nil {
			if text := err.Error(); strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' && r != '…' }) || len(text) > 1000 {
				t.Fatalf("the error is not short and in ASCII: %q", text)
			}
			return
		}
		if len(bytes.TrimSpace(data)) == 0 {
			return // as {}
		}
		var other input
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&other); err != nil {
			t.Fatalf("another reader: %v", err)
		}
		if diff := cmp.Diff(in, other); diff != "" {
			t.Fatal(diff)
		}
		if _, err := dec.Token(); err != io.EOF {
			t.Fatalf("something follows: %v", err)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(data, &fields); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		var same input
		if err := Decode(again, &same); err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		if same.In, in.In = nil, nil; !cmp.Equal(in, same) { // its blanks may differ
			t.Fatal(cmp.Diff(in, same))
		}
	})
}
