package gate

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir/internal/classify"
	"weir/internal/cop"
	"weir/internal/event"
)

// How many commands that were allowed, and how many that run, are kept. The oldest of the container that has most are forgotten, and asked
// about again: its own where it has its share (B160).
const (
	maxKept = 1024
	ownKept = maxKept / 4
)

// passed is a command that may run once: a reviewer or a person said so before it
// ran (G26).
type passed struct {
	container event.Container // with more taint, it counts for nothing
	text      string
	to        []classify.Place // where it was let go: what its parts say themselves of these
	form      commandForm
	by        string
	question  string // empty: the reviewer's
	until     time.Time
}

// running is the process that was seen to run it.
type running struct {
	passed
	root  process
	id    string // of what all its processes may send together
	drawn int64  // bytes of it, which grants have
}

// remember keeps a command that a reviewer let run.
func (g *Gate) remember(r Request, v Verdict) {
	if r.Ask == Run {
		g.begin(r, v.By, v.Question)
		return
	}
	f, ok := parseForm(r.Command)
	if !ok {
		return
	}
	p := passed{r.Container, r.Command, judge(r).Facts.To, f, v.By, v.Question, g.clock().Add(g.claimTime())}
	g.mu.Lock()
	defer g.mu.Unlock()
	p.container = g.leftOf(r)
	g.passed = keep(g.passed, p)
}

// begin keeps a command that was let run as it was executed: its process tree may
// go where its words say.
func (g *Gate) begin(r Request, by, question string) {
	p := r.Process
	text, ok := formText(p.Argv)
	if !ok {
		return
	}
	f, ok := parseForm(text)
	if !ok {
		return
	}
	to := judge(Request{Ask: Run, Process: p}).Facts.To // the text alone would trust argv[0]
	k := passed{r.Container, text, to, f, by, question, g.clock().Add(g.claimTime())}
	g.mu.Lock()
	defer g.mu.Unlock()
	k.container = g.leftOf(r)
	g.starts(k, p)
}

func (g *Gate) starts(p passed, root event.Process) {
	g.started++
	g.running = keep(g.running, running{passed: p, root: process{root.PID, root.Start}, id: fmt.Sprintf("run %d", g.started)})
}

func (p passed) of() string { return p.container.ID }

func keep[T interface{ of() string }](list []T, one T) []T {
	has, most := map[string]int{}, one.of()
	for _, o := range list {
		if has[o.of()]++; has[o.of()] > has[most] {
			most = o.of()
		}
	}
	if has[one.of()] >= ownKept {
		most = one.of()
	} else if len(list) < maxKept {
		return append(list, one)
	}
	i := slices.IndexFunc(list, func(o T) bool { return o.of() == most })
	return append(slices.Delete(list, i, i+1), one)
}

// recognise looks whether a command that is seen to run is one that was let run
// before. It takes the permission, which counts once.
func (g *Gate) recognise(r Request) (Verdict, bool) {
	// Without the lock: a container chooses how long it takes to read and compare these.
	k, known := g.runs(r)
	mine := g.allowed(r.Container)
	if !known && len(mine) == 0 {
		return Verdict{}, false
	}
	wrapped, ran, left := wrappedForms(r.Process.Argv), ranOf(r.Process), maxSteps
	if known {
		root := k.root == process{r.Process.PID, r.Process.Start} // which may have executed something else since
		if root && k.begins(ran, wrapped, &left) {
			return k.verdict(), true
		}
		if _, ok := k.covers(r.Process, &left); ok {
			return k.verdict(), true
		}
	}
	for _, p := range mine {
		if p.begins(ran, wrapped, &left) && g.take(p, r.Process) {
			return Yes(Recognised, fmt.Sprintf("it was asked about before it ran, and %s let it", p.by)).From(p.by).About(p.question), true
		}
	}
	return Verdict{}, false
}

// allowed are the commands of a container that were let run and did not begin yet.
func (g *Gate) allowed(c event.Container) []passed {
	var mine []passed
	g.mu.Lock()
	for _, p := range g.passed {
		if p.serves(c) {
			mine = append(mine, p)
		}
	}
	g.mu.Unlock()
	for _, q := range g.approvals() {
		p := passed{container: q.Container, text: q.Text, by: q.By, question: q.ID, until: q.Until}
		if !p.serves(c) {
			continue
		}
		if f, ok := parseForm(q.Text); ok {
			p.form = f
			mine = append(mine, p)
		}
	}
	return mine
}

