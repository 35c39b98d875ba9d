package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestControl(t *testing.T) {
	p, err := Parse("p", []byte("control: {look: [audit], answer: [on-call, \"70002\"]}\n"))
	if diff := cmp.Diff(Control{Look: []string{"audit"}, Answer: []string{"on-call", "70002"}}, p.Control); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for text, want := range map[string]string{
		"control: {look: [7]}":        `p:1:18: control.look has "7": accepted are names of groups, and their numbers in quotes`,
		"control: {taint: [\"a b\"]}": `p:1:19: control.taint has "a b": no name of a group`,
	} {
		if _, err := Parse("p", []byte(text+"\n")); err == nil || err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}
