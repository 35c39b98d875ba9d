package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/fleet"
	"weir/internal/policy"
)

// TestOperatorAdd: what is printed lets the key count, and nobody else can read the key.
func TestOperatorAdd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "key")
	try := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := run(t.Context(), args, strings.NewReader(""), &out, &errs)
		return code, out.String(), errs.String()
	}
	code, lines, told := try("operator", "add", "alice", "--key", file, "--role", "answer,seal")
	if code != 0 {
		t.Fatal(code, told)
	}
	p, err := policy.Parse("p", []byte(lines))
	if err != nil {
		t.Fatal(err)
	}
	key, err := fleet.ReadKey(file)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	signed, err := fleet.Sign(key, fleet.Statement{Node: "n", Signed: now, Expires: now.Add(time.Minute), Mode: "seal"})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := fleet.Open(signed, p.Fleet, "n", now); err != nil || s.By != "alice" {
		t.Errorf("%+v, %v", s, err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("the key's mode is %v, %v", info.Mode(), err)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(lines+told, strings.TrimSpace(string(before))) {
		t.Error("the key was printed")
	}
	for _, args := range [][]string{{"alice"}, {"a b"}, {""}, {"alice", "--role", "boss"}, {"alice", "--role", ""}, {"a", "b"}, {}} {
		code, out, told := try(append([]string{"operator", "add", "--key", file}, args...)...)
		if code == 0 || out != "" || strings.Count(told, "\n") != 1 {
			t.Errorf("%q: code %d, %q, %q", args, code, out, told)
		}
	}
	for _, args := range [][]string{{}, {"operator"}, {"nonsense"}, {"operator", "nonsense"}, {"--nonsense"}, {"operator", "add", "--nonsense"}} {
		if code, out, told := try(args...); code != 2 || out != "" || strings.Count(told, "\n") != 1 {
			t.Errorf("%q: code %d, %q, %q", args, code, out, told)
		}
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
		t.Error("the key was replaced")
	}
}
