package model

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

// TestPromptVersion: who changes the prompt gives it a new version, since verdicts are cached and compared by it.
func TestPromptVersion(t *testing.T) {
	versions := map[string]string{
		"prompt 1": "adb71067129a9cd3e4e2a15c9f604556b60155cbc72939161b4a738a5715010a",
	}
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(prompt)))
	first, _, _ := strings.Cut(prompt, "\n")
	version := strings.TrimSpace(strings.Trim(first, "#<!-> "))
	if versions[version] != sum {
		t.Errorf("%s has the sum %s: state a new version in its first line, and note the sum here", version, sum)
	}
}