// take uses up a permission for a process that begins; false when another one had it.
func (g *Gate) take(p passed, by event.Process) bool {
	if p.question != "" {
		q, err := g.consume(p.question)
		if err != nil {
			g.logger.WithError(err).WithField("question", p.question).Error("use an approved command")
			return false
		}
		p.to = q.To
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.question == "" {
		i := slices.IndexFunc(g.passed, func(o passed) bool {
			return o.container.ID == p.container.ID && o.text == p.text && o.until.Equal(p.until)
		})
		if i < 0 {
			return false
		}
		g.passed = slices.Delete(g.passed, i, i+1)
	}
	p.until = g.clock().Add(g.claimTime())
	g.starts(p, by)
	return true
}

// begins says whether an execution is that of the command: the program itself, or a shell that is told to run it.
func (p passed) begins(ran ranCommand, wrapped []commandForm, left *matchSteps) bool {
	return p.form.Is(ran, left) || ran.Shell() && slices.ContainsFunc(wrapped, p.form.Equal)
}

// serves says whether it was said of this container, with all the taint that it has now.
func (p passed) serves(c event.Container) bool {
	return p.container.ID == c.ID && Within(c.Taint, p.container.Taint)
}

// cleared takes bits that are about to be cleared, if of names its container.
func (p *passed) cleared(bits []string, of func(event.Container) bool) {
	if left, some := Without(p.container, bits, of); some {
		p.container.Taint = left
	}
}

// verdict lets out what belongs to a command that was let run.
func (p passed) verdict() Verdict {
	return Yes(Recognised, "part of a command that "+p.by+" let run before").From(p.by).About(p.question)
}

// lets lets a process of a recognised command out, with bytes of those that all of them have together: as many as an approval that goes on
// for a program has, and one grant has no more (B159), nor more than half of what is left: many short connections one after the other come
// faster than what they did not use comes back. The zero Verdict: there are too few left for a connection.
func (g *Gate) lets(k running, r Request) Verdict {
	each := r.GrantBytes
	if k.by == ByCop {
		each = min(each, r.CopBytes)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.runningBy(k.id)
	if now == nil {
		return Verdict{}
	}
	open := Opening{From: k.id, Bytes: min(each, (shares*each-now.drawn+1)/2)}
	if open.Bytes <= each/1024 {
		return Verdict{}
	}
	now.drawn += open.Bytes
	v := k.verdict()
	v.Open = &open
	return v
}

// Return gives back what a grant did not use of what it drew from an approval that goes on, or a recognised command.
func (g *Gate) Return(from string, n int64) {
	g.mu.Lock()
	k := g.runningBy(from)
	if k != nil {
		k.drawn -= min(max(n, 0), k.drawn)
	}
	g.mu.Unlock()
	if k == nil {
		g.queue.Return(from, n)
	}
}

func (g *Gate) runningBy(id string) *running {
	if i := slices.IndexFunc(g.running, func(k running) bool { return k.id == id }); i >= 0 {
		return &g.running[i]
	}
	return nil
}

// forget drops what is over.
func (g *Gate) forget() {
	now := g.clock()
	g.passed = slices.DeleteFunc(g.passed, func(p passed) bool { return !now.Before(p.until) })
	g.running = slices.DeleteFunc(g.running, func(r running) bool { return !now.Before(r.until) })
}

// EndRuns forgets the commands whose first process has ended.
func (g *Gate) EndRuns(alive func(pid int, start uint64) bool) {
	g.mu.Lock()
	all := slices.Clone(g.running)
	g.mu.Unlock()
	over := map[string]bool{} // without the lock, which every verdict needs: it takes long to look
	for _, r := range all {
		over[r.id] = !alive(r.root.PID, r.root.Start)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running = slices.DeleteFunc(g.running, func(r running) bool { return over[r.id] })
}

// runs gives the recognised command that a process belongs to, itself or by an
// ancestor; of several, the one that began last.
func (g *Gate) runs(r Request) (running, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget()
	for _, known := range slices.Backward(g.running) {
		if known.serves(r.Container) && slices.Contains(family(r.Process), known.root) {
			return known, true
		}
	}
	return running{}, false
}

// family are a process and its ancestors, itself first.
func family(p event.Process) []process {
	all := []process{{p.PID, p.Start}}
	for _, a := range p.Ancestry {
		all = append(all, process{a.PID, a.Start})
	}
	return all
}

// covers says whether a process below a recognised command is a part of it, and where that part goes: one of
// its programs with its arguments, something that such a program started, or the
// shell itself where the command opens a connection by itself. Anything else, and
// be it a function of the same name, is not what was approved. The process and its
// ancestors share the steps that are left.
func (k running) covers(p event.Process, left *matchSteps) (to []classify.Place, ok bool) {
	own := ranOf(p)
	if k.form.Has(own, left) {
		return k.goes(own), true
	}
	if own.Shell() {
		return slices.DeleteFunc(slices.Clone(k.to), func(to classify.Place) bool { return !to.Shell }), k.form.Device
	}
	for _, a := range p.Ancestry {
		if part := (ranCommand{File: a.Exe, Argv: a.Argv}); k.form.Has(part, left) {
			return k.goes(part), true
		}
		if (process{a.PID, a.Start}) == k.root {
			break
		}
	}
	return nil, false
}

// goes is where a part of the command goes by its own words, of where the command was let go (B158).
func (k running) goes(part ranCommand) []classify.Place {
	own := classify.Argv(classify.Observed{Argv: part.Argv, File: part.File}).Facts.To
	return slices.DeleteFunc(own, func(to classify.Place) bool { return !slices.Contains(k.to, to) })
}

// says tells whether the destination is one of those that a command names. Names are
// looked up by the host: what the container's resolver says counts for nothing.
func (g *Gate) says(ctx context.Context, places []classify.Place, d event.Destination) bool {
	addr, err := netip.ParseAddr(d.Address)
	if err != nil {
		return false
	}
	for _, to := range places {
		if d.Name != "" {
			if (to.Port == 0 || to.Port == d.Port) && strings.EqualFold(strings.TrimSuffix(to.Host, "."), d.Name) {
				return true
			}
			continue
		}
		literal, err := netip.ParseAddr(to.Host)
		switch {
		case err != nil && d.DNS && !cop.Local(to.Host):
			return true // it has to ask for the name first
		case to.Port != 0 && to.Port != d.Port:
		case err == nil:
			if literal.Unmap() == addr.Unmap() {
				return true
			}
		case slices.ContainsFunc(g.lookUp(ctx, to.Host), func(a netip.Addr) bool { return a.Unmap() == addr.Unmap() }):
			return true
		}
	}
	return false
}

func (g *Gate) lookUp(ctx context.Context, host string) []netip.Addr {
	if g.resolve == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	addrs, err := g.resolve(ctx, host)
	if err != nil {
		g.logger.WithError(err).WithField("host", host).Warn("look up the host of an approved command")
	}
	return addrs
}
