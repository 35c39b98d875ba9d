package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/fleet"
	"weir/internal/gate"
	"weir/internal/linux"
	"weir/internal/notify"
	"weir/internal/policy"
	"weir/internal/show"
)

// Signed implements control.Approver. Who brings it is of no account: the signature and the policy say whose word it is.
func (d *daemon) Signed(ctx context.Context, signed control.Signed) (string, error) {
	p := d.policies.Base().Fleet
	node, err := fleet.Node(p)
	if err != nil {
		return "", err
	}
	s, err := fleet.Open(signed, p, node, time.Now())
	if err != nil {
		return "", control.Errorf(control.Denied, "refused: %w", err)
	}
	by := "fleet operator " + s.By
	switch {
	case s.Mode != "":
		return d.ordered(s, by)
	case s.Policy != "":
		return d.policyOrdered(signed, s, node, by)
	case s.Forget != "":
		return d.forget(ctx, s, by)
	}
	reply := gate.Reply{Allow: s.Answer == fleet.Approve, Scope: s.Scope, By: by, Why: s.Why, From: &event.Origin{Via: "fleet", User: s.By}}
	q, err := notify.Answer(d.gate, notify.JSON, s.Question, s.Shown, reply)
	if errors.Is(err, gate.ErrTwo) {
		other := d.halves.join(signed, s, p, node)
		if other == "" {
			return fmt.Sprintf("question %s: it waits for another operator to approve the same: %s alone is not enough", q.ID, s.By),
				d.log.Write(event.Event{Kind: event.Error, Container: &q.Container, Question: q.ID, Message: "approved by " + by + " alone: another operator has to approve the same"})
		}
		reply.Two, reply.By = true, "fleet operators "+other+" and "+s.By
		q, err = notify.Answer(d.gate, notify.JSON, s.Question, s.Shown, reply)
	}
	if err != nil {
		return "", control.Errorf(control.Denied, "refused: %w", err)
	}
	return fmt.Sprintf("question %s: %s", q.ID, show.Outcome(q)), nil
}

// wantsTwo says whether two people have to approve what a container asks.
func (d *daemon) wantsTwo(c event.Container) bool {
	return d.policies.Base().Fleet.TwoPeople && gate.Within([]string{"corruption", "secret"}, c.Taint)
}

// halves are approvals that each wait for another person's. They are kept as they were signed, and count as long as they would count if they came
// now: neither a key that was revoked or given to another name meanwhile, nor a person with two keys, makes two people.
type halves struct {
	mu  sync.Mutex
	all []half
}

type half struct {
	signed control.Signed
	node   string
}

// open is those that count.
func (h *halves) open(p policy.Fleet) []fleet.Statement {
	var all []fleet.Statement
	h.all = slices.DeleteFunc(h.all, func(one half) bool {
		s, err := fleet.Open(one.signed, p, one.node, time.Now())
		if err == nil {
			all = append(all, s)
		}
		return err != nil
	})
	return all
}

// by is who has approved each question.
func (h *halves) by(p policy.Fleet) map[string][]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string][]string{}
	for _, s := range h.open(p) {
		all[s.Question] = append(all[s.Question], s.By)
	}
	return all
}

// join keeps an approval in the place of this person's last one, and says who else approves the same; empty: nobody does.
func (h *halves) join(signed control.Signed, s fleet.Statement, p policy.Fleet, node string) (other string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, o := range slices.Backward(h.open(p)) {
		switch {
		case o.Question != s.Question:
		case o.By == s.By:
			h.all = slices.Delete(h.all, i, i+1)
		case max(o.Scope, 1) == max(s.Scope, 1) && o.Shown == s.Shown:
			other = o.By
		}
	}
	h.all = append(h.all, half{signed, node})
	return other
}

