package daemon

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/gitguard"
	"weir/internal/linux"
	"weir/internal/netegress"
)

// asking names a question that is on its way.
type asking struct {
	container uint64
	pid       int
	start     uint64
	to        netegress.Destination
}

// maxAsks is how many questions of one container may be on their way: an eighth of what the kernel has room for, or one container could
// take the others' (B95).
const maxAsks = 2048

// Asked implements netegress.Handler.
func (d *daemon) Asked(a netegress.Ask) {
	if d.takes(a.Container) {
		go func() {
			defer d.asked(a.Container)
			d.ask(a)
		}()
		return
	}
	refuse := d.egress.Refuse
	if a.Exec {
		refuse = d.egress.Kill
	}
	if err := refuse(a); err != nil {
		d.fail("refuse one question too many", nil, err)
	}
	d.Recorded(netegress.Record{Kind: netegress.Denied, Reason: string(gate.QueueFull), Denied: true, Container: a.Container, Taint: a.Taint, Process: a.Process, To: a.To, Exec: a.Exec})
}

// takes says whether one more question of a container may be on its way, and counts it.
func (d *daemon) takes(container uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asks[container] >= maxAsks {
		return false
	}
	d.asks[container]++
	return true
}

// asked takes a question off those on their way.
func (d *daemon) asked(container uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asks[container]--; d.asks[container] == 0 {
		delete(d.asks, container)
	}
}

// ask has a verdict made and carries it out. Whatever goes wrong refuses.
func (d *daemon) ask(a netegress.Ask) {
	ctx, cancel := context.WithCancel(d.ctx)
	defer cancel()
	key := asking{a.Container, a.Process.PID, a.Process.Start, a.To}
	mine := func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		_, asks := d.asking[key]
		if !asks {
			d.asking[key] = &cancel
		}
		return !asks
	}
	first := mine()
	decided := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.asking[key] == &cancel { // else the call may ask anew already
			delete(d.asking, key)
		}
	}
	defer decided()
	if a.Held {
		err := d.egress.Hold(a)
		if errors.Is(err, netegress.ErrOver) {
			return
		}
		if err != nil {
			a.Held = a.Exec // stopped, as it was
			d.opts.Logger.WithError(err).Warn("freeze who waits for a verdict")
		}
	}
	if !first && !mine() || d.askedForNames(a, decided) { // who asked before may have been answered meanwhile
		return
	}
	if a.Held {
		go untilGone(ctx, cancel, a.Process)
	}
	r := gate.Request{
		Container: d.processes.Container(a.Container, a.Taint), Process: d.processes.Process(a.Process), Destination: d.destination(a),
		Held: a.Held, TaintRead: time.Duration(max(a.Time, 1)),
	}
	r.Process.Dir, r.Git = linux.WorkingDir(r.Process.PID), gitguard.Repositories(r.Container.ID, r.Process.PID, r.Process.Start)
	if a.Exec {
		r.Ask = gate.Run
	} else {
		r.Above = d.processes.Above(a.Container, r.Process)
	}
	p, version := d.policies.InForce(r.Container.ID)
	r.Mode, r.Policy = string(p.Mode), version
	r.AskFlagged, r.GrantSeconds, r.GrantBytes, r.CopBytes = p.Cop.AskFlagged(), p.Grant.Seconds, p.Grant.Bytes, p.Cop.Grant.Bytes
	v := d.gate.Decide(ctx, r)
	if v.Decision != gate.Allow && ctx.Err() != nil {
		if d.state.Clean(a.Container) {
			d.gate.EndNeedless(func(id string) bool { return id == r.Container.ID }) // it was asked while the taint was cleared
		}
		return // the daemon ends, and its asker stays held for the next one or the watcher; or the asker has gone, or asks anew
	}
	if err := d.carryOut(a, r, v, decided); err != nil {
		d.fail("carry out verdict on process "+event.Command(r.Process.Argv, 32, 80), &r, err)
	}
}

