// Package model is what Weir's rules say of taint, questions, approvals and modes, in the plainest form: written from the specification and
// from docs/approvals.md and docs/policy.md, and not from the code that it is compared with. Ids such as G16 are those of requirements.
package model

import (
	"slices"
	"time"
)

// Bits of taint (G1).
type Bits uint8

// The two bits.
const (
	Corruption Bits = 1
	Secret     Bits = 2
)

// Mode is what is in force for all containers.
type Mode string

// The modes.
const (
	Observe Mode = "observe"
	Enforce Mode = "enforce"
	Seal    Mode = "seal"
)

// Class is what a command is by its text (G5, G6, G8).
type Class uint8

// The classes.
const (
	Local Class = iota
	Network
	Grey
)

// Opinion is what the reviewer says of all that it is asked.
type Opinion uint8

// The opinions.
const (
	Failed Opinion = iota
	Passed
	Flagged
)

// Process is one process of a container. No two are equal.
type Process struct {
	Name    string
	Program string // its file and user
	Command string // its name and arguments
	Class   Class
	Above   []*Process // its parents that an approval can let out, nearest first (F02)
	Dead    bool
}

// chain is whom an approval of what p asks can let out.
func (p *Process) chain() []*Process { return append([]*Process{p}, p.Above...) }

// Who an approval that goes on is for.
type Who string

// Those that there are.
const (
	ForProcess   Who = "process"
	ForProgram   Who = "program"
	ForContainer Who = "container"
)

// State of a question.
type State string

// The states.
const (
	Pending  State = "pending"
	Approved State = "approved"
	Denied   State = "denied"
	Expired  State = "expired"
	Used     State = "used"
)

// Verdict is what an ask gets. The zero Verdict is none: it waits.
type Verdict struct {
	Allow  bool
	Reason string
	About  *Question // whose answer it is
	By     *Lasting  // or the approval that goes on
	Bytes  int64     // that it opens of that, or of a command that was let run
	Root   *Process  // who is let out with all that it starts; nil: who asked
}

func allow(reason string) Verdict { return Verdict{Allow: true, Reason: reason} }
func deny(reason string) Verdict  { return Verdict{Reason: reason} }

// Kind of what is asked.
type Kind uint8

// The kinds.
const (
	Connect Kind = iota // Process wants to reach To
	Run                 // Process was seen to begin
	Command             // the agent's hook asks whether Text may run
	Tool                // a call of a tool that a person confirms (K11)
)

// Ask is one thing that a container wants.
type Ask struct {
	Kind      Kind
	Container *Container
	Process   *Process
	To        string // with Connect: where
	Text      string // with Command and Tool
	Class     Class  // of Text
	Names     string // where the text, or the process's own command, says that it goes; empty: nowhere
	Held      bool   // it waits in the kernel
	NoLog     bool   // the event log cannot be written
	NoDisk    bool   // questions cannot be stored

	q       *Question // that it waits for
	taint   Bits      // that it was asked with
	life    int       // of the container
	Verdict Verdict   // once it has one
}

// Waits says whether it has no verdict yet.
func (a *Ask) Waits() bool { return a.q != nil }

// Question is what a person is asked.
type Question struct {
	ask     Ask // the first
	State   State
	Taint   Bits
	asking  []*Process // who asked it
	waiting []*Ask
	until   time.Duration // of its state
	claimed *Process
	scope   int
	over    bool      // it leads to no verdict any more
	disk    *Question // as it is stored
}

// Lasting is an approval that goes on.
type Lasting struct {
	q         *Question // that it answered
	container *Container
	life      int
	who       Who
	root      *Process // with ForProcess
	program   string   // with ForProgram
	to        string
	Taint     Bits
	keeps     bool
	until     time.Duration // 0: the container's end
	bytes     int64
	Left      int64
	each      int64
	disk      *Lasting // as it is stored
}

// let is a command that was let run before it began (G26).
type let struct {
	container *Container
	taint     Bits
	text      string
	names     string
	until     time.Duration
	root      *Process // once it runs
	drawn     int64    // none of it comes back here
}

// Container is a guarded one.
type Container struct {
	Name string
	Bits Bits // in force
	told Bits // those of them that the daemon knows
	life int  // it has been made anew
	full time.Duration
}

