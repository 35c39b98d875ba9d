package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An edit adds or takes out one item, and leaves the rest of the file as it is.
func TestApply(t *testing.T) {
	host := Edit{Key: "allow", Add: []string{`name: "pypi.org"`, "protocol: tcp", "ports: 443"}, Comment: "approved"}
	trust := Edit{Key: "taint.trusted_networks", Add: []string{`"192.0.2.7"`}}
	remove := Edit{Key: "taint.secret_files", Remove: "/srv/b"}
	for name, c := range map[string]struct {
		before string
		edit   Edit
		after  string // empty: it cannot be edited
	}{
		"no list":             {"version: 1 # one\n", host, "version: 1 # one\nallow:\n  # approved\n  - name: \"pypi.org\"\n    protocol: tcp\n    ports: 443\n"},
		"an empty one":        {"allow: [] # nothing\nhold: true\n", host, "allow: # nothing\n  # approved\n  - name: \"pypi.org\"\n    protocol: tcp\n    ports: 443\nhold: true\n"},
		"a list":              {"allow:\n- prefix: 10.0.0.0/8 # lan\n  ports:\n    - 1\n    - 2\n# and\nhold: true\n", host, "allow:\n- prefix: 10.0.0.0/8 # lan\n  ports:\n    - 1\n    - 2\n# approved\n- name: \"pypi.org\"\n  protocol: tcp\n  ports: 443\n# and\nhold: true\n"},
		"a list in brackets":  {"allow: [{prefix: 10.0.0.0/8}]\n", host, ""},
		"texts in brackets":   {"taint:\n  trusted_networks: [10.0.0.0/8]\n", trust, "taint:\n  trusted_networks: [10.0.0.0/8, \"192.0.2.7\"]\n"},
		"with a comment":      {"taint:\n  trusted_networks: [10.0.0.0/8] # ]\n", trust, ""},
		"none trusted":        {"taint:\n  trusted_networks: []\n", trust, "taint:\n  trusted_networks:\n    - \"192.0.2.7\"\n"},
		"a nested one":        {"taint:\n  trusted_networks:\n    - 10.0.0.0/8\n  initial: []\n", trust, "taint:\n  trusted_networks:\n    - 10.0.0.0/8\n    - \"192.0.2.7\"\n  initial: []\n"},
		"no such nested key":  {"taint:\n  initial: []\n", trust, ""},
		"taken out":           {"taint:\n  secret_files:\n    - /srv/a\n    - /srv/b # why\n    - /srv/c\n", remove, "taint:\n  secret_files:\n    - /srv/a\n    - /srv/c\n"},
		"the last":            {"taint:\n  secret_files:\n    - /srv/b\n", remove, ""},
		"out of brackets":     {"taint:\n  secret_files: [/srv/a, /srv/b]\n", remove, ""},
		"two in one line":     {"allow:\n  - {prefix: 10.0.0.0/8,\n     protocol: tcp\n    }\n", host, ""},
		"no policy":           {"alow: []\n", host, ""},
		"without a last line": {"allow:\n  - prefix: 10.0.0.0/8", host, "allow:\n  - prefix: 10.0.0.0/8\n  # approved\n  - name: \"pypi.org\"\n    protocol: tcp\n    ports: 443\n"},
	} {
		got, err := Apply("p", []byte(c.before), []Edit{c.edit})
		if diff := cmp.Diff(c.after, string(got)); diff != "" || (err == nil) != (c.after != "") {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestDiff(t *testing.T) {
	lines := func(s string) []byte { return []byte(strings.ReplaceAll(s, " ", "\n") + "\n") }
	got := Diff("p.yaml", lines("a b c d e f g h i j k l m n o p"), lines("a b c d X f g h i j k l m n o p Y"))
	want := "--- p.yaml\n+++ p.yaml\n@@ -2,7 +2,7 @@\n b\n c\n d\n-e\n+X\n f\n g\n h\n@@ -14,3 +14,4 @@\n n\n o\n p\n+Y\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Diff("p", lines("a b"), lines("a b")); got != "" {
		t.Errorf("of the same: %q", got)
	}
}
