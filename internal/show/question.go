package show

import (
	"cmp"
	"fmt"
	"strings"

	"weir/internal/event"
	"weir/internal/gate/question"
	"weir/internal/gate/verdict"
)

// Question is all that an answer to q depends on, as lines that each begin with a
// name and end with a newline. Every text of the container is quoted and visible,
// so that none can pose as another line (B51). It is the same for q as long as q
// waits: times and the number of askers are not in it.
func Question(q question.Question) string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	held := "refused with EPERM; an approval is for its retry"
	if q.Held || q.Text != "" {
		held = "held: it waits for the answer"
	}
	c := q.Container
	row("container", "%s, taint %s", word(cmp.Or(c.Name, c.ID)), event.Visible(orNone(c.Taint)))
	if c.Name != "" && c.Name != c.ID {
		row("", "id %s", word(c.ID))
	}
	p := q.Process
	switch {
	case q.Tool:
		row("asks to call", "%s", event.Visible(q.Text))
	case q.Text != "":
		row("asks to run", "%s", word(q.Text))
	}
	if q.Note != "" {
		row("why asked", "%s", word(q.Note))
	}
	row("program", "%s", program(p))
	row("command", "%s", Command(p))
	if p.Script != "" {
		row("script", "%s, run by %s", word(p.Script), word(p.Interp))
	}
	if len(p.Env) > 0 || p.EnvCut {
		more := ""
		if p.EnvCut {
			more = " (its environment was not read to the end)"
		}
		row("environment", "sets %s%s", event.Command(p.Env, 0, 0), more)
	}
	row("process", "pid %d, uid %d%s", p.PID, p.UID, ancestry(p))
	switch {
	case q.Tool:
		row("destination", "the sensor makes the call; nothing is opened to the container")
	case q.Text != "":
		row("destination", "not known yet: it is to run, and then to go where its words say")
	case q.Destination == event.Destination{}:
		row("destination", "not known yet: it is to go on, sealed")
	case q.Destination.DNS:
		row("destination", "DNS question, asked of %s: an approval opens the name servers", event.Destination{
			Address: q.Destination.Address, Port: q.Destination.Port, Protocol: q.Destination.Protocol,
		})
	case q.Destination.Name != "":
		row("destination", "%s, a name that is looked up when it is approved", q.Destination)
	default:
		row("destination", "%s", q.Destination)
	}
	row("state", "%s", held)
	return b.String()
}

func word(s string) string { return event.Command([]string{s}, 0, 0) }

func orNone(list []string) string {
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, ",")
}

func program(p event.Process) string {
	if p.Exe == nil {
		return "unknown; it calls itself " + word(p.Comm)
	}
	s := fmt.Sprintf("%s (device %d, inode %d)", word(p.Exe.Path), p.Exe.Device, p.Exe.Inode)
	if p.Exe.Memfd {
		s += ", in memory only"
	}
	if p.Exe.Deleted {
		s += ", deleted"
	}
	return s
}

// Command is a process's whole command line on one line, visible.
func Command(p event.Process) string {
	s := event.Command(p.Argv, 0, 0)
	switch {
	case len(p.Argv) == 0:
		s = "its arguments are not known"
	case p.Truncated:
		s += " (more arguments were not read)"
	}
	return s
}

func ancestry(p event.Process) string {
	var steps []string
	for _, a := range p.Ancestry {
		steps = append(steps, fmt.Sprintf("%s (%d)", word(a.Comm), a.PID))
	}
	if len(steps) == 0 {
		return ""
	}
	return ", started by " + strings.Join(steps, " < ")
}

// Outcome tells in words how a question ended, visible.
func Outcome(q question.Question) string {
	var s string
	switch {
	case q.Outcome == verdict.Approved:
		s = "approved"
	case q.Outcome == verdict.Timeout:
		return "denied: nobody answered in time"
	case q.By == "":
		return "denied by the sensor (" + event.Visible(cmp.Or(string(q.Outcome), q.State)) + ")"
	default:
		s = "denied"
	}
	s += " by " + event.Visible(q.By)
	if q.Why != "" {
		s += ": " + event.Visible(q.Why)
	}
	return strings.TrimSpace(s)
}