// World is all that the rules speak of.
type World struct {
	Now        time.Duration
	Mode       Mode
	Approver   bool
	Opinion    Opinion
	AskFlagged bool // cop.flagged: a person is asked about what is flagged with one bit
	AskFor     time.Duration
	ClaimFor   time.Duration
	Most       int // questions that wait at once
	Grant      int64

	Containers []*Container
	Questions  []*Question // all, in the order of asking
	Lasting    []*Lasting  // in force
	passed     []*let
	running    []*let
}

// stored notes what a restart finds.
func (q *Question) stored() {
	c := *q
	c.asking, c.waiting, c.disk = slices.Clone(q.asking), nil, nil
	q.disk = &c
}

func (l *Lasting) stored() {
	c := *l
	l.disk = &c
}

// Advance lets time pass.
func (w *World) Advance(d time.Duration) {
	w.Now += d
	w.sweep()
}

// sweep ends what is over: a question that nobody answered is denied, an approval that nobody used counts no more (G15, G16).
func (w *World) sweep() {
	for _, q := range w.Questions {
		if q.over || w.Now < q.until {
			continue
		}
		switch q.State {
		case Pending:
			w.end(q, Expired, "timeout")
		case Approved:
			q.State, q.over = Expired, true
			q.stored()
		default:
			q.over = true
		}
	}
	w.Lasting = slices.DeleteFunc(w.Lasting, func(l *Lasting) bool { return l.until != 0 && w.Now >= l.until })
}

// Taint sets bits (G1). told: the daemon hears of it, at once or later; else only the kernel has them yet. New taint ends approvals that go on,
// unless they were given for it.
func (w *World) Taint(c *Container, bits Bits, told bool) {
	c.Bits |= bits
	if !told {
		return
	}
	fresh := bits &^ c.told
	c.told |= bits
	if fresh != 0 {
		w.Lasting = slices.DeleteFunc(w.Lasting, func(l *Lasting) bool { return l.container == c && !l.keeps && fresh&^l.Taint != 0 })
	}
}

// Told are the bits that the daemon knows.
func (c *Container) Told() Bits { return c.told }

// Heard is the daemon when it hears of bits that the kernel had set: what was cleared since then stays so.
func (w *World) Heard(c *Container, bits Bits) { w.Taint(c, bits&c.Bits, true) }

// Untaint clears bits. What was asked, approved or let run before was not for what sets them anew; and what waits in the kernel needs no answer
// where none is left.
func (w *World) Untaint(c *Container, bits Bits) {
	c.Bits &^= bits
	c.told &^= bits
	w.forget(c, bits)
	if c.Bits == 0 {
		for _, q := range w.pending() {
			if q.ask.Container == c && q.ask.Kind == Connect {
				w.end(q, Denied, "cancelled")
			}
		}
	}
}

// ForgetTaint is what clearing does before it has taken place: it counts also where that fails.
func (w *World) ForgetTaint(c *Container, bits Bits) { w.forget(c, bits) }

func (w *World) forget(c *Container, bits Bits) {
	for _, q := range w.Questions {
		if !q.over && q.ask.Container == c && q.Taint&bits != 0 {
			q.Taint &^= bits
			q.stored()
		}
	}
	for _, l := range w.Lasting {
		if l.container == c && l.Taint&bits != 0 {
			l.Taint &^= bits
			l.stored()
		}
	}
	for _, p := range slices.Concat(w.passed, w.running) {
		if p.container == c {
			p.taint &^= bits
		}
	}
}

// SetMode puts a mode in force. Calls that wait in the kernel are judged anew; seal asks nobody, and observe needs no answers.
func (w *World) SetMode(m Mode) {
	w.Mode = m
	for _, q := range w.pending() {
		for _, a := range slices.Clone(q.waiting) {
			if a.Kind == Connect {
				w.Leave(a)
			}
		}
	}
	for _, q := range w.pending() {
		switch {
		case m == Seal:
			w.end(q, Denied, "sealed")
		case m == Observe && q.ask.Kind == Connect:
			w.end(q, Denied, "cancelled")
		}
	}
}

// SetApprover says whether there is somebody to ask.
func (w *World) SetApprover(is bool) {
	w.Approver = is
	if is {
		return
	}
	for _, q := range w.pending() {
		w.end(q, Denied, "no_approver")
	}
}

func (w *World) pending() (all []*Question) {
	for _, q := range w.Questions {
		if q.State == Pending && !q.over {
			all = append(all, q)
		}
	}
	return all
}

// Pending are the questions that wait.
func (w *World) Pending() []*Question { return w.pending() }

