package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/linux"
	"weir/internal/metrics"
	"weir/internal/netegress"
	"weir/internal/taint"
)

// Status implements control.Reader.
func (d *daemon) Status(context.Context) (control.Status, error) {
	counts, err := d.counters()
	if err != nil {
		return control.Status{}, err
	}
	for reason, n := range d.gate.Counters() {
		counts["verdict_"+string(reason)] = n
	}
	for rule, n := range d.agents.refusals.Counts() {
		counts["guard_"+rule] = n
	}
	for name, n := range d.brokenCounts() {
		counts["broken_"+name] = n
	}
	for code, n := range d.models.Counts() {
		counts[code] = n
	}
	st := control.Status{
		Version: d.opts.Version, PID: os.Getpid(), Mode: string(d.policies.Mode()), Kernel: kernelRelease(),
		Uptime: int64(time.Since(d.started).Seconds()), Policy: d.opts.PolicyPath, Events: d.policies.Base().Events.File, State: d.opts.StateDir,
		Parents: d.parents.List(), Pending: len(d.gate.Pending()), Counters: counts, Degraded: d.degradations(), Goroutines: runtime.NumGoroutine(),
		Refused: d.refusal.Load(),
	}
	all, err := d.volumes.List()
	if err != nil {
		return control.Status{}, err
	}
	for _, v := range all {
		st.Volumes = append(st.Volumes, volumeTold(v))
	}
	for _, c := range d.state.List() {
		if linux.CgroupPopulated(c.Cgroup) {
			st.Containers++
		}
	}
	return st, nil
}

func kernelRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// Containers implements control.Reader.
func (d *daemon) Containers(context.Context) ([]control.Container, error) {
	var all []control.Container
	for _, st := range d.state.List() {
		all = append(all, d.told(st))
	}
	return all, nil
}

func (d *daemon) told(st taint.Status) control.Container {
	c := control.Container{
		ID: st.ID, Name: st.Name, Cgroup: st.Cgroup, Taint: st.Taint.Names(), Mode: string(d.policies.ModeOf(st.ID)), Agent: st.Agent, Session: st.Session,
		Live:    linux.CgroupPopulated(st.Cgroup),
		Runtime: st.Origin.Runtime, Namespace: st.Origin.Namespace, RuntimeID: st.Origin.ID, Image: st.Origin.Image,
		Pod: st.Origin.Pod, PodNamespace: st.Origin.PodNamespace, PodUID: st.Origin.PodUID,
	}
	if d.policies.Base().Fleet.Identity {
		c.Identity = st.Origin.Identity()
	}
	if st.Taint != 0 {
		c.Since, c.By, c.Why = st.Since, st.By, st.Why
	}
	for _, g := range d.egress.Grants() {
		if g.Container == st.CgroupID {
			c.Grants = append(c.Grants, *d.processes.Grant(g))
		}
	}
	return c
}

