package bridge

import (
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
