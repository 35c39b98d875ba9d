package strict

import (
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	for _, tt := range []struct{ data, want string }{
		{`{"name":"x","on":true}`, ""},
		{`{}`, ""},
		{``, ""},
		{` {"name" : "x"} `, ""},
		{`{"Name":"x"}`, "unknown"},
		{`{"name":"x","name":"y"}`, "twice"},
		{`{"name":"x","\u006eame":"y"}`, "twice"},
		{`{"other":1}`, "known are name, on"},
		{`{"name":1}`, "the field name is a number"},
		{`{"name":"x"}{}`, "follows"},
		{`[]`, "no JSON object"},
		{`null`, "no JSON object"},
		{`{"name":`, "no JSON object"},
		{"{\"name\":\"\xff\"}", "UTF-8"},
	} {
		var into struct {
			Name string `json:"name"`
			On   *bool  `json:"on,omitempty"`
		}
		err := Decode([]byte(tt.data), &into)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.data, err, tt.want)
		}
	}
}
