package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/policy"
)

// The diff that is suggested makes a policy that is valid, asks nobody about what was approved, and opens nothing else; the file itself stays.
func TestPolicySuggest(t *testing.T) {
	dir, weir := serve(t, &fakeBackend{})
	log, file := filepath.Join(dir, "events.jsonl"), filepath.Join(dir, "p.yaml")
	const before = "version: 1 # mine\nallow:\n  - prefix: 10.0.0.0/8\n    protocol: tcp\n"
	if err := os.WriteFile(file, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	q := connection("abc234", "192.0.2.1", "curl", "-d", "x\x1b\n- prefix: 0.0.0.0/0", "--password=hunter22")
	q.Container.Taint = []string{"corruption", "secret"}
	at := time.Date(2026, 11, 22, 10, 3, 11, 0, time.UTC)
	hold := event.Event{Time: at, Kind: event.Hold, Container: &q.Container, Process: &q.Process, Destination: &q.Destination, Question: q.ID, Message: "waits"}
	verdict := hold
	verdict.Kind, verdict.Message = event.Verdict, ""
	verdict.Verdict = &event.Decision{Decision: "allow", Reason: "approved", By: "root (alice)", From: &event.Origin{Via: "control"}}
	var lines []byte
	for _, e := range []event.Event{hold, verdict} {
		line, err := event.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
	}
	if err := os.WriteFile(log, lines, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(weir, "policy", "suggest", log, "--policy", file).CombinedOutput()
	for _, want := range []string{
		"every tainted container may send all that it has read to 192.0.2.1, port 443 (tcp), unasked",
		"+  # approved 1 time by 'root (alice)'; 2026-11-22 to 2026-11-22; such as: curl -d $'x\\x1b\\n- prefix: 0.0.0.0/0' '--password=[hidden]'\n+  - prefix: \"192.0.2.1\"\n+    protocol: tcp\n+    ports: 443\n",
		"replayed: 1 questions to people before, 0 with it",
	} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("no %q in:\n%s%v", want, out, err)
		}
	}
	if now, err := os.ReadFile(file); err != nil || string(now) != before {
		t.Errorf("the file is changed: %s, %v", now, err)
	}
	out, err = exec.Command(weir, "policy", "suggest", log, "--policy", file, "--json").Output()
	var got gate.Suggestion
	if err != nil || json.Unmarshal(out, &got) != nil || len(got.Lessons) != 1 {
		t.Fatalf("%s, %v", out, err)
	}
	after, err := policy.Apply(file, []byte(before), []policy.Edit{got.Lessons[0].Edit})
	if err != nil || policy.Diff(file, []byte(before), after) != got.Diff {
		t.Fatalf("%v\n%s", err, got.Diff)
	}
	p, err := policy.Parse(file, after)
	if err != nil || len(p.Allow) != 2 || p.Allow[1].Prefix.String() != "192.0.2.1/32" {
		t.Errorf("%+v, %v", p.Allow, err)
	}
}