// Events implements control.Reader.
func (d *daemon) Events(ctx context.Context, f event.Filter, follow bool, fn func(event.Event) error) error {
	file := d.policies.Base().Events.File
	if file == "" && !follow {
		return control.Errorf(control.Failed, "events go to standard output: follow them with -f, or set events.file in the policy")
	}
	var live <-chan event.Event
	if follow {
		var done func()
		live, done = d.log.Subscribe(4096)
		defer done()
	} else {
		if f.Container != "" {
			if _, unknown := d.state.Find(f.Container); unknown != nil {
				if has, err := event.Has(file, f.Container); err == nil && !has {
					return unknown
				}
			}
		}
		var bad *event.BadLines
		if err := event.ReadFile(file, f, fn); err != nil && !errors.As(err, &bad) {
			return err
		}
	}
	for follow {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-live:
			if !ok {
				return nil
			}
			if !f.Match(e) {
				continue
			}
			if err := fn(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// Log implements control.Reader.
func (d *daemon) Log(context.Context) (*event.Stored, error) {
	file := d.policies.Base().Events.File
	if file == "" {
		return nil, control.Errorf(control.Failed, "events go to standard output, so there is no history: set events.file in the policy")
	}
	return event.OpenStored(file)
}

// Metrics implements control.Reader.
func (d *daemon) Metrics(context.Context) (string, error) { return metrics.Text(collector{d}) }

// Taint implements control.Tainter.
func (d *daemon) Taint(_ context.Context, name string, bits []string, by, why string) (control.Container, error) {
	b, err := taint.ParseBits(bits)
	if err != nil {
		return control.Container{}, control.Errorf(control.Usage, "%w", err)
	}
	st, err := d.taint(taint.Change{Container: name, Bits: b, Source: "operator", By: by, Why: why})
	if err != nil {
		return control.Container{}, err
	}
	return d.told(st), nil
}

// GuardCgroup implements control.Guardian.
func (d *daemon) GuardCgroup(_ context.Context, r control.CgroupRequest) (control.Container, error) {
	bits, err := taint.StartBits(r.Taint)
	if err != nil {
		return control.Container{}, control.Errorf(control.Usage, "%w", err)
	}
	st, err := d.parents.Take(r.Cgroup, r.Name, r.By)
	if bits |= st.Own; err == nil && bits != 0 { // with what it has from the start: its sockets are older
		st, err = d.taint(taint.Change{Container: st.ID, Bits: bits, Source: "guard", By: r.By})
	}
	if err != nil {
		return control.Container{}, err
	}
	return d.told(st), nil
}

// taint puts a change from any source in force: in the kernel first, then grants
// made under less taint end, then sockets from before are closed.
func (d *daemon) taint(c taint.Change) (taint.Status, error) {
	before, err := d.state.Find(c.Container)
	if err != nil {
		return before, err
	}
	cause := d.processes.Cause(c)
	if cause != nil && c.Source != "tool" { // else it is the agent's hook that asks
		c.Argv = shortArgv(cause.Argv)
	}
	if cause != nil {
		c.Above = parentsOf(*cause)
	}
	st, err := d.state.Set(c)
	if errors.Is(err, taint.ErrKnown) {
		return st, nil
	}
	if err != nil && !errors.Is(err, taint.ErrNotStored) {
		return st, err
	}
	errs := []error{err}
	c.Bits &= st.Own // without what was cleared since a program had set it
	if more := c.Bits &^ before.Own; more != 0 {
		errs = append(errs, d.endTainted(st.Cgroup, more, c.Grant))
		errs = append(errs, d.egress.RevokeLesser(st.CgroupID, c.Grant, st.Taint))
	}
	closed, err := d.egress.CloseSockets(st.Cgroup, d.policies.For(st.ID))
	errs = append(errs, err)
	found, err := netegress.SocketFindings(st.Cgroup)
	errs = append(errs, err)
	ec := d.processes.Container(st.CgroupID, st.Taint)
	message := ""
	if closed > 0 {
		message = fmt.Sprintf("%d open sockets closed", closed)
	}
	errs = append(errs, d.log.Write(event.Event{
		Kind: event.Taint, Container: &ec, Process: cause, Message: message,
		Change: &event.TaintChange{Set: c.Bits.Names(), Source: c.Source, By: c.By, Why: c.Why, Volume: c.Volume},
	}))
	tell := func(found []string) {
		for _, finding := range found {
			d.write(event.Event{Kind: event.Error, Container: &ec, Message: "finding: " + finding})
		}
	}
	tell(found)
	errs = append(errs, d.spread(c, st))
	d.openResolvers(st.Cgroup, st.First) // late: it asks the container's file systems (B86)
	if c.Bits&^before.Own != 0 {         // last: it looks at all processes
		ties, err := netegress.Ties(st.Cgroup)
		tell(ties)
		errs = append(errs, err)
	}
	return st, errors.Join(errs...)
}

// spread taints the other containers of the same pod (G3), and tells of volumes that are shared with clean ones (B34).
func (d *daemon) spread(c taint.Change, st taint.Status) error {
	var errs []error
	for _, other := range d.state.List() {
		if uid := st.Origin.PodUID; uid != "" && other.Origin.PodUID == uid && st.Own&^other.Taint != 0 && other.CgroupID != 0 {
			_, err := d.taint(taint.Change{Container: other.ID, Bits: st.Own, Source: "pod", By: c.By, Why: "of the same pod as " + st.ID})
			errs = append(errs, err)
		}
	}
	d.runtime.Tainted()
	if c.InKernel {
		d.volumes.Wake()
	} else { // what is open under a cgroup that is neither the container nor its parent (B136)
		errs = append(errs, d.volumes.Scan())
	}
	return errors.Join(errs...)
}

// Untaint implements control.Tainter. The event is written before the taint is cleared: what is not logged is not cleared.
func (d *daemon) Untaint(_ context.Context, name string, bits []string, by, why string) (control.Container, error) {
	b, err := taint.ParseBits(bits)
	if err != nil {
		return control.Container{}, control.Errorf(control.Usage, "%w", err)
	}
	before, err := d.state.Find(name)
	if err != nil {
		return control.Container{}, err
	}
	d.clearing.Lock()
	defer d.clearing.Unlock()
	all := d.state.List()
	for _, c := range all {
		if linux.PathWithin(c.Cgroup, before.Cgroup) {
			if err := d.dns.LeadDatagrams(c.CgroupID); err != nil {
				return control.Container{}, fmt.Errorf("still tainted: %w", err)
			}
		}
	}
	forget := func() error {
		var errs []error
		for _, bit := range b.Names() {
			of := func(c event.Container) bool { return slices.Contains(loses(all, before, c.Cgroup).Names(), bit) }
			d.agents.tools.Cleared([]string{bit}, of)
			errs = append(errs, d.gate.Cleared([]string{bit}, of))
		}
		return errors.Join(errs...)
	}
	if err := forget(); err != nil {
		return control.Container{}, fmt.Errorf("still tainted: %w", err)
	}
	var st taint.Status
	ec := d.processes.Container(before.CgroupID, before.Taint)
	done := event.TaintChange{Cleared: b.Names(), Source: "operator", By: by, Why: why}
	if err := cleared(d.log.Write, ec, done, before.Own&b, func() (err error) {
		if err := d.volumes.Forget(before.CgroupID); err != nil {
			return err
		}
		st, err = d.state.Clear(name, b, by, why)
		return err
	}); err != nil {
		return control.Container{}, fmt.Errorf("still tainted: %w", err)
	}
	errs := []error{forget(), d.volumes.Scan()} // also what was asked meanwhile, and is still open
	for _, c := range all {
		if lost := b & loses(all, before, c.Cgroup); lost != 0 && c.CgroupID != 0 {
			errs = append(errs, d.egress.Cleared(c.CgroupID, lost))
		}
	}
	for _, c := range append(d.state.List(), st) {
		if c.Taint == 0 && linux.PathWithin(c.Cgroup, st.Cgroup) && (c.CgroupID == 0 || d.state.Clean(c.CgroupID)) {
			errs = append(errs, d.withdraw(c.CgroupID))
			d.gate.EndNeedless(func(id string) bool { return id == c.ID })
			d.nameFreed(c)
		}
	}
	return d.told(st), errors.Join(errs...)
}

// loses are the bits that a cgroup has no more when they are cleared in a container: it is in that, and nothing else that it is in has them.
func loses(all []taint.Status, from taint.Status, cgroup string) taint.Bits {
	if !linux.PathWithin(cgroup, from.Cgroup) {
		return 0
	}
	lost := ^taint.Bits(0)
	for _, c := range all {
		if c.ID != from.ID && linux.PathWithin(cgroup, c.Cgroup) {
			lost &^= c.Own
		}
	}
	return lost
}

// cleared writes that taint is cleared, and clears it. Where that fails it writes that the container has it again: who reads the log must not
// take it for clean.
func cleared(write func(event.Event) error, c event.Container, change event.TaintChange, has taint.Bits, do func() error) error {
	if err := write(event.Event{Kind: event.Taint, Container: &c, Change: &change}); err != nil {
		return err
	}
	err := do()
	if err == nil || has == 0 {
		return err
	}
	change.Set, change.Cleared, change.Why = has.Names(), nil, "it could not be cleared: "+err.Error()
	return errors.Join(err, write(event.Event{Kind: event.Taint, Container: &c, Change: &change}))
}

// Pending implements control.Approver.
func (d *daemon) Pending(context.Context) ([]gate.Question, error) {
	list, by := d.gate.Pending(), d.halves.by(d.policies.Base().Fleet)
	for i := range list {
		list[i].Half = by[list[i].ID]
	}
	return list, nil
}

// Answer implements control.Approver.
func (d *daemon) Answer(_ context.Context, id string, r gate.Reply) (gate.Question, error) {
	if err := d.agents.Answerable(r); err != nil {
		return gate.Question{}, err
	}
	return d.gate.Answer(id, r)
}

// History implements control.Approver.
func (d *daemon) History(_ context.Context, most int) ([]gate.Question, error) {
	return d.gate.Ended(most)
}
