package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/dns"
	"weir/internal/event"
	"weir/internal/linux"
	"weir/internal/netegress"
	"weir/internal/policy"
	"weir/internal/taint"
)

// resolveFor is how long the look-up of an approved name may take.
const resolveFor = 10 * time.Second

// dnsHost is what package dns asks of the daemon.
type dnsHost struct{ *daemon }

var _ dns.RedirectHost = dnsHost{}

// NamePolicy implements dns.RedirectHost.
func (d dnsHost) NamePolicy(container uint64) policy.Policy {
	return d.policies.For(d.processes.Container(container, 0).ID)
}

// Clean implements dns.RedirectHost.
func (d dnsHost) Clean(container uint64) bool {
	switch d.policies.Mode() {
	case policy.Seal:
		return false
	case policy.Observe:
		_, ok := d.state.ByCgroup(container)
		return ok
	}
	return d.state.Clean(container)
}

// NameRefused implements dns.RedirectHost.
func (d dnsHost) NameRefused(container uint64, name string, to netip.Addr) {
	c := d.processes.Container(container, 0)
	d.write(event.Event{
		Kind: event.Error, Container: &c, Message: fmt.Sprintf("%s leads to %s, which is not public and not listed: refused", name, to),
	})
}

// openResolvers starts resolvers for a tainted container, wherever its processes stand. Where one fails, a
// question to a name server is judged as every destination.
func (d *daemon) openResolvers(path string, since time.Time) {
	pids, err := linux.CgroupTree(path)
	if err != nil {
		return // it has been removed
	}
	_ = linux.EachNamespace(pids, "net", func(pid int) error {
		return d.openResolver(pid, since) // told
	})
}

// openResolver starts one for the container that a process is in, where it stands, if there is none. It tells of a failure, unless the
// process is gone.
func (d *daemon) openResolver(pid int, since time.Time) error {
	path, err := linux.CgroupOf(pid)
	if err != nil {
		return linux.ErrGone
	}
	id, err := d.outermost(path)
	if err != nil {
		return err
	}
	err = d.dns.Open(id, pid, since)
	if err != nil && !errors.Is(err, linux.ErrGone) {
		c := d.processes.Container(id, 0)
		d.write(event.Event{Kind: event.Error, Container: &c, Message: "no resolver: questions for names are judged by their server: " + err.Error()})
	}
	return err
}

// outermost is the id of the container that a cgroup belongs to, as the kernel counts: the first below the innermost
// guarded parent.
func (d *daemon) outermost(path string) (uint64, error) {
	if found, ok := linux.CgroupChild(path, d.parents.List()); ok {
		return linux.CgroupID(found)
	}
	if st, ok := d.processes.Innermost(path); ok {
		return st.CgroupID, nil // a container by itself
	}
	return 0, fmt.Errorf("%s is in no container", path)
}

// resumeResolvers starts those of all tainted containers.
func (d *daemon) resumeResolvers() {
	for _, st := range d.state.List() {
		if st.Taint != 0 {
			d.openResolvers(st.Cgroup, st.First)
		}
	}
}

// askedForNames starts the resolver that a question to a name server lacks, and has it asked there. A socket that was
// connected to a name server before cannot be led there: it fails, and programs ask again with another.
// It calls decided before the asker goes on, which may ask again at once.
func (d *daemon) askedForNames(a netegress.Ask, decided func()) bool {
	if !a.To.Event().DNS || a.Exec {
		return false
	}
	st, ok := d.state.ByCgroup(a.Container)
	p, _ := d.policies.InForce(st.ID)
	if !ok || p.Mode != policy.Enforce {
		return false
	}
	if d.openResolver(a.Process.PID, st.First) != nil {
		return false
	}
	led, err := d.dns.Asked(a.Container, a.Time)
	if err != nil {
		d.failed("lead questions for names", err) // they stay refused
	}
	answer := d.egress.Refuse
	if led {
		answer = d.egress.Wake
	}
	decided()
	if err := answer(a); err != nil {
		d.fail("go on with a question for a name", nil, err)
		return false
	}
	return true
}

// destination is where an asker wants to go, by name where the address stands for one.
func (d *daemon) destination(a netegress.Ask) event.Destination {
	to := a.To.Event()
	if name, ok := d.dns.Name(a.Container, a.To.Addr); ok {
		to.Name = name
	}
	return to
}

// lead completes the terms of a verdict with where a name leads, which is looked up now and checked.
func (d *daemon) lead(a netegress.Ask, to event.Destination, t netegress.Terms) (netegress.Terms, error) {
	if to.Name == "" {
		return t, nil
	}
	ctx, cancel := context.WithTimeout(d.ctx, resolveFor)
	defer cancel()
	real, err := d.dns.Resolve(ctx, a.Container, a.Process.PID, a.To.Addr)
	if err != nil {
		return t, err
	}
	if a.To.Proto == unix.IPPROTO_UDP {
		if err := d.dns.LeadDatagrams(a.Container); err != nil {
			return t, err
		}
	}
	t.Real = real
	t.ResolveTarget = func(grant uint64) error { return d.dns.Lead(grant, a.Container, a.To.Addr, real) }
	return t, nil
}

// over are the states of a grant that opens nothing any more.
var over = []string{"spent", "expired", "revoked", "ended"}

func (d *daemon) nameEnded(g netegress.Grant) {
	if !slices.Contains(over, g.State) {
		return
	}
	if err := d.dns.Ended(g.ID); err != nil {
		d.opts.Logger.WithError(err).Error("forget the names of a grant")
	}
}

// nameUsed has a name looked up that a clean container still knows by an address of the pool.
func (d *daemon) nameUsed(r netegress.Record) {
	switch r.Reason {
	case "untainted", "observe", "unresolved_name":
		d.dns.Used(r.Container, r.To.Addr)
	}
}

// nameFreed is told that a container may be clean.
func (d *daemon) nameFreed(st taint.Status) {
	if st.Taint == 0 {
		d.dns.Freed(st.CgroupID)
	}
}
