package daemon

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"weir/internal/event"
	"weir/internal/exec"
	"weir/internal/gate"
	"weir/internal/gitguard"
	"weir/internal/linux"
	"weir/internal/netegress"
	"weir/internal/policy"
	"weir/internal/taint"
)

// fail logs what could not be done. Nothing was allowed by it.
func (d *daemon) fail(what string, r *gate.Request, err error) {
	e := event.Event{Kind: event.Error, Message: what + ": " + err.Error()}
	if r != nil {
		e.Container, e.Process, e.Destination = &r.Container, &r.Process, &r.Destination
	}
	d.write(e)
}

// failed logs what could not be done for nobody in particular.
func (d *daemon) failed(what string, err error) { d.fail(what, nil, err) }

// write logs what has happened already.
func (d *daemon) write(e event.Event) { d.log.WriteAsync(e) }

// executed logs an observed command with the verdict on running it (G25).
func (d *daemon) executed(c exec.Command) {
	d.spaces.Saw(c.Container, c.MountNS)
	container, process := d.processes.Then(c.Container, taint.Bits(c.Taint)), c.Process // the event keeps these two alone
	r := gate.Request{Container: container, Process: process, Ask: gate.Run, Mode: string(d.policies.ModeOf(container.ID))}
	if len(container.Taint) > 0 {
		process.Dir = linux.WorkingDir(process.PID)
		r.Process.Dir, r.Git = process.Dir, gitguard.Repositories(process.PID, process.Start)
		r.ReviewExec = d.policies.For(container.ID).Review == policy.AtExec
	}
	v := d.gate.Decide(d.ctx, r)
	d.write(event.Event{Kind: event.Exec, Container: &container, Process: &process, Verdict: v.Event()})
}

// Recorded implements netegress.Handler: it never waits for the log.
func (d *daemon) Recorded(r netegress.Record) {
	select {
	case d.records <- r:
	default:
		d.mu.Lock()
		d.lost["queue"]++
		d.mu.Unlock()
	}
}

// pass carries records to the log.
func (d *daemon) pass(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case r := <-d.records:
			d.recorded(r)
		}
	}
}

func (d *daemon) recorded(r netegress.Record) {
	c := d.processes.Then(r.Container, r.Taint)
	to := r.To.Event()
	to.Name, _ = d.dns.Name(r.Container, r.To.Addr)
	d.nameUsed(r)
	switch r.Kind {
	case netegress.Dropped:
		d.write(event.Event{Kind: event.Drop, Container: &c, Destination: &to, Verdict: &event.Decision{
			Decision: "deny", Reason: r.Reason, Text: "packets: the socket is older than the taint, or answers a peer outside",
		}})
		return
	case netegress.Tainted:
		d.fromOutside(r)
		return
	case netegress.Claimed, netegress.Spent:
		return // told as grants
	}
	p, _ := d.processes.Ran.Find(r.Process.PID, r.Process.Start) // unknown: what the record has
	p.PID, p.Start, p.UID, p.Comm = r.Process.PID, r.Process.Start, r.Process.UID, r.Process.Comm
	v := event.Decision{Decision: "allow", Reason: r.Reason}
	if r.Denied {
		v.Decision = "deny"
	}
	e := event.Event{Kind: event.Connect, Container: &c, Process: &p, Destination: &to, Verdict: &v}
	if hook, text := hookOf(r); hook != "" {
		v.Text = text
		e.Kind, e.Hook, e.Destination = event.Deny, hook, nil
	} else if r.Path != "" || r.Family == unix.AF_UNIX {
		to = event.Destination{Address: r.Path, Protocol: "unix"}
	}
	d.write(e)
}

// hookOf names what a record is of that refuses a call which opens no destination, and says what it was; empty: it is of another.
func hookOf(r netegress.Record) (hook, text string) {
	switch {
	case !r.Denied:
	case r.Reason == "kernel_traffic" && r.Target != 0:
		return "setsockopt", fmt.Sprintf("socket option %d, with which the kernel would say or route something", r.Target)
	case r.Reason == "kernel_traffic":
		return "request_key", "a key that a program of the host would look up"
	case r.Reason == "attach" && r.Target == 0:
		return "ipc", "a key or an object of System V that is not its own"
	case r.Reason == "attach":
		return "ptrace", fmt.Sprintf("process %d, which is outside its container", r.Target)
	case r.Reason == "socket_family":
		return "socket", fmt.Sprintf("socket family %d, type %d", r.Family, r.Type)
	}
	return "", ""
}

// GrantChanged implements netegress.Handler.
func (d *daemon) GrantChanged(g netegress.Grant) {
	d.nameEnded(g)
	d.giveBack(g)
	c := d.processes.Container(g.Container, 0)
	d.write(event.Event{Kind: event.Grant, Container: &c, Grant: d.processes.Grant(g)})
}

// moved reacts to tasks and cgroups that come and go (B28, B37).
func (d *daemon) moved(m taint.Move) {
	c := d.processes.Container(m.Container, 0)
	e := event.Event{Kind: event.Error, Container: &c, Process: &event.Process{PID: m.PID, Start: m.Start}}
	switch m.Kind {
	case taint.Made:
		d.parents.Made(m)
		return
	case taint.Moved:
		if m.From == 0 || m.From == m.Container {
			return
		}
		e.Message = fmt.Sprintf("process %d was moved here by process %d (%s)", m.PID, m.By, m.ByComm)
	case taint.Escaped:
		e.Kind = event.Escape
		e.Message = fmt.Sprintf("process %d left its container by process %d (%s): killed", m.PID, m.By, m.ByComm)
		if err := kill(m.PID, m.Start); err != nil {
			e.Message += ": " + err.Error()
		}
	case taint.Intruded:
		e.Message = fmt.Sprintf("process %d was moved into grant %d by process %d (%s): grant revoked", m.PID, m.Grant, m.By, m.ByComm)
		if err := d.egress.Revoke(m.Container, m.Grant); err != nil {
			e.Message += ": " + err.Error()
		}
	}
	d.write(e)
}

func kill(pid int, start uint64) error {
	fd, err := linux.OpenProcess(pid, start)
	if err != nil {
		return nil // gone
	}
	defer fd.Close()
	return linux.SendSignal(fd, unix.SIGKILL)
}