// Decide gives the ask its verdict, or has it wait.
func (w *World) Decide(a *Ask) {
	w.sweep()
	a.taint, a.life = a.Container.Bits, a.Container.life
	v := w.decide(a)
	a.NoLog, a.NoDisk = false, false // they may take what comes later
	if !a.Waits() {
		a.Verdict = v
	}
}

func (w *World) decide(a *Ask) Verdict {
	if a.Kind == Tool { // whatever taint there is, and no reviewer answers in a person's place
		if w.Mode == Seal {
			return w.refuse(a, "sealed")
		}
		return w.person(a)
	}
	switch {
	case w.Mode == Seal && a.Kind == Connect: // nothing leaves, tainted or not
		return w.refuse(a, "sealed")
	case a.taint == 0: // G4
		return allow("untainted")
	case w.Mode == Observe:
		if a.NoLog && a.Kind == Connect {
			return deny("log_failed")
		}
		return allow("observe")
	case a.Kind == Run: // it opens nothing (G25), but it may be one that was let run (G26)
		if w.Mode == Enforce && w.begins(a) {
			return allow("recognised")
		}
		if a.Process.Class == Local {
			return allow("local")
		}
		return allow("sealed_run")
	case a.Kind == Command && a.Class == Local: // G5
		return allow("local")
	case w.Mode == Seal:
		return w.refuse(a, "sealed")
	}
	if a.Kind == Connect {
		if k := w.recognised(a); k != nil {
			v := w.logged(a, allow("recognised"))
			if v.Allow {
				v.Bytes = w.share(k)
				k.drawn += v.Bytes
			}
			return v
		}
		if v := w.lasts(a); v.Allow {
			return v
		}
	} else if w.awaited(a) {
		return w.logged(a, allow("sealed_run"))
	}
	class := a.Class
	if a.Kind == Connect {
		class = a.Process.Class
	}
	asks := a.taint == Corruption|Secret && class == Network // G7
	if !asks && w.find(a, func(*Question) bool { return true }) == nil {
		switch {
		case w.Opinion == Failed: // G9
		case w.Opinion == Passed: // G7, G8
			v := w.logged(a, allow("not_flagged"))
			if v.Allow && a.Kind == Command {
				w.passed = append(w.passed, &let{container: a.Container, taint: a.taint, text: a.Text, names: a.Names, until: w.Now + w.ClaimFor})
			}
			return v
		case a.taint != Corruption|Secret && !w.AskFlagged:
			return w.refuse(a, "flagged")
		}
	}
	return w.person(a)
}

// logged is a verdict that counts only where it can be written (G9).
func (w *World) logged(a *Ask, v Verdict) Verdict {
	if a.NoLog {
		return deny("log_failed")
	}
	return v
}

func (w *World) refuse(a *Ask, reason string) Verdict { return w.logged(a, deny(reason)) }

// find finds a question about the very same: container, command and destination (G16).
func (w *World) find(a *Ask, which func(*Question) bool) *Question {
	for _, q := range w.Questions {
		if !q.over && q.is(a) && which(q) {
			return q
		}
	}
	return nil
}

func (q *Question) is(a *Ask) bool {
	o := &q.ask
	if o.Kind != a.Kind || o.Container != a.Container {
		return false
	}
	if a.Kind == Connect {
		return o.To == a.To && o.Process.Program == a.Process.Program && o.Process.Command == a.Process.Command
	}
	return o.Text == a.Text
}

// person asks one (G15).
func (w *World) person(a *Ask) Verdict {
	if !w.Approver {
		return w.refuse(a, "no_approver")
	}
	if q := w.find(a, func(q *Question) bool { return q.State == Denied && slices.Contains(q.asking, a.Process) }); q != nil {
		v := w.refuse(a, "denied")
		v.About = q
		return v
	}
	within := func(q *Question) bool { return a.taint&^q.Taint == 0 }
	if q := w.find(a, func(q *Question) bool {
		return q.State == Approved && (q.claimed == nil || q.claimed == a.Process) && within(q)
	}); q != nil {
		switch {
		case a.NoLog:
			return deny("log_failed")
		case q.claimed == nil && a.NoDisk:
			return w.refuse(a, "store_failed")
		case q.claimed == nil:
			q.claimed = a.Process
			q.stored()
		}
		return q.approval(a)
	}
	if q := w.find(a, func(q *Question) bool { return q.State == Pending && within(q) }); q != nil {
		if !slices.Contains(q.asking, a.Process) {
			if a.NoLog {
				return deny("log_failed")
			}
			q.asking = append(q.asking, a.Process)
		}
		a.q = q
		q.waiting = append(q.waiting, a)
		return Verdict{}
	}
	return w.open(a)
}

