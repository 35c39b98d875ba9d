package bpfobj

import (
	"errors"
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	var told []bool
	failed := errors.New("failed")
	var fails error
	p := NewAdaptivePoll(5*time.Millisecond, func(asleep bool) error {
		if fails == nil {
			told = append(told, asleep)
		}
		return fails
	})
	waits := func(want time.Duration, asleep bool) {
		t.Helper()
		before := time.Now()
		until, err := p.Until()
		if err != nil || until.Before(before.Add(want)) || until.After(time.Now().Add(want)) {
			t.Errorf("waits until %v after now, %v expected: %v", until.Sub(before), want, err)
		}
		if p.asleep != asleep || len(told) > 0 && told[len(told)-1] != asleep {
			t.Errorf("asleep %v, told %v, %v expected", p.asleep, told, asleep)
		}
	}
	later := func(by time.Duration) { p.busy = time.Now().Add(by) } // however slowly this test runs
	later(time.Hour)
	waits(p.every, false)
	later(-2 * quiet)
	fails = failed
	if _, err := p.Until(); !errors.Is(err, failed) || p.asleep {
		t.Errorf("the writers were not told: %v, asleep %v", err, p.asleep)
	}
	fails = nil
	waits(p.every, true) // one more look
	waits(dozeMost, true)
	before := time.Now()
	if p.Busy(); p.busy.Before(before) {
		t.Errorf("busy at %v, before %v", p.busy, before)
	}
	later(time.Hour)
	waits(p.every, false)
	if err := p.End(); err != nil || len(told) != 2 {
		t.Errorf("the end of one that is awake: %v, told %v", err, told)
	}
	later(-2 * quiet)
	waits(p.every, true)
	if err := p.End(); err != nil || told[len(told)-1] {
		t.Errorf("the end of one that sleeps: %v, told %v", err, told)
	}
}
