package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weir/internal/event"
	"weir/internal/gate"
)

// Question is all that an answer to q depends on, as lines that each begin with a
// name and end with a newline. Every text of the container is quoted and visible,
// so that none can pose as another line (B51). It is the same for q as long as q
// waits, but for whether somebody waits for its answer: times and the number of
// askers are not in it.
func Question(q gate.Question) string {
	state := "refused with EPERM; an approval is for its retry"
	switch {
	case q.Gone && q.Tool:
		state = "nobody waits any more; if you approve, the same call goes through once when it is made again"
	case q.Gone:
		state = "nobody waits any more; if you approve, the same command goes through once when it is run again"
	case q.Held || q.Text != "":
		state = "held: it waits for the answer"
	}
	return About(q) + fmt.Sprintf("%-12s %s\n", "state", state)
}

// Besides is what Question says of q and not of first, which is shown above it; then what it says of first and does not say otherwise of q.
func Besides(q, first gate.Question) string {
	mine, other := strings.SplitAfter(Question(q), "\n"), strings.SplitAfter(Question(first), "\n")
	var b strings.Builder
	rows := map[string]int{} // that have other lines, by their names
	name := func(line string) string { return line[:min(len(line), 13)] }
	for _, line := range mine {
		if !slices.Contains(other, line) {
			b.WriteString(line)
			rows[name(line)]++
		}
	}
	for _, line := range other {
		if slices.Contains(mine, line) {
			continue
		}
		if rows[name(line)]--; rows[name(line)] < 0 {
			fmt.Fprintf(&b, "%-12s %s", "but no", line)
		}
	}
	same := "the same, and also"
	if b.Len() == 0 {
		same = "the same"
	}
	return fmt.Sprintf("%-12s %s: %s\n", "and", event.Visible(q.ID), same) + b.String()
}

// About is Question without the state that q is in as long as it waits.
func About(q gate.Question) string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	c := q.Container
	row("container", "%s, taint %s", word(cmp.Or(c.Name, c.ID)), event.Visible(orNone(c.Taint)))
	if c.Name != "" && c.Name != c.ID {
		row("", "id %s", word(c.ID))
	}
	for _, t := range q.Causes {
		row("tainted", "%s", Cause(t))
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
	if q.Text == "" {
		row("program", "%s", program(p))
		row("command", "%s", Command(p))
	} else { // an agent's hook, as a rule: the command is the one above
		row("asked by", "%s, %s", Command(p), program(p))
	}
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
	row("process", "pid %d, uid %d%s", p.PID, p.UID, ancestry(q))
	if len(q.Chain) > 0 {
		scopes(q, row)
	}
	switch {
	case q.Tool:
		row("destination", "the sensor makes the call; nothing is opened to the container")
		row("covers", "this call, once")
		for _, c := range q.Covers {
			row("", "with %s: %s", Lasting(c), event.Visible(c.Text))
		}
	case q.Text != "":
		row("destination", "not known yet: it is to run, and then to go where its words say")
		row("lets out to", "%s", places(q))
	case q.Destination == event.Destination{}:
		row("destination", "not known yet: it is to go on, sealed")
		row("lets out to", "%s", places(q))
	case q.Destination.DNS:
		row("destination", "DNS question, asked of %s: an approval opens the name servers", event.Destination{
			Address: q.Destination.Address, Port: q.Destination.Port, Protocol: q.Destination.Protocol,
		})
	case q.Destination.Name != "":
		row("destination", "%s, a name that is looked up when it is approved", q.Destination)
	default:
		row("destination", "%s", q.Destination)
	}
	return b.String()
}

// places is where an approved command may connect without another question.
func places(q gate.Question) string {
	all := make([]string, len(q.To))
	for i, p := range q.To {
		port := "any port"
		if p.Port != 0 {
			port = fmt.Sprintf("port %d", p.Port)
		}
		all[i] = word(p.Host) + " " + port
	}
	return cmp.Or(strings.Join(all, ", "), "nothing: each connection is asked about when it is made")
}

// Lasting is how weir approve is told that an approval is to cover c.
func Lasting(c gate.Cover) string {
	if c.Narrow {
		return "--for " + c.For + " --narrow"
	}
	return "--for " + c.For
}

