package daemon

import (
	"context"
	"errors"
	"slices"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/linux"
	"weir/internal/netegress"
)

// drawn is what a grant took from an approval that goes on.
type drawn struct {
	approval string
	bytes    int64
}

// carryOutStanding lets out who a standing approval covers, within what that has left.
func (d *daemon) carryOutStanding(a netegress.Ask, r gate.Request, v gate.Verdict, goOn func() error) error {
	refuse := func(err error) error {
		d.gate.Return(v.Question, v.Open.Bytes)
		return errors.Join(err, d.egress.Refuse(a))
	}
	terms, err := d.lead(a, r.Destination, termsOf(d.policies.For(r.Container.ID), v))
	if err != nil {
		return refuse(err)
	}
	terms.For, terms.Bytes, terms.ClaimFor = v.Open.For, v.Open.Bytes, min(terms.ClaimFor, v.Open.For)
	if a.Held {
		terms.ClaimFor = 0 // its next try asks again, and the approval covers it
	}
	if v.Root != nil && !d.processes.Still(*v.Root) {
		return refuse(errors.New("the process that was let out has ended, or runs something else than what was shown"))
	}
	g, err := d.egress.Grant(a, terms)
	if err != nil {
		return refuse(err)
	}
	d.mu.Lock()
	d.drawn[g.ID] = drawn{v.Question, v.Open.Bytes}
	d.mu.Unlock()
	if !slices.ContainsFunc(d.gate.Standing(), func(s gate.StandingApproval) bool { return s.ID == v.Question }) { // ended meanwhile
		return refuse(d.egress.Revoke(a.Container, g.ID))
	}
	return errors.Join(goOn(), d.granted(a, r, v, terms, g))
}

// giveBack returns to an approval what a grant under it has not used. What an earlier daemon granted stays taken.
func (d *daemon) giveBack(g netegress.Grant) {
	if !slices.Contains(over, g.State) {
		return
	}
	d.mu.Lock()
	took, ok := d.drawn[g.ID]
	delete(d.drawn, g.ID)
	d.mu.Unlock()
	if ok {
		go d.gate.Return(took.approval, min(took.bytes, g.Bytes)) // who tells of a grant waits for no disk
	}
}

// endTainted ends the approvals of containers at or below a cgroup that has been tainted more, unless they were given for that, too.
func (d *daemon) endTainted(cgroup string) error {
	_, err := d.gate.EndStanding(func(s gate.StandingApproval) event.ApprovalEnd {
		if !s.Keeps && linux.CgroupBelow(s.Container.Cgroup, cgroup) {
			return event.NewTaint
		}
		return ""
	})
	return err
}

// endOrphans ends the approvals whose process or container has ended.
func (d *daemon) endOrphans() error {
	_, err := d.gate.EndStanding(func(s gate.StandingApproval) event.ApprovalEnd {
		if s.Root != nil && !linux.Alive(s.Root.PID, s.Root.Start) || !linux.CgroupPopulated(s.Container.Cgroup) {
			return event.Ended
		}
		return ""
	})
	return err
}

// Approvals implements control.Approver.
func (d *daemon) Approvals(context.Context) ([]gate.StandingApproval, error) {
	return d.gate.Standing(), nil
}

// Revoke implements control.Approver. What is open to the approval's destination in its container closes, whoever gave it.
func (d *daemon) Revoke(_ context.Context, id, by, why string) (gate.StandingApproval, error) {
	s, err := d.gate.Revoke(id, by, why)
	if errors.Is(err, gate.ErrNoneSuch) {
		return s, err
	}
	errs := []error{err}
	st, err := d.state.Find(s.Container.ID)
	if err != nil {
		return s, errors.Join(append(errs, err)...)
	}
	for _, g := range d.egress.Grants() {
		if g.Container == st.CgroupID && slices.ContainsFunc(g.To, func(to netegress.Destination) bool { return d.leads(g.Container, to, s.Destination) }) {
			errs = append(errs, d.egress.Revoke(g.Container, g.ID))
		}
	}
	return s, errors.Join(errs...)
}

// leads says whether an open destination is, or stands for, another.
func (d *daemon) leads(container uint64, open netegress.Destination, to event.Destination) bool {
	is := open.Event()
	is.Name, _ = d.dns.Name(container, open.Addr)
	if to.Name != "" {
		is.Address, to.Address = "", ""
	}
	return is == to
}
