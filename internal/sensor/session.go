package sensor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/cgroup"
	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/netegress"
	"weir/internal/policy"
	"weir/internal/sensor/parents"
	"weir/internal/taint"
)

// Guard implements control.Guardian.
func (d *daemon) Guard(_ context.Context, r control.GuardRequest) (control.GuardReply, error) {
	c := taint.Container{ID: "g-" + strings.ToLower(rand.Text()[:6]), Name: r.Name, Session: true, Text: r.Policy}
	p := d.policies.Base()
	if r.Policy != "" {
		var err error
		if p, err = policy.Parse(r.PolicyName, []byte(r.Policy)); err != nil {
			return control.GuardReply{}, control.Errorf(control.Usage, "%v", err)
		}
	}
	bits, err := parents.StartBits(append(p.Taint.AtStart, r.Taint...))
	if err != nil {
		return control.GuardReply{}, control.Errorf(control.Usage, "%v", err)
	}
	if r.Name != "" {
		if st, err := d.state.Find(r.Name); err == nil && cgroup.Populated(st.Cgroup) {
			return control.GuardReply{}, control.Errorf(control.Usage, "the name %q is taken by %s: choose another", r.Name, st.ID)
		}
	}
	if err := d.parents.GuardSlice(); err != nil {
		return control.GuardReply{}, err
	}
	c.Cgroup = parents.Slice + "/" + c.ID
	if c.CgroupID, err = cgroup.Make(c.Cgroup); err != nil {
		return control.GuardReply{}, err
	}
	if r.Policy != "" {
		if c.Policy, err = d.egress.AddPolicy(d.policies.InMode(p)); err != nil {
			return control.GuardReply{}, errors.Join(err, cgroup.Remove(c.Cgroup))
		}
		if err := d.files.Set(c.Policy, p.Taint.SecretFiles); err != nil {
			return control.GuardReply{}, errors.Join(err, d.egress.DropPolicy(c.Policy), cgroup.Remove(c.Cgroup))
		}
		d.policies.SetOwn(c.ID, p)
	}
	st, err := d.state.Guard(c, bits, r.By)
	if err == nil && bits != 0 {
		ec := d.witness.Container(st.CgroupID, st.Taint)
		err = d.log.Write(event.Event{
			Kind: event.Taint, Container: &ec, Change: &event.TaintChange{Set: bits.Names(), Source: "guard", By: r.By},
		})
	}
	if err != nil {
		return control.GuardReply{}, errors.Join(err, d.undo(c))
	}
	bridge, err := d.agents.Admit(st.ID, st.Policy)
	if err != nil {
		return control.GuardReply{}, errors.Join(err, d.undo(c))
	}
	return control.GuardReply{ID: c.ID, Cgroup: cgroup.Dir(c.Cgroup), Bridge: bridge}, nil
}

// undo removes a session that could not be made.
func (d *daemon) undo(c taint.Container) error {
	if st, err := d.state.Find(c.ID); err == nil {
		return d.remove(st)
	}
	return removeTree(c.Cgroup)
}

// GuardAgent implements control.Guardian.
func (d *daemon) GuardAgent(_ context.Context, id string, pid int) error {
	st, err := d.state.Find(id)
	if err != nil {
		return err
	}
	path, err := cgroup.Of(pid)
	if err != nil || path != st.Cgroup {
		return fmt.Errorf("process %d is not in the cgroup of %s", pid, st.ID)
	}
	return d.state.SetAgent(st.ID, pid)
}

// GuardEnd implements control.Guardian. What is left goes on, guarded.
func (d *daemon) GuardEnd(_ context.Context, id string) (control.Summary, error) {
	st, err := d.state.Find(id)
	if err != nil {
		return control.Summary{}, err
	}
	var sum control.Summary
	d.mu.Lock()
	if c := d.counts[st.ID]; c != nil {
		sum = *c
	}
	d.mu.Unlock()
	sum.Taint = st.Taint.Names()
	pids, err := cgroup.Tree(st.Cgroup)
	if err != nil {
		return sum, err
	}
	if sum.Left = len(pids); sum.Left > 0 {
		return sum, nil
	}
	err = d.remove(st)
	if errors.Is(err, errBusy) {
		err = nil // reap tries again
	}
	return sum, err
}

// remove ends a session: its cgroup goes first, so that nothing can be in it
// when its state is forgotten.
func (d *daemon) remove(st taint.Status) error {
	if err := d.egress.Revoke(st.CgroupID, 0); err != nil {
		return err
	}
	if err := removeTree(st.Cgroup); err != nil {
		return err
	}
	if err := errors.Join(d.state.Forget(st.ID), d.agents.Dismiss(st.ID, st.Policy)); err != nil {
		return err
	}
	d.mu.Lock()
	delete(d.counts, st.ID)
	d.mu.Unlock()
	if d.policies.DropOwn(st.ID) && st.Policy != netegress.BaseSlot {
		return errors.Join(d.files.Drop(st.Policy), d.egress.DropPolicy(st.Policy))
	}
	return nil
}

// removeTree removes a cgroup with all below it, children first; errBusy when
// processes are left.
func removeTree(path string) error {
	var dirs []string
	err := filepath.WalkDir(cgroup.Dir(path), func(dir string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			dirs = append(dirs, dir)
		}
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list cgroup %s: %w", path, err)
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		err := cgroup.Remove(strings.TrimPrefix(dirs[i], cgroup.Root))
		if errors.Is(err, unix.EBUSY) {
			return errBusy
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// abandoned is how long a session may wait for its agent.
const abandoned = time.Minute

// reap removes sessions that nothing is in any more, the second time it finds
// them so: whoever started one asks for its summary first. idle is what it found
// the time before.
func (d *daemon) reap(idle map[string]bool) error {
	var errs []error
	for _, st := range d.state.List() {
		if !st.Session || cgroup.Populated(st.Cgroup) || st.Agent == 0 && time.Since(st.Since) < abandoned {
			delete(idle, st.ID)
			continue
		}
		if !idle[st.ID] {
			idle[st.ID] = true
			continue
		}
		delete(idle, st.ID)
		if err := d.remove(st); err != nil && !errors.Is(err, errBusy) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
