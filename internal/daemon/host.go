package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/bridge"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/linux"
	"weir/internal/netegress"
	"weir/internal/redact"
	"weir/internal/taint"
)

// host is the sensor as the bridge sees it.
type host struct{ *bridgeHost }

// Who implements bridge.Host.
func (a host) Who(pid int) (bridge.Asker, error) {
	stat, err := linux.ReadStat(pid)
	if err != nil {
		return bridge.Asker{}, err
	}
	path, err := linux.CgroupOf(pid)
	if err != nil {
		return bridge.Asker{}, err
	}
	now := time.Duration(taint.Now())
	in, ok := a.d.processes.Innermost(path)
	if !ok {
		return bridge.Asker{}, fmt.Errorf("process %d is in no container", pid)
	}
	uid, err := linux.UID(pid)
	if err != nil {
		return bridge.Asker{}, err
	}
	p, version := a.d.policies.InForce(in.ID)
	process := a.d.processes.Process(netegress.Process{PID: pid, Start: stat.Start, ExecPID: pid, ExecStart: stat.Start, UID: uid, Comm: stat.Comm})
	process.Cgroup = path
	// It asks for another: what is missing of its own arguments makes that no worse.
	process.Argv, process.Truncated, process.Claimed, process.EnvCut = shortArgv(process.Argv), false, false, false
	return bridge.Asker{
		TaintRead: now,
		Container: a.d.processes.Container(in.CgroupID, in.Taint), Process: process, Mode: string(p.Mode), AskFlagged: p.Cop.AskFlagged(), Policy: version, Hooks: p.Hooks, Confirm: p.Confirm.Tools, Unasked: p.Confirm.ApprovalExemptTools,
	}, nil
}

// Decide implements bridge.Host.
func (a host) Decide(ctx context.Context, r gate.Request) gate.Verdict {
	return a.d.gate.Decide(ctx, r)
}

// Confirm implements bridge.Host.
func (a host) Confirm(ctx context.Context, r gate.Request) gate.Verdict {
	v := a.d.gate.Confirm(ctx, r)
	if v.Decision == gate.Allow && v.Question != "" {
		if err := a.d.gate.Consume(v.Question); err != nil {
			return gate.Unused(err).About(v.Question)
		}
	}
	return v
}

// Deny implements bridge.Host.
func (a host) Deny(who bridge.Asker, command string, v event.Decision) error {
	if v.Rule != "" {
		command = redact.Likely(command)
		a.refusals.add(v.Rule)
	}
	return a.d.log.Write(event.Event{
		Kind: event.Verdict, Container: &who.Container, Process: &who.Process, Mode: who.Mode, Command: command, Verdict: &v,
	})
}

// Called implements bridge.Host: what a tool reads taints before it is called.
func (a host) Called(who bridge.Asker, tool string, public bool) error {
	bits, err := taint.ToolBits(a.d.policies.For(who.Container.ID).Taint, tool, public)
	if err != nil {
		return err
	}
	st, ok := a.d.state.ByCgroup(who.Container.CgroupID)
	if bits == 0 || ok && bits&^st.Taint == 0 {
		return nil
	}
	_, err = a.d.taint(taint.Change{
		Container: who.Container.ID, Bits: bits, Source: "tool", Tool: tool, Why: "the call of " + tool, PID: who.Process.PID, Start: who.Process.Start,
	})
	if errors.Is(err, taint.ErrNotStored) {
		return nil // it is in force
	}
	return err
}
