package daemon

import (
	"context"
	"fmt"
	"strconv"
	"strings"

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
		r.Process.Dir, r.Git = process.Dir, gitguard.Repositories(r.Container.ID, process.PID, process.Start)
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
		d.lostRecords.Add(1)
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
	p := d.processes.surely(r.Process.PID, r.Process.Start)
	p.PID, p.Start, p.UID, p.Comm = r.Process.PID, r.Process.Start, r.Process.UID, r.Process.Comm
	d.write(recordEvent(r, c, p, to))
}

// recordEvent tells what became of a call.
func recordEvent(r netegress.Record, c event.Container, p event.Process, to event.Destination) event.Event {
	v := event.Decision{Decision: "allow", Reason: r.Reason}
	if r.Denied {
		v.Decision = "deny"
	}
	e := event.Event{Kind: event.Connect, Container: &c, Process: &p, Destination: &to, Verdict: &v}
	if r.Exec {
		v.Text = "too much of its container waits for a verdict; it is killed before it begins"
		e.Kind, e.Destination = event.Verdict, nil
	} else if r.Call != "" {
		v.Text = callText(r)
		e.Kind, e.Hook, e.Destination = event.Deny, r.Call, nil
	} else if r.Path != "" || r.Family == unix.AF_UNIX {
		to = event.Destination{Address: r.Path, Protocol: "unix"}
	}
	return e
}

// calls says what each call is that is refused and opens no destination; # is the record's target.
var calls = map[string]string{
	"ptrace":            "process #, which is outside its container",
	"signal":            "a signal to process #, which is outside its container",
	"limit":             "a limit of process #, which is outside its container",
	"priority":          "priority or processors of process #, which is outside its container",
	"ipc":               "an object of System V that is not its own",
	"key":               "a key that is not its own",
	"setsockopt":        "socket option #, with which the kernel would say or route something",
	"request_key":       "a key that a program of the host would look up",
	"module":            "a module that a program of the host would load",
	"session_to_parent": "a session keyring for its parent",
	"tun":               "a device that carries what is written to it into a network",
	"ipsec":             "a connection for which the host would ask for an IPsec association",
	"network":           "a change of the machine's network, or a new device",
	"label":             "what a security module of the kernel is to take it for",
	"mount":             "a mount among the machine's own",
	"unknown":           "a call that the programs of an earlier version refused",
}

func callText(r netegress.Record) string {
	if r.Call == "socket" {
		return fmt.Sprintf("socket family %d, type %d", r.Family, r.Type)
	}
	return strings.Replace(calls[r.Call], "#", strconv.Itoa(r.Target), 1)
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
