package policy

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/event"
)

// TestExample reads the example that is shipped.
func TestExample(t *testing.T) {
	p, err := Load("../../deploy/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ds, err := p.Destinations()
	if err != nil || len(ds) != 2 {
		t.Errorf("the example opens %v, %v, want 2 destinations", ds, err)
	}
	// All but what the example is about is the default.
	want := Default()
	want.Guard.Parents = []string{"/weir.slice"}
	want.Allow = p.Allow
	want.Events.File = "/var/log/weir/events.jsonl"
	if diff := cmp.Diff(want, p, netips); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

// The kinds of events are those that there are.
func TestKinds(t *testing.T) {
	var want []string
	for _, k := range event.Kinds() {
		want = append(want, string(k))
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

// TestDocumentation compares docs/policy.md with the parser.
func TestDocumentation(t *testing.T) {
	data, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(data)
	blocks := strings.Split(doc, "```yaml\n")
	if len(blocks) != 3 {
		t.Fatalf("%d blocks of YAML, want 2", len(blocks)-1)
	}
	for i, want := range []int{0, 4} { // destinations
		text, _, _ := strings.Cut(blocks[i+1], "```")
		p, err := Parse("docs/policy.md", []byte(text))
		if err != nil {
			t.Errorf("block %d: %v", i+1, err)
		}
		if len(p.Allow) != want {
			t.Errorf("block %d allows %d destinations, want %d", i+1, len(p.Allow), want)
		}
		p.Allow = nil
		if diff := cmp.Diff(Default(), p, netips); diff != "" {
			t.Errorf("block %d, default - documented +\n%s", i+1, diff)
		}
	}
	_, section, _ := strings.Cut(doc, "## A session's own policy\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for key := range strings.SplitSeq(allKeys, ", ") {
		if key != "version" && !strings.Contains(section, "`"+key+"`") {
			t.Errorf("docs/policy.md does not say whose %s counts for a session", key)
		}
	}
	nested := map[string]string{"guard": "", "grant": "", "taint": "", "events": "", "cop": "", "notify": "", "notify.callback": "", "metrics": "", "containers": "", "volumes": "", "vault": "", "confirm": "", "control": "", "fleet": "", "otlp": "", "allow": ""}
	for group := range nested {
		value := ": 1\n"
		if group == "allow" {
			value = ": [1]\n"
		}
		_, err := Parse("p", []byte(strings.Replace(group, ".", ":\n  ", 1)+value))
		_, keys, _ := strings.Cut(err.Error(), "accepted is a mapping of ")
		nested[group] = keys
	}
	rows := []string{"`allow` |"}
	for key := range strings.SplitSeq(allKeys, ", ") {
		if nested[key] == "" {
			rows = append(rows, "`"+key+"` |")
		}
	}
	for group, keys := range nested {
		for key := range strings.SplitSeq(keys, ", ") {
			if group != "allow" {
				key = group + "." + key
			}
			if _, is := nested[key]; is {
				continue
			}
			rows = append(rows, "`"+key+"` |")
		}
	}
	for _, row := range rows {
		if strings.Count(doc, "\n| "+row) != 1 {
			t.Errorf("docs/policy.md has no row %s", row)
		}
	}
	if got, want := strings.Count(doc, "\n| `"), len(rows); got != want {
		t.Errorf("docs/policy.md has %d rows, want %d", got, want)
	}
}
