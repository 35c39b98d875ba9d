package bridge

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"weir/internal/gate"
	"weir/internal/show"
	"weir/internal/vault"
)

// V2, B50: nothing of what a call will do is hidden from who decides elsewhere, whatever its key is called; a text of which something is
// hidden cannot be approved there.
func TestAskedIsShownWholeV2(t *testing.T) {
	for _, key := range []string{"github-token", "github_token", "stripe-secret", "openai-api-key", "aws_session_token", "password", "auth"} {
		r, err := vault.ParseRequest(fmt.Appendf(nil, `{"vault_auth_key": %q, "auth_scheme": "bearer", "method": "DELETE", "url": "https://example.org/repos/x", "reason": "to clean up", "body": "x"}`, key))
		if err != nil {
			t.Fatal(err)
		}
		q, hidden := show.Redact(gate.Question{Text: asked(r, vault.Binding{}, true)})
		if hidden || !strings.Contains(q.Text, "DELETE") || !strings.Contains(q.Text, key) {
			t.Errorf("hidden %v: %s", hidden, q.Text)
		}
	}
}

// B162: what a request sends is shown, as what, and is a part of what is approved, also where it is longer than what is shown.
func TestB162BodyIsShown(t *testing.T) {
	of := func(body, kind string) string {
		t.Helper()
		input, err := json.Marshal(map[string]string{
			"vault_auth_key": "gh", "method": "POST", "url": "https://example.org/" + strings.Repeat("\u2060", 2700), "reason": strings.Repeat("\U000e0001", 500), "body": body, "body_content_type": kind,
		})
		if err != nil {
			t.Fatal(err)
		}
		r, err := vault.ParseRequest(input)
		if err != nil {
			t.Fatal(err)
		}
		return asked(r, vault.Binding{}, true)
	}
	if got, want := of("{\"to\": \"x\"}\n\u202e", ""), `; it sends 15 bytes of "application/json": "{\"to\": \"x\"}\n\u202e"`; !strings.HasSuffix(got, want) {
		t.Errorf("got %q", got)
	}
	long := strings.Repeat("\U000e0001", 50_000)
	got, other := of(long+"a", "text/plain"), of(long+"b", "text/plain")
	if got == other || !strings.Contains(got, `; it sends 200001 bytes of "text/plain", SHA-256 `+gate.Digest(long+"a")+`, which begin with "\U000e0001`) || !strings.HasSuffix(got, "…") {
		t.Errorf("got %.300q, and %.300q", got, other)
	}
	if len(got) > 32<<10 {
		t.Errorf("%d bytes: a question keeps less", len(got))
	}
	if of("x", "text/plain") == of("x", "") || of("x", "") == of("y", "") {
		t.Error("the same is approved for other bodies")
	}
}