// untilGone cancels a question whose held asker has been killed: the same
// command may take it up when it tries again.
func untilGone(ctx context.Context, cancel context.CancelFunc, p netegress.Process) {
	fd, err := linux.OpenProcess(p.PID, p.Start)
	if err != nil {
		if errors.Is(err, linux.ErrGone) {
			cancel()
		}
		return
	}
	defer fd.Close()
	for ctx.Err() == nil {
		poll := []unix.PollFd{{Fd: int32(fd.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, int(time.Second/time.Millisecond))
		if n > 0 {
			cancel()
		}
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// carryOut calls decided before the asker goes on, which may ask again at once.
func (d *daemon) carryOut(a netegress.Ask, r gate.Request, v gate.Verdict, decided func()) error {
	goOn := func() error {
		decided()
		return d.egress.Wake(a)
	}
	if v.Decision != gate.Allow {
		if a.Exec {
			return d.egress.Kill(a)
		}
		if a.Held && v.Reason == gate.UsedOnce {
			return goOn() // and asks for itself
		}
		return d.egress.Refuse(a)
	}
	if a.Exec {
		return d.begins(a, v, goOn)
	}
	switch v.Reason {
	case gate.Standing:
		return d.carryOutStanding(a, r, v, goOn)
	case gate.Approved, gate.Passed, gate.Recognised:
	default:
		return goOn() // untainted or observed meanwhile: the kernel lets it through
	}
	terms, err := d.terms(a, r, v)
	if err != nil {
		return d.refuse(a, v, err) // an approval stays, for the next try
	}
	if v.Reason == gate.Approved {
		err := d.gate.Consume(v.Question)
		if errors.Is(err, gate.ErrUsed) {
			return goOn() // another thread of the same process was first
		}
		if err != nil {
			return errors.Join(err, d.egress.Refuse(a))
		}
	}
	if v.Root != nil && !d.processes.Still(*v.Root) {
		v.Scope, terms.Root = 1, netegress.Process{} // it has ended, or runs something else than what was shown: the asker alone
	}
	g, err := d.egress.Grant(a, terms)
	if err != nil {
		return d.refuse(a, v, err)
	}
	return errors.Join(goOn(), d.granted(a, r, v, terms, g))
}

// granted logs a grant that was made.
func (d *daemon) granted(a netegress.Ask, r gate.Request, v gate.Verdict, terms netegress.Terms, g netegress.Grant) error {
	info := d.processes.Grant(g)
	info.Scope = scopeOf(v, a.Process.PID, terms, g)
	return d.log.Write(event.Event{
		Kind: event.Grant, Container: &r.Container, Process: &r.Process, Question: v.Question, Grant: info,
	})
}

// begins lets a command go on that was stopped before it began. Nothing is opened
// by that.
func (d *daemon) begins(a netegress.Ask, v gate.Verdict, goOn func() error) error {
	if v.Reason == gate.Approved {
		if err := d.gate.Consume(v.Question); err != nil {
			return errors.Join(err, d.egress.Kill(a))
		}
	}
	return goOn()
}

// adopt asks again what an earlier daemon left unanswered.
func (d *daemon) adopt() error {
	asks, err := d.egress.Adopt()
	if err != nil {
		return err
	}
	for _, a := range asks {
		d.Asked(a)
	}
	return nil
}

// withdraw ends the questions of a container that need no answer any more: the
// kernel judges its calls anew.
func (d *daemon) withdraw(container uint64) error {
	d.mu.Lock()
	var woken []netegress.Ask
	for key, cancel := range d.asking {
		if container != 0 && key.container != container {
			continue
		}
		(*cancel)()
		delete(d.asking, key)
		woken = append(woken, netegress.Ask{
			Container: key.container, Held: true, To: key.to, Process: netegress.Process{PID: key.pid, Start: key.start},
		})
	}
	d.mu.Unlock()
	var errs []error
	for _, a := range woken {
		errs = append(errs, d.egress.Wake(a))
	}
	return errors.Join(errs...)
}
