package event_test

import (
	"strings"
	"time"

	"weir/internal/event"
)

// sample returns one full event of each kind.
func sample() []event.Event {
	at := time.Date(2026, 3, 1, 12, 30, 5, 250e6, time.UTC)
	container := &event.Container{ID: "c1d2e3f4", Name: "web", Cgroup: "/guard/web", CgroupID: 4242, Taint: []string{"corruption", "secret"},
		Runtime: "containerd", Namespace: "k8s.io", RuntimeID: "0123", Image: "example.com/a:1", Pod: "p", PodNamespace: "default", PodUID: "u-1"}
	process := &event.Process{
		PID: 71, Start: 9e9, UID: 1000, Comm: "curl",
		Exe:  &event.File{Path: "/usr/bin/curl", Device: 8, Inode: 99, Memfd: true, Deleted: true},
		Argv: []string{"curl", "-d", "two words", "https://203.0.113.5/?a=1&b=<2>"}, Truncated: true, ArgvHash: 1<<64 - 1,
		Script: "./get", Interp: "/bin/sh", Env: []string{"LD_PRELOAD"}, EnvCut: true, Cgroup: "/guard/web/x",
		Ancestry: []event.Ancestor{{PID: 70, Start: 8e9, Comm: "bash"}}, NetNS: 4026531840, PidNS: 4026531836,
	}
	destination := &event.Destination{Address: "203.0.113.5", Port: 443, Protocol: "tcp"}
	dns := event.Destination{Address: "192.0.2.53", Port: 53, Protocol: "udp", DNS: true}
	deny := &event.Decision{Decision: "deny", Reason: "timeout", Text: "nobody answered", By: "root"}
	uid := uint32(0)
	shell := &event.Member{PID: 70, Start: 8e9, Comm: "bash", Exe: "/usr/bin/bash", Argv: []string{"bash", "get it.sh"}, Truncated: true, Claimed: true}
	answered := &event.Decision{
		Decision: "allow", Reason: "approved", Text: "alice approved: known site", By: "alice", Why: "known site",
		Scope: 2, Process: shell,
		From: &event.Origin{
			Via: "control", UID: &uid, PID: 4711, Exe: "/usr/bin/weir", Terminal: "pts/3", SSH: "192.0.2.7 50000 192.0.2.1 22",
			Address: "127.0.0.1:40000", User: "alice", Chat: "T1/C1",
		},
		Shown: &event.Shown{Text: "program curl", SHA256: strings.Repeat("0f", 32), Cut: true},
	}
	all := []event.Event{
		{Kind: event.Exec, Process: process},
		{Kind: event.Connect, Process: process, Destination: destination, Verdict: deny, Mode: "observe"},
		{Kind: event.Hold, Process: process, Destination: &dns, Question: "k3x9q", Message: "waits"},
		{Kind: event.Verdict, Process: process, Destination: destination, Question: "k3x9q", Verdict: answered},
		{Kind: event.Grant, Grant: &event.GrantInfo{ID: 7, State: "made", Kind: "cgroup", To: []event.Destination{*destination, dns}, Expires: at.Add(time.Minute), Bytes: 4096, Cgroup: "/guard/web/g7", PIDs: []int{71, 72}, Scope: 2, Process: &event.Member{PID: 69, Comm: "ma\x1bke"}}},
		{Kind: event.Taint, Change: &event.TaintChange{Set: []string{"secret"}, Cleared: []string{"corruption"}, Source: "operator", By: "root", Why: "read a page"}},
		{Kind: event.Lost, Loss: &event.Loss{Stage: "ring", What: "exec", Count: 3}},
		{Kind: event.Mode, Mode: "seal", Message: "by root"},
		{Kind: event.Error, Message: "something failed"},
		{Kind: event.Start, Message: "version 1"},
		{Kind: event.Stop, Message: "asked to"},
		{Kind: event.Tool, Process: process, Verdict: answered, Use: &event.ToolUse{Tool: "VaultHttpFetch", Key: "gh", Method: "GET", Host: "example.com", Path: "/x", Scheme: "custom", Header: "X-Key", Status: 200, Bytes: 12, Duration: 30, Reason: "look", Store: "s", Failure: "timeout"}},
		{Kind: event.Found, Finding: &event.Finding{ID: "host_pid", Severity: "critical", Text: "it sees all", Refused: true}},
		{Kind: event.Deny, Process: process, Hook: "ptrace", Verdict: &event.Decision{Decision: "deny", Reason: "attach", Text: "process 7 outside"}},
		{Kind: event.Drop, Destination: destination, Verdict: &event.Decision{Decision: "deny", Reason: "tainted"}},
		{Kind: event.Escape, Process: process, Message: "left"},
		{Kind: event.Approval, Approval: &event.ApprovalInfo{
			ID: "abc234", End: event.Revoked, Who: "process", Process: &event.Member{PID: 69, Comm: "ma\x1bke"}, Adds: "bash\x1b -> x", Until: at, Bytes: 4096, Left: 12, Uses: 3, By: "root (alice)", Why: "enough",
			From: answered.From, Shown: answered.Shown,
		}},
		{Kind: event.Model, Process: process, Verdict: &event.Decision{Decision: "deny", Reason: "model_foreign_key", Text: "another key"}},
	}
	for i := range all {
		all[i].Time = at
		if k := all[i].Kind; k != event.Mode && k != event.Start && k != event.Stop {
			all[i].Container = container
		}
	}
	return all
}
