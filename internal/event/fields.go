package event

import (
	"cmp"
	"net/netip"
	"strconv"
	"strings"
)

// Priority is how much an event matters to who reads many logs, as syslog numbers it: less is more.
type Priority int

// The priorities that events have.
const (
	PriorityError   Priority = 3 // a failure, or a process that left its container
	PriorityWarning Priority = 4 // something is lost, or undoes a guard
	PriorityNotice  Priority = 5 // something was refused, held, tainted or changed
	PriorityInfo    Priority = 6
)

// Priority is that of an event, by its kind and verdict.
func (e Event) Priority() Priority {
	switch e.Kind {
	case Error, Escape:
		return PriorityError
	case Lost, Found:
		return PriorityWarning
	case Hold, Taint, Mode, Deny, Drop, Model, Approval, Start, Stop:
		return PriorityNotice
	}
	if e.Verdict != nil && e.Verdict.Decision == "deny" {
		return PriorityNotice
	}
	return PriorityInfo
}

// Field is one of what an event says, for who files it by that.
type Field struct{ Name, Value string }

// Fields are what an event is filed by, in one order. Names are OpenTelemetry's where it has one (semantic conventions 1.37), and begin with weir
// otherwise. Values are visible, and those that a container chose are of bounded length. What is empty is left out.
func Fields(e Event) []Field {
	var all []Field
	add := func(name, value string) {
		if value != "" {
			all = append(all, Field{name, Visible(value)})
		}
	}
	number := func(name string, n uint64) {
		if n != 0 {
			add(name, strconv.FormatUint(n, 10))
		}
	}
	add("weir.kind", string(e.Kind))
	if c := e.Container; c != nil {
		add("weir.container", bounded(cmp.Or(c.Name, c.ID)))
		add("weir.container.id", c.ID)
		add("weir.container.taint", strings.Join(c.Taint, ","))
		add("container.id", c.RuntimeID)
		add("container.image.name", bounded(c.Image))
		add("k8s.pod.name", bounded(c.Pod))
		add("k8s.namespace.name", bounded(c.PodNamespace))
		add("k8s.pod.uid", bounded(c.PodUID))
	}
	if p := e.Process; p != nil {
		number("process.pid", uint64(max(p.PID, 0)))
		if p.PID > 0 {
			add("process.real_user.id", strconv.FormatUint(uint64(p.UID), 10))
		}
		if p.Exe != nil {
			add("process.executable.path", bounded(p.Exe.Path))
		}
		if len(p.Argv) > 0 {
			add("process.command_line", Command(p.Argv, printedArg, printedArgv))
		}
	}
	if d := e.Destination; d != nil {
		add("destination.address", bounded(cmp.Or(d.Name, d.Address)))
		number("destination.port", uint64(d.Port))
		add("network.transport", d.Protocol)
		if ip, err := netip.ParseAddr(d.Address); err == nil && d.Name == "" {
			add("network.type", map[bool]string{true: "ipv4", false: "ipv6"}[ip.Is4()])
		}
	}
	add("weir.question", e.Question)
	add("weir.hook", e.Hook)
	add("weir.mode", e.Mode)
	if v := e.Verdict; v != nil {
		add("weir.decision", v.Decision)
		add("weir.reason", v.Reason)
		add("weir.by", bounded(v.By))
		add("weir.class", v.Class)
		add("weir.tool", bounded(v.Tool))
		add("weir.rule", bounded(v.Rule))
	}
	if u := e.Use; u != nil && (e.Verdict == nil || e.Verdict.Tool == "") {
		add("weir.tool", bounded(u.Tool))
	}
	if t := e.Change; t != nil {
		add("weir.taint.set", strings.Join(t.Set, ","))
		add("weir.taint.cleared", strings.Join(t.Cleared, ","))
		add("weir.taint.source", t.Source)
	}
	if g := e.Grant; g != nil {
		number("weir.grant", g.ID)
		add("weir.grant.state", g.State)
	}
	if a := e.Approval; a != nil {
		add("weir.approval", a.ID)
		add("weir.approval.end", string(a.End))
	}
	if l := e.Loss; l != nil {
		add("weir.lost.stage", l.Stage)
		add("weir.lost.what", l.What)
		number("weir.lost.count", l.Count)
	}
	if f := e.Finding; f != nil {
		add("weir.finding", f.ID)
		add("weir.finding.severity", f.Severity)
	}
	return all
}

// bounded keeps the start of what is too long to be filed by.
func bounded(s string) string {
	if len(s) <= printedArgv {
		return s
	}
	return strings.ToValidUTF8(s[:printedArgv], "") + "…"
}
