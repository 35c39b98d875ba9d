package gate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"weir/internal/classify"
	"weir/internal/event"
)

// Who a standing approval is for.
const (
	WhoProcess   = "process"   // one of the question's chain, with all that it starts
	WhoProgram   = "program"   // every process of the container that runs the same file as the asker, as the same user
	WhoContainer = "container" // every process of the container
)

// Limits on standing approvals.
const (
	minStanding    = time.Second
	maxStanding    = 24 * time.Hour // of one that is for a time
	maxStandingAll = 1024
	shares         = 4 // how many whole grants one for more than a process has by default
)

// Why a standing approval cannot be had, or is over.
var (
	ErrStanding = errors.New("nothing was answered") // as an end of what is wrong with it
	ErrNoneSuch = errors.New("no such approval; see weir approvals")
)

// StandingApproval is a person's yes that goes on: what it covers is let out without asking again, until it ends.
type StandingApproval struct {
	ID          string            `json:"id"` // of the question that it answered
	Container   event.Container   `json:"container"`
	Who         string            `json:"who"`
	Process     event.Process     `json:"process"`           // the asker: its file, user and environment are those of WhoProgram
	Root        *event.Member     `json:"root,omitempty"`    // with WhoProcess
	Scope       int               `json:"scope,omitempty"`   // with WhoProcess: the place of Root in the question's chain
	Destination event.Destination `json:"destination"`       // with a name, the address says nothing
	For         string            `json:"for"`               // ForSession, or a time
	Until       time.Time         `json:"until,omitzero"`    // UTC; zero: it ends with the container
	Bytes       int64             `json:"bytes"`             // upstream, in all
	Left        int64             `json:"left"`              // that no grant has
	Each        int64             `json:"each,omitempty"`    // that one grant has at most
	Seconds     int               `json:"seconds,omitempty"` // that one grant lasts at most
	Keeps       bool              `json:"keeps,omitempty"`   // new taint does not end it
	Uses        uint64            `json:"uses,omitempty"`    // how many were let out by it
	Adds        string            `json:"adds"`              // what it covers, for people
	By          string            `json:"by"`                // who gave it
	Why         string            `json:"why,omitempty"`     // as given with it
	Given       time.Time         `json:"given"`             // UTC
	From        *event.Origin     `json:"from,omitempty"`    // where the answer came from
}

// standing is an approval as it is stored.
type standing struct {
	StandingApproval
	Boot string        `json:"boot,omitempty"` // in which it was given, and Ends counts; no container outlives it
	Ends time.Duration `json:"ends,omitempty"`

	until time.Time // on the queue's clock; zero: it ends with the container
}

// Lasts says whether s is how long a standing approval can go on.
func Lasts(s string) bool {
	life, err := time.ParseDuration(s)
	return s == ForSession || err == nil && life >= minStanding && life <= maxStanding
}

