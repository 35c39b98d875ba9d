package event

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds of what Print shows of a command line, in bytes.
const (
	printedArg  = 160
	printedArgv = 480
)

// Print writes e as one line for people: time (UTC), kind, container, program,
// destination and verdict. All text is through Visible, and what a container
// chose is quoted as a shell would need it, so that it cannot pose as another
// part of the line. It returns the error of the write.
func Print(w io.Writer, e Event) error {
	_, err := io.WriteString(w, line(e)+"\n")
	return err
}

func line(e Event) string { return e.Time.UTC().Format("2006-01-02T15:04:05.000Z") + " " + Text(e) }

// Text is what Print writes, without the time.
func Text(e Event) string {
	parts := []string{fmt.Sprintf("%-7s", Visible(string(e.Kind)))}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	some := func(format, text string, as func(string) string) {
		if text != "" {
			add(format, as(text))
		}
	}
	if c := e.Container; c != nil {
		add("%s", containerName(c))
	}
	if e.Process != nil {
		add("%s", process(e.Process))
	}
	some("asks to run %s", e.Command, quote)
	if u := e.Use; u != nil {
		add("calls %s", Visible(u.Tool))
		for _, word := range []string{u.Method, u.Host + u.Path, u.Store, u.Key, u.Scheme, u.Header} {
			some("%s", word, quote)
		}
		if u.Status != 0 {
			add("status %d, %d bytes", u.Status, u.Bytes)
		}
		some("failed: %s", u.Failure, Visible)
	}
	if e.Destination != nil {
		add("-> %s", e.Destination)
	}
	some("%s", e.Hook, Visible)
	if e.Question != "" && e.Verdict != nil {
		add("question %s", quote(e.Question))
	}
	if v := e.Verdict; v != nil {
		add("= %s (%s)", Visible(v.Decision), Visible(v.Reason))
		some("after %s", v.Failed, Visible)
		some("by %s", v.By, quote)
		if v.From != nil {
			add("(%s)", v.From)
		}
		if v.Process != nil {
			add("for %s and everything it starts", member(v.Process))
		}
		some("- %s", v.Text, Visible)
	}
	if f := e.Finding; f != nil {
		refused := ""
		if f.Refused {
			refused = ", refused"
		}
		add("%s (%s%s): %s", Visible(f.ID), Visible(f.Severity), refused, Visible(f.Text))
	}
	if e.Question != "" && e.Verdict == nil {
		id := quote(e.Question)
		add("? weir approve %s, weir deny %s", id, id)
	}
	if e.Grant != nil {
		add("%s", grant(e.Grant))
	}
	if a := e.Approval; a != nil {
		add("%s", approval(a))
	}
	if e.Change != nil {
		add("%s", change(e.Change))
	}
	if l := e.Loss; l != nil {
		add("%d %s events lost, stage %s", l.Count, Visible(l.What), Visible(l.Stage))
	}
	if e.Kind == Mode {
		add("%s", Visible(e.Mode))
	} else if e.Mode != "" && e.Mode != "enforce" {
		add("[%s]", Visible(e.Mode))
	}
	some("- %s", e.Message, Visible)
	return strings.Join(parts, " ")
}

// approval shows one that goes on, or why it is over. What it adds is visible already, and of bounded length here.
func approval(a *ApprovalInfo) string {
	s := "given"
	if a.End != "" {
		s = "over (" + Visible(string(a.End)) + ")"
	}
	s = quote(a.ID) + " " + s
	if a.By != "" {
		s += " by " + quote(a.By)
	}
	s += ": " + cut(a.Adds, printedArgv)
	if a.Why != "" {
		s += " - " + cut(a.Why, printedArg)
	}
	return s
}

func containerName(c *Container) string {
	name := cut(cmp.Or(c.Name, c.ID), printedArg)
	if len(c.Taint) > 0 {
		return name + "[" + Visible(strings.Join(c.Taint, ",")) + "]"
	}
	return name
}

// process shows what runs, and whatever about it should make a person look twice.
func process(p *Process) string {
	var b strings.Builder
	fmt.Fprintf(&b, "pid %d uid %d", p.PID, p.UID)
	if p.Exe != nil {
		b.WriteString(" " + cut(p.Exe.Path, printedArg))
		if p.Exe.Memfd {
			b.WriteString(" (in memory only)")
		}
		if p.Exe.Deleted {
			b.WriteString(" (deleted)")
		}
	}
	switch {
	case len(p.Argv) > 0:
		b.WriteString(": " + Command(p.Argv, printedArg, printedArgv))
	case p.Comm != "":
		b.WriteString(": " + quote(p.Comm))
	}
	b.WriteString(Unsure(p.Truncated, p.Claimed))
	if p.Script != "" {
		fmt.Fprintf(&b, " (script %s run by %s)", cut(p.Script, printedArg), cut(p.Interp, printedArg))
	}
	if len(p.Env) > 0 {
		fmt.Fprintf(&b, " (sets %s)", Command(p.Env, printedArg, printedArgv))
	}
	return b.String()
}

