package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/fleet"
	"weir/internal/netegress"
	"weir/internal/policy"
)

// Mode implements control.Operator. What opens something is logged and stored
// before it happens; a change that fails halfway is taken back.
func (d *daemon) Mode(_ context.Context, mode, by, why string) error {
	m, err := policy.ParseMode(mode)
	if err != nil {
		return control.Errorf(control.Usage, "%w", err)
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	return d.setMode(m, by, why, time.Now())
}

// setMode needs changing. at is when it was ordered.
func (d *daemon) setMode(m policy.Mode, by, why string, at time.Time) error {
	opens := strict(m) < strict(d.policies.Mode())
	back, err := d.keepMode()
	if err != nil {
		return err
	}
	if opens {
		if err := d.noteMode(m, by, why, at); err != nil {
			return fmt.Errorf("the mode stays %s: %w", d.policies.Mode(), errors.Join(err, back()))
		}
	}
	before := d.policies.Say(m)
	if err := d.applyPolicies(); err != nil {
		d.policies.Say(before)
		return errors.Join(err, d.applyPolicies(), back())
	}
	err = d.judgeAnew()
	d.gate.ModeChanged()
	if err != nil {
		return err
	}
	if opens {
		return nil
	}
	if err := d.noteMode(m, by, why, at); err != nil {
		return fmt.Errorf("the mode is %s from now on, but it could not be noted: %w", m, err)
	}
	return nil
}

// keepMode returns what puts back the mode that is stored, and when it was ordered, and logs that.
func (d *daemon) keepMode() (back func() error, err error) {
	var said policy.Mode
	var ordered time.Time
	if err := errors.Join(d.memory.Get(keyMode, &said), d.memory.Get(keyOrdered, &ordered)); err != nil {
		return nil, err
	}
	mode := d.policies.Mode()
	return func() error {
		return errors.Join(
			d.memory.Put(keyMode, said),
			d.memory.Put(keyOrdered, ordered),
			d.log.Write(event.Event{Kind: event.Mode, Mode: string(mode), Message: "mode set back: the change failed"}))
	}, nil
}

// judgeAnew has the kernel judge what it has refused or asked about, after the mode has changed.
func (d *daemon) judgeAnew() error { return errors.Join(d.egress.Forgive(), d.withdraw(0)) }

// strict orders the modes.
func strict(m policy.Mode) int {
	return slices.Index([]policy.Mode{policy.Observe, policy.Enforce, policy.Seal}, m)
}

// noteMode logs and stores a mode that a person set.
func (d *daemon) noteMode(m policy.Mode, by, why string, at time.Time) error {
	var last time.Time // of a person's clock that is ahead, maybe
	if err := d.memory.Get(keyOrdered, &last); err != nil {
		return err
	}
	at = notBefore(last, at)
	return errors.Join(
		d.log.Write(event.Event{Kind: event.Mode, Mode: string(m), Message: fmt.Sprintf("mode set by %s: %s", by, why)}),
		d.memory.Put(keyOrdered, at),
		d.memory.Put(keyMode, m))
}

// notBefore is at, or the time of the last order if that is later.
func notBefore(last, at time.Time) time.Time {
	if at.Before(last) && !tooFar(last) {
		return last
	}
	return at
}

// tooFar says that a time is of a clock of this node that was wrong: nothing else sets one so far ahead, and it would keep all orders out.
func tooFar(t time.Time) bool { return t.After(time.Now().Add(fleet.Skew)) }

// Reload implements control.Operator.
func (d *daemon) Reload(context.Context) error {
	d.changing.Lock()
	defer d.changing.Unlock()
	d.agents.LoadRules()
	d.loaded = newestVersion(d.opts.PolicyPath)
	p, digest, err := loadPolicy(d.opts.PolicyPath)
	if err == nil {
		err = d.replace(p)
	}
	if err != nil {
		d.refused(err)
		return err
	}
	d.refusal.Store(nil)
	return errors.Join(d.stampPolicy(digest), d.policyLoaded(d.opts.PolicyPath))
}

func (d *daemon) policyLoaded(from string) error {
	return d.log.Write(event.Event{Kind: event.Mode, Mode: string(d.policies.Mode()), Message: "policy loaded: " + from})
}

// refused tells that the policy file is not loaded, in an event and until it is in status, health and figures (F40).
func (d *daemon) refused(err error) {
	why := event.Plain(err)
	d.refusal.Store(&control.PolicyRefusal{Since: time.Now().UTC(), Why: strings.Split(why, "\n")})
	d.write(event.Event{Kind: event.Error, Message: "policy refused, the old one stays: " + strings.ReplaceAll(why, "\n", "; ")})
}

// needsStart refuses a policy with another value of what is read at the start alone.
func needsStart(old, p policy.Policy) error {
	key := ""
	switch {
	case !reflect.DeepEqual(p.Events, old.Events):
		key = "events"
	case !reflect.DeepEqual(p.Notify, old.Notify):
		key = "notify"
	case p.Metrics != old.Metrics:
		key = "metrics"
	default:
		return nil
	}
	return fmt.Errorf("%s: changed: restart the sensor for that", key)
}

func (d *daemon) replacePolicy(p policy.Policy) error {
	if err := needsStart(d.policies.Base(), p); err != nil {
		return err
	}
	roles, err := rolesOf(p.Control)
	if err != nil {
		return err
	}
	reviewer, err := newReviewer(p.Cop)
	if err != nil {
		return err
	}
	if guardsByItself(p) {
		err = d.attachHooks()
	}
	if err == nil {
		err = d.applyPolicy(p)
	}
	if err != nil {
		reviewer.Close()
		return errors.Join(err, d.files.Set(netegress.BaseSlot, d.policies.Base().Taint.SecretFiles), d.applyPolicies())
	}
	mode := d.policies.Mode()
	d.policies.SetBase(p)
	if d.policies.Mode() != mode {
		if err := d.judgeAnew(); err != nil {
			d.fail("judge anew in another mode", nil, err)
		}
	}
	if err := d.server.SetRoles(roles); err != nil {
		d.fail("set who may use the control socket: root alone may", nil, err)
	}
	if err := d.dns.PolicyChanged(); err != nil {
		d.opts.Logger.WithError(err).Error("open allowed names anew")
	}
	select {
	case d.replaced <- struct{}{}:
	default: // it will look anyhow
	}
	defer d.reviewer.Close()
	d.reviewer = reviewer
	d.reviewing.Store(reviewer)
	d.gate.Configure(reviewer, p.Approver == policy.Person, seconds(p.ApprovalTimeout), seconds(p.ApprovalTTL))
	return nil
}

// hangups reloads the policy on SIGHUP.
func (d *daemon) hangups(ctx context.Context) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGHUP)
	defer signal.Stop(signals)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-signals:
			if err := d.Reload(ctx); err != nil {
				d.opts.Logger.WithError(err).Error("reload policy")
			}
		}
	}
}

// changed says whether the policy file is not what was loaded last.
func (d *daemon) changed() bool {
	d.changing.Lock()
	defer d.changing.Unlock()
	return newestVersion(d.opts.PolicyPath) != d.loaded
}