// ordered sets the mode of an order that is newer than what is in force.
func (d *daemon) ordered(s fleet.Statement, by string) (string, error) {
	m, err := policy.ParseMode(s.Mode)
	if err != nil {
		return "", control.Errorf(control.Usage, "%w", err)
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	done, err := d.newest(m, s.Signed)
	if err == nil && !done {
		err = d.setMode(m, by, s.Why, s.Signed)
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("the mode is %s", m), nil
}

// newest refuses an order that is not newer than what is in force, and says whether it is this very order that is. It needs changing.
func (d *daemon) newest(m policy.Mode, signed time.Time) (done bool, err error) {
	var last time.Time
	if err := d.memory.Get(keyOrdered, &last); err != nil {
		return false, err
	}
	return newer(signed, last, m == d.policies.Mode(), fmt.Sprintf("the mode %s", d.policies.Mode()), "set the mode on it with weir mode")
}

// newer refuses what was signed before something was set, and says whether it is this very order that set it.
func newer(signed, last time.Time, same bool, what, mend string) (done bool, err error) {
	switch {
	case signed.After(last):
		return false, nil
	case signed.Equal(last) && same:
		return true, nil
	}
	clock := ""
	if tooFar(last) {
		clock = ": the clock of this node was ahead then; " + mend
	}
	return false, control.Errorf(control.Denied, "refused: %s was set at %s, after this was signed%s", what, show.Time(last), clock)
}

// policyOrdered puts a policy in force that is newer than the one that is, as a reload does, and writes it into the policy file.
func (d *daemon) policyOrdered(signed control.Signed, s fleet.Statement, node, by string) (string, error) {
	d.changing.Lock()
	defer d.changing.Unlock()
	var last policyStamp
	if err := d.memory.Get(keyPolicy, &last); err != nil {
		return "", err
	}
	now, file := policyStamp{gate.Digest(s.Policy), s.Signed}, d.opts.PolicyPath
	done := fmt.Sprintf("the policy %.12s is in force", now.Digest)
	if same, err := newer(s.Signed, last.At, now.Digest == last.Digest, "the policy", "load the policy on it with weir reload"); same || err != nil {
		return done, err
	}
	before := d.policies.Base()
	p, err := policy.Parse("policy", []byte(s.Policy))
	if err == nil {
		err = d.acceptable(signed, p, before, node)
	}
	beside := ""
	if err == nil { // first: what cannot be written is not in force for a moment
		if beside, err = linux.StageFile(file, []byte(s.Policy)); err != nil {
			err = fmt.Errorf("the sensor cannot write %s: %w", file, err)
		}
		defer os.Remove(beside)
	}
	if err == nil {
		err = d.replace(p)
	}
	if err == nil {
		if err = d.memory.Put(keyPolicy, now); err == nil {
			err = linux.ReplaceFile(beside, file)
		}
		if err != nil {
			err = errors.Join(fmt.Errorf("the policy stays as it was: %w", err), d.memory.Put(keyPolicy, last), d.replace(before))
		}
	}
	if err != nil {
		return "", control.Errorf(control.Denied, "refused: %s", strings.ReplaceAll(event.Plain(err), "\n", "; "))
	}
	d.loaded = newestVersion(file)
	return done, d.policyLoaded(fmt.Sprintf("%s, set by %s: %s", file, by, s.Why))
}

// acceptable says why a policy that somebody signed cannot take the place of the one that is in force. It needs changing.
func (d *daemon) acceptable(signed control.Signed, p, before policy.Policy, node string) error {
	file, err := os.Lstat(d.opts.PolicyPath)
	switch {
	case d.opts.PolicyPath == "":
		return errors.New("this sensor has no policy file: start it with --policy")
	case err != nil || !file.Mode().IsRegular():
		return fmt.Errorf("%s is no plain file: change it where it comes from", d.opts.PolicyPath)
	case d.refusal.Load() != nil || newestVersion(d.opts.PolicyPath) != d.loaded:
		return fmt.Errorf("%s was changed on the node, and is not in force: mend it there", d.opts.PolicyPath)
	}
	called, err := fleet.Node(p.Fleet)
	if err == nil && called != node {
		err = fmt.Errorf("it calls the node %s, and this is %s", called, node)
	}
	if err != nil {
		return err
	}
	if _, err := fleet.Open(signed, before.Fleet, node, time.Now()); err != nil { // it may be another one by now
		return err
	}
	if _, err := fleet.Open(signed, p.Fleet, node, time.Now()); err != nil {
		return fmt.Errorf("who signed it could not take it back under this policy: %w", err)
	}
	return nil
}
