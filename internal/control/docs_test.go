package control

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// docs/commands.md lists the operations that there are.
func TestDocumentedOperations(t *testing.T) {
	text, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	sentence := regexp.MustCompile(`(?s)The operations are (.*?)\. All take`).FindSubmatch(text)
	if sentence == nil {
		t.Fatal("docs/commands.md has no sentence that lists the operations")
	}
	for _, word := range regexp.MustCompile("`([^`]+)`").FindAllSubmatch(sentence[1], -1) {
		listed = append(listed, string(word[1]))
	}
	slices.Sort(listed)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(operationsOf(&fake{}))), listed); diff != "" {
		t.Errorf("operations - docs/commands.md +\n%s", diff)
	}
}