// What one container may ask (docs/limits.md): a quarter of all questions, 64 in a row, then one in two seconds.
const (
	burst  = 64
	refill = 2 * time.Second
)

func (w *World) open(a *Ask) Verdict {
	own := 0
	for _, q := range w.pending() {
		if q.ask.Container == a.Container {
			own++
		}
	}
	c := a.Container
	c.full = max(c.full, w.Now)
	switch {
	case own >= max(w.Most/4, 1):
		return w.refuse(a, "flood")
	case len(w.pending()) >= w.Most:
		return w.refuse(a, "queue_full")
	case c.full-w.Now > (burst-1)*refill:
		return w.refuse(a, "flood")
	}
	c.full += refill
	switch {
	case a.NoDisk:
		return w.refuse(a, "store_failed")
	case a.NoLog:
		return deny("log_failed")
	}
	q := &Question{ask: *a, State: Pending, Taint: a.taint, asking: []*Process{a.Process}, until: w.Now + w.AskFor}
	q.stored()
	w.Questions = append(w.Questions, q)
	a.q = q
	q.waiting = []*Ask{a}
	return Verdict{}
}

// approval is q's as a has it: a wider scope counts for who descends from the process that was chosen (F01).
func (q *Question) approval(a *Ask) Verdict {
	v := Verdict{Allow: true, Reason: "approved", About: q}
	if q.scope > 1 {
		if root := q.ask.Process.chain()[q.scope-1]; slices.Contains(a.Process.chain(), root) {
			v.Root = root
		}
	}
	return v
}

// Gone says whether somebody waited, and nobody does.
func (q *Question) Gone() bool {
	if q.ask.Kind != Connect {
		return len(q.waiting) == 0
	}
	return q.ask.Held && !slices.ContainsFunc(q.waiting, func(a *Ask) bool { return a.Held })
}

// Askers is how many processes have asked it.
func (q *Question) Askers() int { return len(q.asking) }

// end gives a pending question its end. Of those who wait one has an approval; the others are asked about again.
func (w *World) end(q *Question, s State, reason string) {
	q.State, q.until = s, w.Now+w.ClaimFor
	var taker *Ask
	if s == Approved {
		for _, a := range q.waiting {
			if taker == nil || a.Held && !taker.Held {
				taker = a
			}
		}
		if taker != nil {
			q.claimed = taker.Process
		}
	}
	for _, a := range q.waiting {
		v := deny(reason)
		v.About = q
		if s == Approved {
			if v.Reason = "used_once"; a.Process == taker.Process {
				v = q.approval(a)
			}
		}
		a.q, a.Verdict = nil, v
	}
	q.waiting = nil
	q.over = reason != "denied" && reason != "" // only a person's word outlives the question
	q.stored()
}

// Leave is an asker who does not wait any more: the question stays (G15).
func (w *World) Leave(a *Ask) {
	q := a.q
	if q == nil {
		return
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(o *Ask) bool { return o == a })
	a.q, a.Verdict = nil, Verdict{Reason: "cancelled", About: q}
}

// Reply is a person's.
type Reply struct {
	Allow bool
	Scope int // 0: the first
	// For how long the approval goes on; 0: once. Session: as long as the container.
	For     time.Duration
	Session bool
	Who     Who
	Bytes   int64 // 0: as the policy says
	Keeps   bool  // new taint does not end it
	NoDisk  bool
	NoLog   bool
}

// Answer says whether the reply counts. An answer that comes late, or twice, does not (G15, G16).
func (w *World) Answer(q *Question, r Reply) bool {
	w.sweep()
	if q.State != Pending || q.over {
		return false
	}
	chain := q.ask.Process.chain()
	if q.ask.Kind != Connect {
		chain = nil
	}
	if r.For != 0 || r.Session {
		return w.last(q, r, chain)
	}
	if r.Scope != 0 && (!r.Allow || r.Scope < 0 || r.Scope > len(chain)) {
		return false
	}
	disk := q.disk
	switch {
	case r.NoLog: // an error never allows (G9)
		w.end(q, Denied, "log_failed")
	case r.Allow && r.NoDisk:
		w.end(q, Denied, "store_failed")
	case r.Allow:
		q.scope = max(r.Scope, 1)
		w.end(q, Approved, "")
	default:
		w.end(q, Denied, "denied")
	}
	if r.NoDisk {
		q.disk = disk
	}
	return !r.NoLog && !r.NoDisk
}

