package model

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"weir/internal/cop"
)

// TestAnswerG11: anything but the one form is a failure.
func TestAnswerG11(t *testing.T) {
	for _, c := range []struct {
		text string
		want cop.Opinion
	}{
		{`{"flagged": true, "reason": "sends"}`, cop.Opinion{Flagged: true, Reason: "sends"}},
		{` {"reason":"a \"b\"","flagged":false}` + "\n", cop.Opinion{Flagged: false, Reason: `a "b"`}},
	} {
		got, err := decode(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s, want - got +\n%s", c.text, diff)
		}
	}
	for _, bad := range []string{
		"", " ", "no", "The command is harmless.", "false", "null", "[]", `"flagged"`, "{}", "{",
		`{"flagged": false}`, `{"reason": "r"}`, `{"flagged": false, "reason": ""}`, `{"flagged": false, "reason": " \n"}`,
		`{"flagged": "false", "reason": "r"}`, `{"flagged": 0, "reason": "r"}`, `{"flagged": null, "reason": "r"}`, `{"flagged": false, "reason": null}`,
		`{"flagged": false, "reason": 1}`, `{"flagged": [false], "reason": "r"}`, `{"flagged": false, "reason": ["r"]}`, `{"flagged": false, "reason": {"a": 1}}`,
		`{"Flagged": false, "reason": "r"}`, `{"flagged": false, "Reason": "r"}`, `{"FLAGGED": false, "reason": "r"}`,
		`{"flagged": false, "reason": "r", "confidence": 1}`, `{"flagged": false, "reason": "r", "": 1}`,
		`{"flagged": true, "reason": "r", "flagged": false}`, `{"flagged": false, "reason": "a", "reason": "b"}`,
		`{"flagged": true, "Flagged": false, "reason": "r"}`,
		`{"flagged": false, "reason": "r"} {"flagged": true, "reason": "r"}`, `{"flagged": false, "reason": "r"} ok`, `{"flagged": false, "reason": "r"},`,
		`Here: {"flagged": false, "reason": "r"}`, "```json\n{\"flagged\": false, \"reason\": \"r\"}\n```",
		`{"flagged": false, "reason": "r",}`, `{"flagged": false "reason": "r"}`, `{flagged: false, "reason": "r"}`, `{'flagged': false, 'reason': 'r'}`,
		`{"flagged": false, "reason": "r"`, `[{"flagged": false, "reason": "r"}]`, "{\"flagged\": false, \"reason\": \"\xff\"}",
		`{"flagged": false, "reason": "` + strings.Repeat("r", cop.MaxReason+1) + `"}`, strings.Repeat(" ", maxAnswer) + `{"flagged": false, "reason": "r"}`,
	} {
		got, err := decode(bad)
		if err == nil || cop.CodeOf(err) != cop.Malformed || got != (cop.Opinion{}) {
			t.Errorf("%.80q gives %+v, %v", bad, got, err)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(passing)
	f.Add(`{"flagged": true, "reason": "é", "x": [1, {"a": 2}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		o, err := decode(text)
		if err != nil {
			if o != (cop.Opinion{}) || cop.CodeOf(err) != cop.Malformed {
				t.Errorf("%+v with %v", o, err)
			}
			return
		}
		if o.Reason == "" || len(o.Reason) > cop.MaxReason || !utf8.ValidString(o.Reason) || !strings.Contains(text, "flagged") && !strings.Contains(text, `\u`) {
			t.Errorf("%q gives %+v", text, o)
		}
	})
}
