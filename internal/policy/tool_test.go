package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTools(t *testing.T) { // G2
	p, err := Parse("p", []byte("taint:\n  tools:\n    - {name: \"a*\", taint: [secret]}\n    - {name: b, taint: []}\n  untrusted_tools: false\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Taint{ReplyBudget: 64 << 10, Tools: []Tool{{Name: "a*", Taint: []string{"secret"}}, {Name: "b"}}}
	if diff := cmp.Diff(want, p.Taint); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if p, err := Parse("p", []byte("taint:\n  tools: []\n")); err != nil || len(p.Taint.Tools) != 0 {
		t.Errorf("an empty table is %v, %v", p.Taint.Tools, err)
	}
	for text, wrong := range map[string]string{
		"- {name: a}":                                        "an item without taint",
		"- {taint: [secret]}":                                "an item without name",
		"- {name: \"a b\", taint: []}":                       "accepted is the name of a tool",
		"- {name: a, taint: [sticky]}":                       "unknown taint bit",
		"- {name: a, taint: []}\n    - {name: a, taint: []}": "twice",
		"- {nmae: a, taint: []}":                             "did you mean",
	} {
		_, err := Parse("p", []byte("taint:\n  tools:\n    "+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), wrong) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %q", text, err, wrong)
		}
	}
}