// last gives an approval that goes on.
func (w *World) last(q *Question, r Reply, chain []*Process) bool {
	l := &Lasting{
		q: q, container: q.ask.Container, life: q.ask.life, who: r.Who, to: q.ask.To, Taint: q.Taint, keeps: r.Keeps, bytes: r.Bytes, each: w.Grant, program: q.ask.Process.Program,
	}
	switch {
	case !r.Allow, q.ask.Kind != Connect:
		return false
	case r.Who == ForProcess:
		scope := max(r.Scope, 1)
		if scope > len(chain) || scope == 1 && (!q.ask.Held || q.Gone()) {
			return false
		}
		l.root = chain[scope-1]
		if l.bytes == 0 {
			l.bytes = w.Grant
		}
	case r.Scope != 0:
		return false
	case l.bytes == 0:
		l.bytes = 4 * w.Grant
	}
	if r.NoLog || r.NoDisk {
		return false
	}
	if !r.Session {
		l.until = w.Now + r.For
	}
	l.Left = l.bytes
	l.stored()
	w.Lasting = append(w.Lasting, l)
	for _, o := range w.pending() { // whoever waits for what it covers goes on at once
		first := o.ask
		first.taint = o.Taint
		if o != q && !l.covers(&first) {
			continue
		}
		o.State, o.over = Used, true
		for _, a := range o.waiting {
			a.taint = a.taint & o.Taint // what was cleared meanwhile is no taint of it
			v := w.draw(l, a)
			if !v.Allow {
				v = Verdict{Reason: "used_once", About: o}
			}
			a.q, a.Verdict = nil, v
		}
		o.waiting = nil
		o.stored()
	}
	return true
}

// Question is what it answered.
func (l *Lasting) Question() *Question { return l.q }

// Keeps says whether new taint does not end it.
func (l *Lasting) Keeps() bool { return l.keeps }

// covers says whether a is what the person said yes to.
func (l *Lasting) covers(a *Ask) bool {
	if a.Kind != Connect || a.Container != l.container || a.life != l.life || a.To != l.to || l.Left <= 0 || !l.keeps && a.taint&^l.Taint != 0 {
		return false
	}
	switch l.who {
	case ForProcess:
		return slices.Contains(a.Process.chain(), l.root) && (a.Process != l.root || a.Held)
	case ForProgram:
		return a.Process.Program == l.program
	}
	return true
}

// draw takes from l what one grant may have.
func (w *World) draw(l *Lasting, a *Ask) Verdict {
	if !l.covers(a) || a.NoLog || a.NoDisk {
		return Verdict{}
	}
	v := Verdict{Allow: true, Reason: "standing", By: l, Bytes: min(l.each, l.Left)}
	if l.root != nil && l.root != a.Process {
		v.Root = l.root
	}
	l.Left -= v.Bytes
	l.stored()
	return v
}

// lasts is the verdict of an approval that goes on, before any reviewer or person is asked; not for who was told no.
func (w *World) lasts(a *Ask) Verdict {
	if !w.Approver || w.find(a, func(q *Question) bool { return q.State == Denied && slices.Contains(q.asking, a.Process) }) != nil {
		return Verdict{}
	}
	for _, l := range w.Lasting {
		if v := w.draw(l, a); v.Allow {
			return v
		}
	}
	return Verdict{}
}

// awaited says whether a command names only where an approval that goes on, for a program or the container, lets it get: it runs, and each
// connection is judged when it is made.
func (w *World) awaited(a *Ask) bool {
	if !w.Approver || a.Names == "" || w.find(a, func(q *Question) bool { return q.State == Denied }) != nil {
		return false
	}
	return slices.ContainsFunc(w.Lasting, func(l *Lasting) bool {
		return l.container == a.Container && l.life == a.life && l.who != ForProcess && l.to == a.Names && l.Left > 0 && (l.keeps || a.taint&^l.Taint == 0)
	})
}

// Return gives back what a grant did not use.
func (w *World) Return(l *Lasting, n int64) {
	w.sweep()
	if slices.Contains(w.Lasting, l) {
		l.Left = min(l.Left+n, l.bytes)
		l.stored()
	}
}

