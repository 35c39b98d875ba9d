package sensor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"weir/internal/bridge"
	"weir/internal/bridge/wire"
	"weir/internal/cgroup"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/netegress"
	"weir/internal/procfs"
	"weir/internal/show"
	"weir/internal/taint"
)

// asked is the daemon as the bridge sees it.
type asked struct{ *daemon }

// bridgePath is where a session asks; without an id, where containers of guarded parents do.
func (d *daemon) bridgePath(id string) string {
	if id == "" {
		return filepath.Join(d.opts.RunDir, "bridge", filepath.Base(wire.Default))
	}
	return filepath.Join(d.opts.RunDir, "bridge", id+".sock")
}

// openBridges listens for everybody who is guarded already. Sockets of an earlier daemon that nobody needs are removed.
func (d *daemon) openBridges() error {
	dir := filepath.Dir(d.bridgePath(""))
	if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the bridge's directory: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { // whatever the umask
		return fmt.Errorf("make the bridge's directory: %w", err)
	}
	old, err := os.ReadDir(dir) // the directory itself may be mounted into containers
	if err != nil {
		return fmt.Errorf("empty the bridge's directory: %w", err)
	}
	for _, e := range old {
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("empty the bridge's directory: %w", err)
		}
	}
	if _, err := d.openBridge("", netegress.BaseSlot); err != nil {
		return err
	}
	for _, st := range d.state.List() {
		if st.Session {
			if _, err := d.openBridge(st.ID, st.Policy); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *daemon) openBridge(id string, slot uint32) (string, error) {
	path := d.bridgePath(id)
	if err := d.bridge.Listen(path); err != nil {
		return "", err
	}
	if err := d.egress.OpenPeer(slot, path); err != nil {
		return "", errors.Join(err, d.bridge.Remove(path))
	}
	return path, nil
}

func (d *daemon) closeBridge(id string, slot uint32) error {
	return errors.Join(d.egress.ClosePeer(slot, d.bridgePath(id)), d.bridge.Remove(d.bridgePath(id)))
}

// Who implements bridge.Host.
func (a asked) Who(pid int) (bridge.Asker, error) {
	stat, err := procfs.ReadStat(pid)
	if err != nil {
		return bridge.Asker{}, err
	}
	path, err := cgroup.Of(pid)
	if err != nil {
		return bridge.Asker{}, err
	}
	in, ok := a.containerOf(path)
	if !ok {
		return bridge.Asker{}, fmt.Errorf("process %d is in no container", pid)
	}
	uid, err := procfs.UID(pid)
	if err != nil {
		return bridge.Asker{}, err
	}
	p := a.inMode(a.policyFor(in.ID))
	process := a.process(netegress.Process{PID: pid, Start: stat.Start, ExecPID: pid, ExecStart: stat.Start, UID: uid, Comm: stat.Comm})
	process.Cgroup = path
	// It asks for another: what is missing of its own arguments makes that no worse.
	process.Argv, process.Truncated, process.EnvCut = short(process.Argv), false, false
	return bridge.Asker{
		Container: a.container(in.CgroupID, in.Taint), Process: process, Mode: string(p.Mode), Policy: versionOf(p), Hooks: p.Hooks,
	}, nil
}

// containerOf is the innermost container that a cgroup is in.
func (d *daemon) containerOf(path string) (taint.Status, bool) {
	for ; path != "/" && path != "."; path = filepath.Dir(path) {
		if id, err := cgroup.ID(path); err == nil {
			if st, ok := d.state.ByCgroup(id); ok {
				return st, true
			}
		}
	}
	return taint.Status{}, false
}

// Decide implements bridge.Host.
func (a asked) Decide(ctx context.Context, r gate.Request) gate.Verdict { return a.gate.Decide(ctx, r) }

// Confirm implements bridge.Host.
func (a asked) Confirm(ctx context.Context, r gate.Request) gate.Verdict {
	v := a.gate.Confirm(ctx, r)
	if v.Decision == gate.Allow && v.Question != "" {
		if err := a.gate.Used(v.Question); err != nil {
			return gate.Verdict{Reason: gate.UsedOnce, Text: err.Error()}
		}
	}
	return v
}

// Deny implements bridge.Host.
func (a asked) Deny(who bridge.Asker, command string, v event.Decision) error {
	if v.Rule != "" {
		command = show.Text(command)
		a.mu.Lock()
		a.refusals[v.Rule]++
		a.mu.Unlock()
	}
	return a.log.Write(event.Event{
		Kind: event.Verdict, Container: &who.Container, Process: &who.Process, Mode: who.Mode, Command: command, Verdict: &v,
	})
}

// Called implements bridge.Host: what a tool reads taints before it is called.
func (a asked) Called(who bridge.Asker, tool string, public bool) error {
	tools, err := taint.NewTools(a.policyFor(who.Container.ID).Taint)
	if err != nil {
		return err
	}
	bits := tools.Bits(tool, public)
	st, ok := a.state.ByCgroup(who.Container.CgroupID)
	if bits == 0 || ok && bits&^st.Taint == 0 {
		return nil
	}
	_, err = a.daemon.taint(taint.Change{
		Container: who.Container.ID, Bits: bits, Source: "tool", Why: "the call of " + tool, PID: who.Process.PID, Start: who.Process.Start,
	})
	if errors.Is(err, taint.ErrNotStored) {
		return nil // it is in force
	}
	return err
}
