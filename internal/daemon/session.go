package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/control"
	"weir/internal/doctor"
	"weir/internal/event"
	"weir/internal/linux"
	"weir/internal/netegress"
	"weir/internal/policy"
	"weir/internal/taint"
)

var errBusy = errors.New("processes are left")

// Guard implements control.Guardian.
func (d *daemon) Guard(_ context.Context, r control.GuardRequest) (control.GuardReply, error) {
	c := taint.Container{ID: "g-" + strings.ToLower(rand.Text()[:6]), Name: r.Name, Session: true, Text: r.Policy}
	p := d.policies.Base()
	if r.Policy != "" {
		var err error
		if p, err = policy.Parse(r.PolicyName, []byte(r.Policy)); err != nil {
			return control.GuardReply{}, control.Errorf(control.Usage, "%w", err)
		}
	}
	bits, err := taint.StartBits(append(p.Taint.Initial, r.Taint...))
	if err != nil {
		return control.GuardReply{}, control.Errorf(control.Usage, "%w", err)
	}
	if r.Name != "" {
		if st, err := d.state.Find(r.Name); err == nil && linux.CgroupPopulated(st.Cgroup) {
			return control.GuardReply{}, control.Errorf(control.Usage, "the name %q is taken by %s: choose another", r.Name, st.ID)
		}
	}
	if err := d.parents.GuardSlice(); err != nil {
		return control.GuardReply{}, err
	}
	if err := errors.Join(d.attachHooks(), doctor.Tracing()); err != nil {
		return control.GuardReply{}, err
	}
	c.Cgroup = guardSlice + "/" + c.ID
	if c.CgroupID, err = linux.MakeCgroup(c.Cgroup); err != nil {
		return control.GuardReply{}, err
	}
	if r.Policy != "" {
		if c.Policy, err = d.egress.AddPolicy(d.policies.InMode(p)); err != nil {
			return control.GuardReply{}, errors.Join(err, linux.RemoveCgroup(c.Cgroup))
		}
		if err := d.files.Set(c.Policy, p.Taint.SecretFiles); err != nil {
			return control.GuardReply{}, errors.Join(err, d.egress.DropPolicy(c.Policy), linux.RemoveCgroup(c.Cgroup))
		}
		d.policies.SetOwn(c.ID, p)
	}
	st, err := d.state.Guard(c, bits, r.By)
	if err == nil && bits != 0 {
		ec := d.processes.Container(st.CgroupID, st.Taint)
		err = d.log.Write(event.Event{
			Kind: event.Taint, Container: &ec, Change: &event.TaintChange{Set: bits.Names(), Source: "guard", By: r.By},
		})
	}
	if err != nil {
		return control.GuardReply{}, errors.Join(err, d.undoSession(c))
	}
	bridge, err := d.agents.Admit(st.ID, st.Policy)
	if err != nil {
		return control.GuardReply{}, errors.Join(err, d.undoSession(c))
	}
	mode := d.policies.InMode(p).Mode
	return control.GuardReply{ID: c.ID, Cgroup: linux.CgroupDir(c.Cgroup), Bridge: bridge, Mode: string(mode), Taint: st.Taint.Names()}, nil
}

// undoSession removes a session that could not be made.
func (d *daemon) undoSession(c taint.Container) error {
	if st, err := d.state.Find(c.ID); err == nil {
		return d.removeSession(st)
	}
	return removeTree(c.Cgroup)
}

// GuardAgent implements control.Guardian. A session that begins tainted has its resolver before its agent runs.
func (d *daemon) GuardAgent(_ context.Context, id string, pid int) error {
	st, err := d.state.Find(id)
	if err != nil {
		return err
	}
	path, err := linux.CgroupOf(pid)
	if err != nil || path != st.Cgroup {
		return fmt.Errorf("process %d is not in the cgroup of %s", pid, st.ID)
	}
	if err := d.state.SetAgent(st.ID, pid, linux.WorkingDir(pid)); err != nil {
		return err
	}
	if err := d.newcomer(st.Cgroup); err != nil { // before it runs anything
		return err
	}
	if st.Taint != 0 {
		_ = d.openResolver(pid, st.First) // told
	}
	return nil
}

// GuardEnd implements control.Guardian. What is left goes on, guarded.
func (d *daemon) GuardEnd(_ context.Context, id string) (control.Summary, error) {
	st, err := d.state.Find(id)
	if err != nil {
		return control.Summary{}, err
	}
	sum := d.summaries.of(st.ID)
	sum.Taint = st.Taint.Names()
	pids, err := linux.CgroupTree(st.Cgroup)
	if err != nil {
		return sum, err
	}
	if sum.Left = len(pids); sum.Left > 0 {
		return sum, nil
	}
	err = d.removeSession(st)
	if errors.Is(err, errBusy) {
		err = nil // Reap tries again
	}
	return sum, err
}

// removeSession ends a session: its cgroup goes first, so that nothing can be in it
// when its state is forgotten.
func (d *daemon) removeSession(st taint.Status) error {
	if err := d.egress.Revoke(st.CgroupID, 0); err != nil {
		return err
	}
	if err := removeTree(st.Cgroup); err != nil {
		return err
	}
	if err := errors.Join(d.state.Forget(st.ID), d.agents.Dismiss(st.ID, st.Policy)); err != nil {
		return err
	}
	d.summaries.drop(st.ID)
	if d.policies.DropOwn(st.ID) && st.Policy != netegress.BaseSlot {
		return errors.Join(d.files.Drop(st.Policy), d.egress.DropPolicy(st.Policy))
	}
	return nil
}

// removeTree removes a cgroup with all below it, children first; errBusy when
// processes are left.
func removeTree(path string) error {
	err := linux.RemoveCgroupTree(path)
	if errors.Is(err, unix.EBUSY) {
		return errBusy
	}
	return err
}

// abandoned is how long a session may wait for its agent.
const abandoned = time.Minute

// Reap removes sessions that nothing is in any more, the second time it finds
// them so: whoever started one asks for its summary first. idle is what it found
// the time before.
func (d *daemon) Reap(idle map[string]bool) error {
	var errs []error
	for _, st := range d.state.Sessions() {
		if linux.CgroupPopulated(st.Cgroup) || st.Agent == 0 && time.Since(st.Since) < abandoned {
			delete(idle, st.ID)
			continue
		}
		if !idle[st.ID] {
			idle[st.ID] = true
			continue
		}
		delete(idle, st.ID)
		if err := d.removeSession(st); err != nil && !errors.Is(err, errBusy) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