// StandingBy is the approval that a reply to q would give; its Adds is what a person has to be shown. It is the same for whoever computes it.
func (q Question) StandingBy(r Reply) (StandingApproval, error) {
	s := StandingApproval{
		ID: q.ID, Container: q.Container, Who: cmp.Or(r.Who, WhoProcess), Process: q.Process, Destination: q.Destination, For: r.For, Keeps: r.Keeps,
		By: r.By, Why: r.Why, From: r.From, Each: q.GrantBytes, Seconds: q.GrantSeconds,
	}
	bad := func(format string, args ...any) (StandingApproval, error) {
		return StandingApproval{}, fmt.Errorf(format+": %w", append(args, ErrStanding)...)
	}
	d := q.Destination
	switch {
	case !r.Allow:
		return bad("a denial is for this question alone")
	case q.Text != "" || len(q.Chain) == 0:
		return bad("only a question about a connection can be approved for longer")
	case d.DNS || d.Protocol != "tcp" && d.Protocol != "udp":
		return bad("%s cannot be approved for longer: only TCP and UDP destinations can, and no questions for names", event.Visible(d.String()))
	case q.GrantBytes <= 0 || q.GrantSeconds <= 0:
		return bad("the question does not say what an approval opens: wait until it is asked again")
	case r.Bytes < 0:
		return bad("%d bytes are none", r.Bytes)
	}
	if !Lasts(r.For) {
		return bad("for %q: give session, or a time from 1s to 24h such as 30m", r.For)
	}
	if life, err := time.ParseDuration(r.For); err == nil {
		s.For = span(life)
	}
	switch s.Who {
	case WhoProcess:
		s.Scope = max(r.Scope, 1)
		if s.Scope > len(q.Chain) {
			return bad("no scope %d, the question lists 1 to %d", s.Scope, len(q.Chain))
		}
		root := q.Chain[s.Scope-1]
		if s.Scope == 1 && (!q.Held || q.Gone) {
			return bad("the process that asked does not wait: choose a wider scope, the program or the container")
		}
		s.Root, s.Bytes = &root, cmp.Or(r.Bytes, q.GrantBytes)
	case WhoProgram, WhoContainer:
		if r.Scope != 0 {
			return bad("a scope is one process, and this is for a %s: choose one of them", s.Who)
		}
		if s.Who == WhoProgram && !programKnown(q.Process) {
			return bad("the program cannot be told from others, since its file is gone or only in memory, or its arguments or environment are too long: choose a process or the container")
		}
		s.Bytes = cmp.Or(r.Bytes, shares*q.GrantBytes)
	default:
		return bad("for %q: choose a %s, a %s or a %s", s.Who, WhoProcess, WhoProgram, WhoContainer)
	}
	s.Left, s.Adds = s.Bytes, s.adds()
	return s, nil
}

// programKnown says whether p's file can be told from others, and the kernel saw its variables: /proc tells what the process wrote there.
func programKnown(p event.Process) bool {
	_, inode := exeID(p)
	return inode != 0 && !p.Exe.Memfd && !p.Exe.Deleted && !p.EnvCut && !p.Truncated
}

// adds words what s covers.
func (s StandingApproval) adds() string {
	name := event.Command([]string{cmp.Or(s.Container.Name, s.Container.ID)}, 0, 0)
	var who string
	each := fmt.Sprintf(", at most %s and %d s at a time", size(s.Each), s.Seconds)
	switch s.Who {
	case WhoProcess:
		who, each = fmt.Sprintf("%s (pid %d) and everything it starts", s.Root.Command(0, 0), s.Root.PID), ""
	case WhoProgram:
		env := ""
		if len(s.Process.Env) > 0 {
			env = ", with " + event.Command(s.Process.Env, 0, 0) + " set"
		}
		who = fmt.Sprintf("every process of %s that runs %s (device %d, inode %d) as uid %d%s, with any arguments, and what it starts",
			name, event.Command([]string{s.Process.Exe.Path}, 0, 0), s.Process.Exe.Device, s.Process.Exe.Inode, s.Process.UID, env)
	case WhoContainer:
		who = "every process of " + name
	}
	life, taint := "for "+s.For, "new taint ends it"
	if s.For == ForSession {
		life = "until the container ends"
	}
	if s.Keeps {
		taint = "new taint does not end it"
	}
	return fmt.Sprintf("%s -> %s, %s, %s in all%s; %s", who, event.Visible(s.Destination.String()), life, size(s.Bytes), each, taint)
}