// Command is the whole command line of m on one line, visible; arg and all cut it as Command's.
func (m Member) Command(arg, all int) string {
	if len(m.Argv) == 0 {
		return quote(m.Comm) + " (its arguments are not known)"
	}
	return Command(m.Argv, arg, all) + Unsure(m.Truncated, m.Claimed)
}

// Unsure says after arguments what is wrong with them; empty: nothing.
func Unsure(truncated, claimed bool) string {
	switch {
	case claimed:
		return " (by its own account)"
	case truncated:
		return " (more arguments were not read)"
	}
	return ""
}

func member(m *Member) string {
	return fmt.Sprintf("%s (pid %d)", m.Command(printedArg, printedArgv), m.PID)
}

// Command returns argv as a shell would take it, on one line, for people: what
// Visible escapes stands in $”. Arguments of more than arg bytes and what follows
// more than all bytes are cut, which is said together with how much is missing;
// 0 cuts nothing.
func Command(argv []string, arg, all int) string {
	var b strings.Builder
	for i, a := range argv {
		if all > 0 && b.Len() >= all {
			fmt.Fprintf(&b, " (%d more arguments)", len(argv)-i)
			break
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(cut(a, arg))
	}
	return b.String()
}

// cut quotes s and shows at most most bytes of it: its start and its end, so that
// neither can be pushed out of sight.
func cut(s string, most int) string {
	if most <= 0 || len(s) <= most {
		return quote(s)
	}
	head := strings.ToValidUTF8(s[:most*3/4], "")
	tail := strings.ToValidUTF8(s[len(s)-most/4:], "")
	return fmt.Sprintf("%s(%d bytes)%s", quote(head), len(s)-len(head)-len(tail), quote(tail))
}

// quote writes s as one word of a shell's line, visible.
func quote(s string) string {
	if plainASCII(s) || Visible(s) == s {
		if q, err := syntax.Quote(s, syntax.LangBash); err == nil {
			return q
		}
	}
	var b strings.Builder
	b.WriteString("$'")
	escape(s, func(r rune) {
		if r == '\'' || r == '\\' {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}, func(text string) { b.WriteString(text) })
	b.WriteString("'")
	return b.String()
}

// String is the destination as people write it: 192.0.2.1:443/tcp, or a socket's
// path, harmless for a terminal.
func (d Destination) String() string {
	var s string
	switch {
	case d.Protocol == "unix":
		s = "unix " + cut(d.Address, printedArg)
	case d.Address == "":
		s = "protocol " + Visible(d.Protocol)
	case d.Name != "":
		return net.JoinHostPort(Visible(d.Name), strconv.Itoa(int(d.Port))) + "/" + Visible(d.Protocol)
	case d.Port != 0:
		s = net.JoinHostPort(Visible(d.Address), strconv.Itoa(int(d.Port))) + "/" + Visible(d.Protocol)
	default:
		s = Visible(d.Address) + "/" + Visible(d.Protocol)
	}
	if d.DNS {
		s += " (DNS)"
	}
	return s
}

func grant(g *GrantInfo) string {
	s := fmt.Sprintf("grant %d %s (%s)", g.ID, Visible(g.State), Visible(g.Kind))
	if g.Process != nil {
		s += " for " + member(g.Process)
	}
	for i, d := range g.To {
		if i == 0 {
			s += " to "
		} else {
			s += ", "
		}
		s += d.String()
	}
	if !g.Expires.IsZero() {
		s += " until " + g.Expires.UTC().Format("15:04:05Z")
	}
	if g.Bytes > 0 {
		s += fmt.Sprintf(", %d bytes left", g.Bytes)
	}
	if g.Cgroup != "" {
		s += ", cgroup " + cut(g.Cgroup, printedArg)
	}
	if len(g.PIDs) > 0 {
		s += ", pids " + strings.Trim(fmt.Sprint(g.PIDs), "[]")
	}
	return s
}

func change(c *TaintChange) string {
	var parts []string
	for _, bit := range c.Set {
		parts = append(parts, "+"+Visible(bit))
	}
	for _, bit := range c.Cleared {
		parts = append(parts, "-"+Visible(bit))
	}
	parts = append(parts, "("+Visible(c.Source)+")")
	if c.Volume != "" {
		parts = append(parts, "volume "+quote(c.Volume))
	}
	if c.By != "" {
		parts = append(parts, "by "+quote(c.By))
	}
	if c.Why != "" {
		parts = append(parts, "- "+Visible(c.Why))
	}
	return strings.Join(parts, " ")
}