// Cause tells why a container is tainted: which bit, when, what was read, and by which command (F11).
func Cause(c event.Cause) string {
	const most, all = 100, 160 // bytes: the question itself must stay what is read
	s := fmt.Sprintf("%s %s", event.Visible(c.Bit), Time(c.At))
	if c.Why != "" {
		s += ": " + event.Command([]string{c.Why}, most, 0)
	}
	if c.By != "" {
		s += ", by " + event.Command([]string{c.By}, most, 0)
	}
	if len(c.Argv) > 0 {
		s += ", command " + event.Command(c.Argv, most, all)
	}
	if len(c.Above) > 0 {
		s += ", below " + event.Visible(strings.Join(c.Above, " < "))
	}
	s += " (" + event.Visible(c.Source) + ")"
	for _, from := range c.From {
		s += " <- " + event.Visible(from)
	}
	return s
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
	if len(p.Argv) == 0 {
		return "its arguments are not known"
	}
	return event.Command(p.Argv, 0, 0) + event.Unsure(p.Truncated, p.Claimed)
}

// scopes tells whom an approval can let out, and how far it reaches.
func scopes(q gate.Question, row func(name, format string, args ...any)) {
	const self = "this process and what it starts itself"
	if len(q.Chain) == 1 {
		row("covers", self)
		return
	}
	for i, m := range q.Chain {
		file, mark := "", ""
		if m.Exe != "" {
			file = ", " + word(m.Exe)
		}
		if i == 0 {
			mark = ", the default"
		}
		row(fmt.Sprintf("scope %d", i+1), "%s (pid %d%s)%s", m.Command(0, 0), m.PID, file, mark)
	}
	row("covers", "scope 1: "+self)
	long := ""
	if q.GrantSeconds > 0 {
		long = fmt.Sprintf(", for %d s", q.GrantSeconds)
	}
	row("", "a wider one: that process and everything it starts%s, to this destination", long)
}

// Subject is what q, or an approval of it, is about, on one line: the text of a command or of a tool's call, else who would be let out,
// and where to.
func Subject(q gate.Question) string {
	switch {
	case q.Tool:
		return event.Visible(q.Text)
	case q.Text != "":
		return word(q.Text)
	}
	s := Command(q.Process)
	if root := q.Root(); root != nil {
		s = Wider(*root)
	}
	if q.Destination != (event.Destination{}) {
		s += " -> " + q.Destination.String()
	}
	return s
}

// Wider is what a scope above 1 lets out.
func Wider(root event.Member) string {
	return fmt.Sprintf("%s (pid %d) and everything it starts", root.Command(0, 0), root.PID)
}

// ancestry are the asker's parents, but for those that scopes has.
func ancestry(q gate.Question) string {
	above, by := q.Process.Ancestry, "started by"
	if n := len(q.Chain); n > 1 {
		above, by = above[min(n-1, len(above)):], "below"
	}
	var steps []string
	for _, a := range above {
		steps = append(steps, fmt.Sprintf("%s (%d)", word(a.Comm), a.PID))
	}
	if len(steps) == 0 {
		return ""
	}
	return ", " + by + " " + strings.Join(steps, " < ")
}

// Askers is a line about those who asked q, if they are more than one, and one about who has approved it, where two people have to.
func Askers(q gate.Question) (lines string) {
	if q.Askers > 1 {
		others := "others ask"
		if q.Askers == 2 {
			others = "other asks"
		}
		lines = fmt.Sprintf("%-12s %d processes: an approval lets one go on; the %s again\n", "askers", q.Askers, others)
	}
	if len(q.Half) > 0 {
		lines += fmt.Sprintf("%-12s %s; another person has to approve the same\n", "approved by", event.Visible(strings.Join(q.Half, ", ")))
	}
	return lines
}

// Again is what to do to use an approval of q, after how q ended; empty: nothing.
func Again(q gate.Question) string {
	if q.Again() {
		return "; run it again"
	}
	return ""
}

// Outcome tells in words how a question ended, visible.
func Outcome(q gate.Question) string {
	var s, failed string
	if q.Failed != "" {
		failed = ", after " + event.Visible(string(q.Failed))
	}
	switch {
	case q.Outcome == gate.Approved:
		s = "approved"
		switch {
		case q.Standing != "" && q.For == gate.ForSession:
			s += " until the container ends"
		case q.Standing != "":
			s += " for " + event.Visible(q.For)
		case q.For != "":
			s += " for the " + q.For + ", as the rule " + event.Visible(q.Rule) + ","
		}
		if q.Scope > 1 {
			s += fmt.Sprintf(" with scope %d", q.Scope)
		}
	case q.Outcome == gate.Timeout:
		return "denied: nobody answered in time" + failed
	case q.Outcome == gate.Cancelled:
		return "given up: nothing is denied to the container any more"
	case q.By == "":
		return "denied by the sensor (" + event.Visible(cmp.Or(string(q.Outcome), q.State)) + ")" + failed
	default:
		s = "denied"
	}
	s += " by " + event.Visible(q.By)
	if q.Why != "" {
		s += ": " + event.Visible(q.Why)
	}
	return strings.TrimSpace(s)
}