// size is a number of bytes for people, exact.
func size(n int64) string {
	for _, u := range []struct {
		of   int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.of && n%u.of == 0 {
			return fmt.Sprintf("%d %s", n/u.of, u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// span is a time for people, exact to the second.
func span(d time.Duration) string {
	d = d.Truncate(time.Second)
	switch {
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// covers says whether a is what the person said yes to.
func (s *standing) covers(a CheckedRequest) bool {
	if a.Ask != Connect || !s.serves(a.Container) {
		return false
	}
	to, want := a.Destination, s.Destination
	if want.Name != "" {
		to.Address, want.Address = "", "" // the address only stands for the name, and not for long
	}
	if to != want {
		return false
	}
	switch s.Who {
	case WhoProcess:
		if s.Root.PID == a.self.PID && !a.Held {
			return false // another process with the same command could take up what it is let to
		}
		return slices.ContainsFunc(a.chain, func(m event.Member) bool {
			return m.PID == s.Root.PID && m.Start == s.Root.Start && m.Exe == s.Root.Exe && slices.Equal(m.Argv, s.Root.Argv)
		})
	case WhoProgram:
		return programKnown(a.Process) && a.Process.UID == s.Process.UID && a.Process.Exe.Path == s.Process.Exe.Path &&
			a.Process.Exe.Device == s.Process.Exe.Device && a.Process.Exe.Inode == s.Process.Exe.Inode && slices.Equal(a.Process.Env, s.Process.Env)
	}
	return s.Who == WhoContainer
}

// Opening is what a verdict by a standing approval, or on a recognised command, opens, where that differs from the policy's.
type Opening struct {
	From  string        // what has the bytes: give back with Return what was not used
	For   time.Duration // of a standing approval
	Left  time.Duration // of the approval's own time; 0: it has no end by itself
	Bytes int64
}

// standsFor gives the verdict of a standing approval that covers a. Its bytes are taken from the approval, durably: give back with Return what
// was not used. The zero Verdict is none.
func (d *queue) standsFor(a CheckedRequest) Verdict {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || !d.approver || len(d.standing) == 0 {
		return Verdict{}
	}
	d.sweep()
	defer d.schedule()
	if d.match(a, func(q *question) bool { return q.State == StateDenied && q.asked(a.self) }) != nil {
		return Verdict{} // who was told no
	}
	for _, s := range d.standing {
		if v := d.draw(s, a); v.Decision == Allow {
			return v
		}
	}
	return Verdict{}
}

// awaits gives a standing approval for every place where a command says that it goes; empty: it names none, or one that there is none for.
// It takes nothing: that the command may run opens nothing.
func (d *queue) awaits(a CheckedRequest, to []classify.Place) (id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || !d.approver {
		return ""
	}
	d.sweep()
	defer d.schedule()
	if d.match(a, func(q *question) bool { return q.State == StateDenied }) != nil {
		return ""
	}
	for _, t := range to {
		i := slices.IndexFunc(d.standing, func(s *standing) bool {
			return s.Who != WhoProcess && s.serves(a.Container) && (t.Port == 0 || t.Port == s.Destination.Port) && s.at(t.Host)
		})
		if i < 0 {
			return ""
		}
		id = d.standing[i].ID
	}
	return id
}

// at says whether a host that a command names is s's destination.
func (s *standing) at(host string) bool {
	if s.Destination.Name != "" {
		return strings.EqualFold(strings.TrimSuffix(host, "."), s.Destination.Name)
	}
	literal, err := netip.ParseAddr(host)
	return err == nil && literal.Unmap().String() == s.Destination.Address
}

// serves says whether s lets anything out of a container, with all the taint that it has now.
func (s *standing) serves(c event.Container) bool {
	return c.ID == s.Container.ID && c.CgroupID == s.Container.CgroupID && s.Left > 0 && (s.Keeps || Within(c.Taint, s.Container.Taint))
}

// draw lets a out under s, if s covers it.
func (d *queue) draw(s *standing, a CheckedRequest) Verdict {
	if !s.covers(a) {
		return Verdict{}
	}
	open := Opening{From: s.ID, For: time.Duration(s.Seconds) * time.Second, Bytes: min(s.Each, s.Left)}
	if s.Who == WhoProcess {
		open.For = maxStanding
	}
	if !s.until.IsZero() {
		open.Left = s.until.Sub(d.clock())
		open.For = min(open.For, open.Left)
	}
	if open.For <= 0 {
		return Verdict{}
	}
	v := Yes(Standing, s.By+" approved "+s.Adds).From(s.By).About(s.ID)
	v.Open = &open
	if s.Root != nil && s.Root.PID != a.Process.PID {
		v.Scope, v.Root = s.Scope, s.Root
	}
	if err := d.gate.write(event.Verdict, a.Request, v, ""); err != nil {
		return Verdict{} // nothing is allowed that cannot be told
	}
	if err := d.keep(s, func(n *standing) { n.Left -= open.Bytes; n.Uses++ }); err != nil {
		d.gate.logger.WithError(err).WithField("approval", s.ID).Error("store the use of an approval")
		return Verdict{}
	}
	return v
}

// keep changes s, first on disk.
func (d *queue) keep(s *standing, how func(*standing)) error {
	next := *s
	how(&next)
	if next.Left < 0 || next.Left > next.Bytes {
		what := fmt.Sprintf("approval %s would have %d of %d bytes left", s.ID, next.Left, s.Bytes)
		d.opts.Broken("bytes", what)
		return errors.New(what)
	}
	if err := d.store.putStanding(next); err != nil {
		return err
	}
	*s = next
	return nil
}

// Return gives back what a grant by an approval did not use.
func (d *queue) Return(id string, n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.giveBack(id, n)
}

func (d *queue) giveBack(id string, n int64) {
	if s := d.stands(id); s != nil && n > 0 && !d.closed {
		if err := d.keep(s, func(s *standing) { s.Left = min(s.Left+n, s.Bytes) }); err != nil {
			d.gate.logger.WithError(err).WithField("approval", id).Error("store what an approval has left") // less is left, which is safe
		}
	}
}

func (d *queue) stands(id string) *standing {
	if i := slices.IndexFunc(d.standing, func(s *standing) bool { return s.ID == id }); i >= 0 {
		return d.standing[i]
	}
	return nil
}

// Standing lists the approvals that go on, oldest first.
func (d *queue) Standing() []StandingApproval {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweep()
	d.schedule()
	var all []StandingApproval
	for _, s := range d.standing {
		all = append(all, s.StandingApproval)
	}
	return all
}

// InForce says whether a standing approval goes on.
func (d *queue) InForce(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweep()
	defer d.schedule()
	return d.stands(id) != nil
}

// Revoke ends a standing approval, durably.
func (d *queue) Revoke(id, by, why string) (StandingApproval, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweep()
	defer d.schedule()
	s := d.stands(id)
	if s == nil {
		return StandingApproval{}, fmt.Errorf("revoke %q: %w", id, ErrNoneSuch)
	}
	return s.StandingApproval, d.over(s, event.Revoked, by, why)
}

// EndStanding ends the approvals that which names, with the reason that it gives; an empty one goes on.
func (d *queue) EndStanding(which func(StandingApproval) event.ApprovalEnd) (ended []StandingApproval, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range slices.Clone(d.standing) {
		if end := which(s.StandingApproval); end != "" {
			ended, err = append(ended, s.StandingApproval), errors.Join(err, d.over(s, end, "", ""))
		}
	}
	d.schedule()
	return ended, err
}

// clearTaint takes taint that is about to be cleared from the approvals and questions of the containers that of names: they were given and asked
// for it, and are not for what sets it anew.
func (d *queue) clearTaint(bits []string, of func(event.Container) bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock()
	d.cleared = append(slices.DeleteFunc(d.cleared, func(c clearing) bool { return now.Sub(c.at) > decidedIn }), clearing{now, bits, of})
	var errs []error
	for _, s := range d.standing {
		if left, some := Without(s.Container, bits, of); some {
			errs = append(errs, d.keep(s, func(s *standing) { s.Container.Taint = left }))
		}
	}
	for _, q := range d.live {
		if left, some := Without(q.Container, bits, of); some {
			q.Container.Taint = left
			for _, w := range q.waiters {
				w.Container.Taint, _ = Without(w.Container, bits, of)
			}
			errs = append(errs, d.store.put(q.record))
		}
	}
	return errors.Join(errs...)
}

// clearing is taint that was cleared.
type clearing struct {
	at   time.Time // on the queue's clock
	bits []string
	of   func(event.Container) bool
}

// decidedIn is longer than a reviewer takes.
const decidedIn = time.Hour

// leftOf is the container of a request without the taint that was cleared since that was read.
func (d *queue) leftOf(r Request) event.Container {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.left(r)
}

func (d *queue) left(r Request) event.Container {
	c := r.Container
	for _, l := range d.cleared {
		if left, some := Without(c, l.bits, l.of); some && r.TaintRead != 0 && !l.at.Before(time.Unix(0, 0).Add(r.TaintRead)) {
			c.Taint = left
		}
	}
	return c
}

// Without is the taint of a container without bits, and whether it had some of them, if of names it.
func Without(c event.Container, bits []string, of func(event.Container) bool) (left []string, some bool) {
	left = slices.DeleteFunc(slices.Clone(c.Taint), func(b string) bool { return slices.Contains(bits, b) })
	return left, len(left) < len(c.Taint) && of(c)
}

// over ends s: it opens nothing from now on, whatever fails.
func (d *queue) over(s *standing, end event.ApprovalEnd, by, why string) error {
	d.standing = slices.DeleteFunc(d.standing, func(o *standing) bool { return o == s })
	err := d.store.dropStanding(s.ID)
	if err != nil {
		err = fmt.Errorf("approval %s opens nothing any more, but comes back when the sensor starts again: %w", s.ID, err)
	}
	info := s.info()
	info.End, info.By, info.Why = end, by, why
	return errors.Join(err, d.gate.tellStanding(s.Container, info))
}

// info is s as events tell it.
func (s StandingApproval) info() *event.ApprovalInfo {
	return &event.ApprovalInfo{
		ID: s.ID, Who: s.Who, Process: s.Root, Adds: s.Adds, Until: s.Until, Bytes: s.Bytes, Left: s.Left, Uses: s.Uses, By: s.By, Why: s.Why, From: s.From,
	}
}

// stand answers q by an approval that goes on: written and stored, then in force. Whoever else waits for what it covers goes on, too.
func (d *queue) stand(q *question, reply Reply) error {
	given, err := q.told().StandingBy(reply)
	switch {
	case err != nil:
		return err
	case reply.Adds != given.Adds:
		return fmt.Errorf("it would add %q now, which is not what was shown: look, and answer again: %w", given.Adds, ErrStanding)
	case len(d.standing) >= maxStandingAll:
		return fmt.Errorf("there are %d such approvals: end one with weir revoke: %w", len(d.standing), ErrStanding)
	}
	now := d.gate.now()
	s := &standing{StandingApproval: given}
	boot, since := d.opts.Boot()
	s.Given, s.Boot = now.UTC(), boot
	if life, err := time.ParseDuration(reply.For); err == nil {
		s.until = d.clock().Add(life)
		s.Until, s.Ends = now.Add(life).UTC(), since+life
	}
	info := s.info()
	info.Shown = shown(reply.Shown)
	if err := d.gate.tellStanding(s.Container, info); err != nil {
		return fmt.Errorf("write the approval: %w", err)
	}
	if err := d.store.putStanding(*s); err != nil {
		info := s.info()
		info.End = event.NotStored
		_ = d.gate.tellStanding(s.Container, info) // it was never in force
		return err
	}
	d.standing = append(d.standing, s)
	for _, o := range slices.Clone(d.live) {
		if o.State == StatePending && (o == q || s.covers(o.first())) {
			d.serve(o, s, reply)
		}
	}
	return nil
}

// first is what q asks, as its first asker put it.
func (q *question) first() CheckedRequest {
	return CheckedRequest{Request: q.Request(), self: q.Asking[0], command: q.Command, bound: q.Bound, chain: q.Chain}
}

// serve ends q, which s answers: those who wait go on under s, and who cannot is asked about again.
func (d *queue) serve(q *question, s *standing, reply Reply) {
	r := q.record
	r.Gone = q.gone()
	r.Answered, r.By, r.Why, r.From, r.Shown = d.gate.now().UTC(), reply.By, reply.Why, reply.From, shown(reply.Shown)
	r.For, r.Standing, r.State, r.Outcome = s.For, s.ID, StateUsed, Approved
	if q.ID == s.ID {
		r.Scope = s.Scope
	}
	q.record = r
	if err := d.store.put(r); err != nil {
		d.gate.logger.WithError(err).WithField("question", q.ID).Error("store an answer") // the approval itself is stored
	}
	_ = d.gate.tellEnd(q.Question, q.verdict(Approved)) // told to the log; the approval itself is written
	for _, w := range q.waiters {
		v := d.draw(s, w.CheckedRequest)
		if v.Reason == "" {
			v = d.gate.refuse(w.Request, q.verdict(UsedOnce))
		}
		w.answer <- v
	}
	q.waiters = nil
	d.drop(q)
}

// sweepStanding ends the approvals whose time is over.
func (d *queue) sweepStanding(now time.Time) {
	for _, s := range slices.Clone(d.standing) {
		if s.until.IsZero() || now.Before(s.until) {
			continue
		}
		if err := d.over(s, event.Expired, "", ""); err != nil {
			d.gate.logger.WithError(err).WithField("approval", s.ID).Error("end an approval")
		}
	}
}

// restoreStanding takes up the stored approvals. One that cannot be read is none.
func (d *queue) restoreStanding(now time.Time) error {
	all, bad, err := d.store.loadStanding()
	if err != nil {
		return err
	}
	for _, id := range bad {
		d.gate.logger.WithField("approval", id).Error("drop a stored approval that cannot be read")
		if err := d.store.dropStanding(id); err != nil {
			return err
		}
	}
	boot, _ := d.opts.Boot()
	for _, s := range all {
		if s.Boot != boot {
			if err := d.over(&s, event.Ended, "", ""); err != nil {
				d.gate.logger.WithError(err).WithField("approval", s.ID).Error("end an approval of an earlier boot")
			}
			continue
		}
		if s.For != ForSession {
			s.until = d.resume(now, record{Boot: s.Boot, Ends: s.Ends}, s.Given, s.Until)
			s.Until = now.Add(s.until.Sub(d.clock())).UTC()
		}
		d.standing = append(d.standing, &s)
	}
	slices.SortStableFunc(d.standing, func(a, b *standing) int { return cmp.Or(a.Given.Compare(b.Given), cmp.Compare(a.ID, b.ID)) })
	return nil
}

const standingBucket = "approvals"

func (s store) putStanding(a standing) error {
	data, err := json.Marshal(a)
	if err == nil {
		err = s.update(standingBucket, func(b *bbolt.Bucket) error { return b.Put([]byte(a.ID), data) })
	}
	if err != nil {
		return fmt.Errorf("store approval %s: %w", a.ID, err)
	}
	return nil
}

func (s store) dropStanding(id string) error {
	return s.update(standingBucket, func(b *bbolt.Bucket) error { return b.Delete([]byte(id)) })
}

// loadStanding returns every stored approval, and the ids of those that cannot be read.
func (s store) loadStanding() ([]standing, []string, error) {
	return loadAll(s, standingBucket, "approvals", func(id string, a standing) bool {
		return a.ID == id && (a.Who != WhoProcess || a.Root != nil) && (a.Who != WhoProgram || a.Process.Exe != nil) && (a.For == ForSession || !a.Until.IsZero())
	})
}