// Tend ends the approvals whose process or container has ended, and those of containers with taint that they were not given for.
func (w *World) Tend() {
	w.sweep()
	w.Lasting = slices.DeleteFunc(w.Lasting, func(l *Lasting) bool {
		c := l.container
		return l.life != c.life || l.root != nil && l.root.Dead || !l.keeps && c.told&^l.Taint != 0
	})
}

// Revoke ends an approval that goes on.
func (w *World) Revoke(l *Lasting) bool {
	w.sweep()
	was := len(w.Lasting)
	w.Lasting = slices.DeleteFunc(w.Lasting, func(o *Lasting) bool { return o == l })
	return len(w.Lasting) < was
}

// Consume says whether the approval is the caller's: once (G16).
func (w *World) Consume(q *Question) bool {
	w.sweep()
	if q.State != Approved || q.over {
		return false
	}
	q.State, q.over = Used, true
	q.stored()
	return true
}

// Release gives an approval back that was not used.
func (w *World) Release(q *Question) bool {
	w.sweep()
	if q.State != Approved || q.over {
		return false
	}
	q.claimed = nil
	q.stored()
	return true
}

// begins says whether a process is one that was let run, which counts once.
func (w *World) begins(a *Ask) bool {
	w.tidy()
	if k := w.runs(a); k != nil && k.text == a.Process.Command {
		return true
	}
	for i, p := range w.passed {
		if p.container == a.Container && p.text == a.Process.Command && a.taint&^p.taint == 0 {
			w.passed = slices.Delete(w.passed, i, i+1)
			p.until, p.root = w.Now+w.ClaimFor, a.Process
			w.running = append(w.running, p)
			return true
		}
	}
	q := w.firstLet(a)
	if q == nil || a.NoDisk {
		return false
	}
	q.State, q.over = Used, true
	q.stored()
	w.running = append(w.running, &let{a.Container, q.Taint, q.ask.Text, q.ask.Names, w.Now + w.ClaimFor, a.Process, 0})
	return true
}

// firstLet is a command that a person let run.
func (w *World) firstLet(a *Ask) *Question {
	for _, q := range w.Questions {
		if !q.over && q.State == Approved && q.ask.Kind == Command && q.ask.Container == a.Container && q.ask.Text == a.Process.Command && a.taint&^q.Taint == 0 {
			return q
		}
	}
	return nil
}

// recognised is the command that was let run which a process belongs to that goes where that said (G26), and has bytes left (B159).
func (w *World) recognised(a *Ask) *let {
	w.tidy()
	k := w.runs(a)
	if k != nil && k.text == a.Process.Command && k.names != "" && k.names == a.To && w.share(k) > w.Grant/1024 {
		return k
	}
	return nil
}

// share is what the next connection of a command that was let run may send: half of what the command has left, at most one grant.
func (w *World) share(k *let) int64 {
	left := 4*w.Grant - k.drawn
	return min(w.Grant, left-left/2)
}

func (w *World) runs(a *Ask) *let {
	for _, k := range slices.Backward(w.running) {
		if k.container == a.Container && k.root == a.Process && a.taint&^k.taint == 0 {
			return k
		}
	}
	return nil
}

func (w *World) tidy() {
	over := func(p *let) bool { return w.Now >= p.until }
	w.passed, w.running = slices.DeleteFunc(w.passed, over), slices.DeleteFunc(w.running, over)
}

// Remake is a container that ends and is made anew under its name: its taint stays (G1), what went on for it does not.
func (w *World) Remake(c *Container) {
	c.life++
	c.told = c.Bits
}

// Restart is a daemon that is killed, and the next one: what was stored counts, and nobody's answer is lost (G1, G15). What a reviewer let run
// is asked about again. reboot: no process lives, and no approval goes on.
func (w *World) Restart(reboot bool) {
	for _, q := range w.Questions {
		for _, a := range q.waiting {
			a.q, a.Verdict = nil, Verdict{Reason: "cancelled", About: q}
		}
		disk := *q.disk
		disk.disk, disk.asking = q.disk, slices.Clone(q.disk.asking)
		*q = disk
	}
	if reboot {
		w.Lasting = nil
	}
	for _, l := range w.Lasting {
		disk := *l.disk
		disk.disk = l.disk
		*l = disk
	}
	w.passed, w.running = nil, nil
	for _, c := range w.Containers {
		c.told, c.full = c.Bits, 0
		if reboot {
			c.life++
		}
	}
	w.Tend()
	w.SetApprover(w.Approver)
	w.SetMode(w.Mode)
}
