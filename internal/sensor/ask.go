package sensor

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/event"
	"weir/internal/gate/question"
	"weir/internal/gate/verdict"
	"weir/internal/netegress"
	"weir/internal/procfs"
	"weir/internal/sensor/inforce"
)

// asking names a question that is on its way.
type asking struct {
	container uint64
	pid       int
	start     uint64
	to        netegress.Destination
}

// Asked implements netegress.Handler.
func (d *daemon) Asked(a netegress.Ask) { go d.ask(a) }

// ask has a verdict made and carries it out. Whatever goes wrong refuses.
func (d *daemon) ask(a netegress.Ask) {
	ctx, cancel := context.WithCancel(d.ctx)
	defer cancel()
	if d.askedForNames(a) {
		return
	}
	key := asking{a.Container, a.Process.PID, a.Process.Start, a.To}
	d.mu.Lock()
	d.asking[key] = cancel
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.asking, key)
		d.mu.Unlock()
	}()
	if a.Held {
		go untilGone(ctx, cancel, a.Process)
	}
	r := verdict.Request{
		Container: d.witness.Container(a.Container, a.Taint), Process: d.witness.Process(a.Process), Destination: d.destination(a),
		Held: a.Held,
	}
	if a.Exec {
		r.Ask = verdict.Run
	}
	p := d.policies.InMode(d.policies.For(r.Container.ID))
	r.Mode, r.Policy = string(p.Mode), inforce.Version(p)
	d.summaries.Count(r.Container.ID, event.Hold)
	v := d.gate.Decide(ctx, r)
	if v.Decision != verdict.Allow && d.ctx.Err() != nil {
		return // the daemon ends: the question stays, and its asker stays held for the next one or the watcher
	}
	if err := d.carryOut(a, r, v); err != nil {
		d.fail("carry out verdict on process "+event.Command(r.Process.Argv, 32, 80), &r, err)
	}
}

// untilGone cancels a question whose held asker has been killed: the same
// command may take it up when it tries again.
func untilGone(ctx context.Context, cancel context.CancelFunc, p netegress.Process) {
	fd, err := procfs.Open(p.PID, p.Start)
	if err != nil {
		cancel()
		return
	}
	defer fd.Close()
	for ctx.Err() == nil {
		poll := []unix.PollFd{{Fd: int32(fd.Fd()), Events: unix.POLLIN}}
		if n, err := unix.Poll(poll, int(time.Second/time.Millisecond)); n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			cancel()
			return
		}
	}
}

func (d *daemon) carryOut(a netegress.Ask, r verdict.Request, v verdict.Verdict) error {
	if v.Decision != verdict.Allow {
		d.summaries.Count(r.Container.ID, event.Connect)
		if a.Exec {
			return d.egress.Kill(a)
		}
		return d.egress.Refuse(a)
	}
	if a.Exec {
		return d.begins(a, v)
	}
	switch v.Reason {
	case verdict.Approved, verdict.Passed, verdict.Recognised:
	default:
		return d.egress.Wake(a) // untainted or observed meanwhile: the kernel lets it through
	}
	terms, err := d.lead(a, r.Destination, termsOf(d.policies.For(r.Container.ID), v))
	if err != nil {
		return errors.Join(err, d.egress.Refuse(a)) // an approval stays, for the next try
	}
	if v.Reason == verdict.Approved {
		err := d.gate.Used(v.Question)
		if errors.Is(err, question.ErrUsed) {
			return d.egress.Wake(a) // another thread of the same process was first
		}
		if err != nil {
			return errors.Join(err, d.egress.Refuse(a))
		}
		d.summaries.Count(r.Container.ID, event.Verdict)
	}
	g, err := d.egress.Grant(a, terms)
	if err != nil {
		return errors.Join(err, d.egress.Refuse(a))
	}
	d.summaries.Count(r.Container.ID, event.Grant)
	return d.log.Write(event.Event{
		Kind: event.Grant, Container: &r.Container, Process: &r.Process, Question: v.Question, Grant: g.Event(),
	})
}

// begins lets a command go on that was stopped before it began. Nothing is opened
// by that.
func (d *daemon) begins(a netegress.Ask, v verdict.Verdict) error {
	if v.Reason == verdict.Approved {
		if err := d.gate.Used(v.Question); err != nil {
			return errors.Join(err, d.egress.Kill(a))
		}
	}
	return d.egress.Wake(a)
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
		cancel()
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
