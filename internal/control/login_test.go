package control

import (
	"os"
	"strings"
	"testing"
)

// The log has who logged in to a console, and the user whom the kernel knows it by.
func TestLogin(t *testing.T) {
	p := peer{pid: os.Getpid(), uid: 4000001}
	me := p.by("")
	if by, err := p.answers(reasoned{By: "root", Login: "alice@example.org"}); err != nil || by != "alice@example.org (through the console of "+me+")" {
		t.Error(by, err)
	}
	if by, err := p.answers(reasoned{}); err != nil || by != me {
		t.Error(by, err)
	}
	for _, bad := range []string{"alice (through the console of root)", "root(alice)", "a b", "\u202ealice", "a\nb", "a\x1b", strings.Repeat("a", 129)} {
		if by, err := p.answers(reasoned{Login: bad}); Code(err) != Usage {
			t.Errorf("%q: %q %v", bad, by, err)
		}
	}
	if !LoginName(strings.Repeat("a", 128)) {
		t.Error("128 characters are refused")
	}
}
