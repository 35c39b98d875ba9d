package daemon

import (
	"context"
	"errors"
	"slices"

	"weir/internal/dns"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/linux"
	"weir/internal/netegress"
	"weir/internal/taint"
)

// drawn is what a grant took from an approval that goes on, or a recognised command.
type drawn struct {
	from  string
	bytes int64
}

// refuse denies what could not be carried out of a verdict that allows, and gives back what that drew.
func (d *daemon) refuse(a netegress.Ask, v gate.Verdict, err error) error {
	if v.Open != nil {
		d.gate.Return(v.Open.From, v.Open.Bytes)
	}
	return errors.Join(err, d.egress.Refuse(a))
}

// carryOutStanding lets out who a standing approval covers, within what that has left.
func (d *daemon) carryOutStanding(a netegress.Ask, r gate.Request, v gate.Verdict, goOn func() error) error {
	refuse := func(err error) error { return d.refuse(a, v, err) }
	terms, err := d.terms(a, r, v)
	if err != nil {
		return refuse(err)
	}
	terms = standingTerms(terms, v)
	changed := func() bool { return v.Root != nil && !d.processes.Still(*v.Root) }
	errChanged := errors.New("the process that was let out has ended, or runs something else than what was shown")
	if changed() {
		return refuse(errChanged)
	}
	g, err := d.egress.Grant(a, terms)
	if err != nil {
		return refuse(err)
	}
	if changed() { // meanwhile: then the grant is the asker's own, and gives back what it drew
		return errors.Join(errChanged, d.egress.Revoke(a.Container, g.ID), d.egress.Refuse(a))
	}
	if !d.gate.InForce(v.Question) { // ended meanwhile
		return errors.Join(d.egress.Revoke(a.Container, g.ID), d.egress.Refuse(a))
	}
	return errors.Join(goOn(), d.granted(a, r, v, terms, g))
}

// standingTerms are terms within what a standing approval has left.
func standingTerms(t netegress.Terms, v gate.Verdict) netegress.Terms {
	t.For, t.ClaimFor = v.Open.For, min(t.ClaimFor, v.Open.For)
	if left := v.Open.Left; left > 0 { // what is claimed late is over no later
		t.ClaimFor = min(t.ClaimFor, left/2)
		t.For = min(t.For, left-t.ClaimFor)
	}
	return t
}

// draws notes what a grant took, and returns what it had not used of what it took before. What another verdict has opened since is no approval's to
// take back.
func (d *daemon) draws(g netegress.Grant, v gate.Verdict) {
	d.mu.Lock()
	took, ok := d.drawn[g.ID]
	delete(d.drawn, g.ID)
	if v.Open != nil {
		d.drawn[g.ID] = drawn{v.Open.From, v.Open.Bytes}
	}
	d.mu.Unlock()
	if ok {
		go d.gate.Return(took.from, min(took.bytes, g.Before)) // as in giveBack
	}
}

// drewFrom says whether a grant took from an approval last.
func (d *daemon) drewFrom(grant uint64, approval string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.drawn[grant].from == approval
}

// giveBack returns what a grant has not used of what it took. What an earlier daemon granted stays taken.
func (d *daemon) giveBack(g netegress.Grant) {
	if !slices.Contains(over, g.State) {
		return
	}
	d.mu.Lock()
	took, ok := d.drawn[g.ID]
	delete(d.drawn, g.ID)
	d.mu.Unlock()
	if ok {
		go d.gate.Return(took.from, min(took.bytes, g.Bytes)) // who tells of a grant waits for no disk
	}
}

// outgrown says whether a container has taint, with more that is known of it, for which its approval was not given.
func (d *daemon) outgrown(s gate.StandingApproval, more taint.Bits) bool {
	return !s.Keeps && !gate.Within(d.processes.Container(s.Container.CgroupID, more).Taint, s.Container.Taint)
}

// endTainted ends the approvals of containers at or below a cgroup that has got more taint, unless they were given for that, too, with
// what they have opened, but for one grant.
func (d *daemon) endTainted(cgroup string, more taint.Bits, but uint64) error {
	ended, err := d.gate.EndStanding(func(s gate.StandingApproval) event.ApprovalEnd {
		if linux.PathWithin(s.Container.Cgroup, cgroup) && d.outgrown(s, more) {
			return event.NewTaint
		}
		return ""
	})
	for _, s := range ended {
		err = errors.Join(err, d.shut(s, func(g netegress.Grant) bool { return g.ID != but && d.drewFrom(g.ID, s.ID) }))
	}
	return err
}

// shut closes the grants of an approval's container that which names.
func (d *daemon) shut(s gate.StandingApproval, which func(netegress.Grant) bool) error {
	var errs []error
	for _, g := range d.egress.Grants() {
		if g.Container == s.Container.CgroupID && which(g) {
			errs = append(errs, d.egress.Revoke(g.Container, g.ID))
		}
	}
	return errors.Join(errs...)
}

// endOver ends the approvals, and forgets the commands, whose process or container has ended, and those of containers with taint that they were not given for: it may have
// come while no sensor ran, or before they were given.
func (d *daemon) endOver() error { return d.endOf(linux.Alive, stands) }

// stands says whether a container lives: another one may have been made under its name.
func stands(c event.Container) bool {
	id, err := linux.CgroupID(c.Cgroup)
	return err == nil && id == c.CgroupID && linux.CgroupPopulated(c.Cgroup)
}

func (d *daemon) endOf(alive func(pid int, start uint64) bool, stands func(event.Container) bool) error {
	d.clearing.Lock() // an approval loses the bit first
	defer d.clearing.Unlock()
	d.gate.EndRuns(alive)
	_, err := d.gate.EndStanding(func(s gate.StandingApproval) event.ApprovalEnd {
		if s.Root != nil && !alive(s.Root.PID, s.Root.Start) || !stands(s.Container) {
			return event.Ended
		}
		if d.outgrown(s, 0) {
			return event.NewTaint
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
	return s, errors.Join(err, d.shut(s, func(g netegress.Grant) bool {
		return d.drewFrom(g.ID, s.ID) || slices.ContainsFunc(g.To, func(to netegress.Destination) bool { return d.leads(g.Container, to, s.Destination) })
	}))
}

// leads says whether an open destination is, or stands for, another: one that stands for a name which is not known any more may be any.
func (d *daemon) leads(container uint64, open netegress.Destination, to event.Destination) bool {
	is, known := open.Event(), false
	if is.Name, known = d.dns.Name(container, open.Addr); !known && dns.Synthetic(open.Addr) {
		is.Name = to.Name
	}
	if to.Name != "" {
		is.Address, to.Address = "", ""
	}
	return is == to
}
