package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is wrong with a command line or a policy is one line that says what to do, and an exit code.
func TestMistakes(t *testing.T) {
	policy := func(text string) string {
		file := filepath.Join(t.TempDir(), "policy.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for _, c := range []struct {
		args []string
		exit int
		want string
	}{
		{nil, 2, "weir-otel: give a command: see weir-otel --help\n"},
		{[]string{"go"}, 2, `weir-otel: unknown command "go": see weir-otel --help` + "\n"},
		{[]string{"run", "x"}, 2, "weir-otel run: give no arguments: see weir-otel run --help\n"},
		{[]string{"run", "--since", "x"}, 2, `weir-otel run: invalid argument "x" for "--since" flag: `},
		{[]string{"run", "--state", t.TempDir(), "--policy", policy("version: 1\n")}, 2, "weir-otel run: the policy has no otlp.endpoint: write one such as https://otel.example.org:4318\n"},
		{[]string{"run", "--policy", policy("otlp: {endpoint: o}\n")}, 1, `otlp.endpoint is "o": accepted is the URL of a collector`},
		{[]string{"run", "--policy", "/nowhere/p.yaml"}, 1, "/nowhere/p.yaml: it does not exist: check the path\n"},
	} {
		var out, said bytes.Buffer
		exit := run(t.Context(), c.args, &out, &said)
		if exit != c.exit || !strings.Contains(said.String(), c.want) || strings.Count(said.String(), "\n") != 1 || out.Len() > 0 {
			t.Errorf("%q: exit %d: %s%s", c.args, exit, &out, &said)
		}
	}
}
