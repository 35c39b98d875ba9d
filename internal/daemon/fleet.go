package daemon

import (
	"context"
	"fmt"
	"time"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/fleet"
	"weir/internal/gate"
	"weir/internal/notify"
	"weir/internal/policy"
	"weir/internal/show"
)

// Signed implements control.Approver. Who brings it is of no account: the signature and the policy say whose word it is.
func (d *daemon) Signed(_ context.Context, signed control.Signed) (string, error) {
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
	if s.Mode != "" {
		return d.ordered(s, by)
	}
	q, err := notify.Answer(d.gate, notify.JSON, s.Question, s.Shown, gate.Reply{
		Allow: s.Answer == fleet.Approve, Scope: s.Scope, By: by, Why: s.Why, From: &event.Origin{Via: "fleet", User: s.By},
	})
	if err != nil {
		return "", control.Errorf(control.Denied, "refused: %w", err)
	}
	return fmt.Sprintf("question %s: %s", q.ID, show.Outcome(q)), nil
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
	switch {
	case signed.After(last):
		return false, nil
	case signed.Equal(last) && m == d.policies.Mode():
		return true, nil
	}
	clock := ""
	if tooFar(last) {
		clock = ": the clock of this node was ahead then; set the mode on it with weir mode"
	}
	return false, control.Errorf(control.Denied, "refused: the mode %s was set at %s, after this was signed%s", d.policies.Mode(), show.Time(last), clock)
}
