package daemon

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/time/rate"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/modelproxy"
)

// Refused requests of a container can be as many as it likes: all are counted, and of those that come one after the other only some are told of.
const (
	refusalsTold   = 2 // in a second
	refusalsAtOnce = 20
)

// modelRefusals are what models' proxies refused.
type modelRefusals struct {
	tally  // by code
	told   *rate.Limiter
	untold atomic.Uint64 // since the last event
}

func newModelRefusals() *modelRefusals {
	return &modelRefusals{told: rate.NewLimiter(refusalsTold, refusalsAtOnce)}
}

// count counts one. untold is how many before it had no event; more is false if it gets none either.
func (m *modelRefusals) count(code string) (untold uint64, more bool) {
	m.add(code)
	if !m.told.Allow() {
		m.untold.Add(1)
		return 0, false
	}
	return m.untold.Swap(0), true
}

// ModelRefused implements control.Operator.
func (d *daemon) ModelRefused(_ context.Context, r control.ModelRefusal) error {
	code := modelproxy.Code(r.Code)
	if !code.Known() {
		return control.Errorf(control.Usage, "model-refused: the code %q is unknown", r.Code)
	}
	untold, tell := d.models.count(r.Code)
	if !tell {
		return nil
	}
	e := event.Event{Kind: event.Model, Verdict: &event.Decision{Decision: "deny", Reason: r.Code, Text: code.Text()}}
	if untold > 0 {
		e.Message = fmt.Sprintf("%d more were refused before it", untold)
	}
	if in, ok := d.processes.Innermost(r.Cgroup); ok {
		c := d.processes.Container(in.CgroupID, in.Taint)
		e.Container = &c
	}
	if r.PID > 0 { // it may have ended, and another process may have its id
		if who, err := (host{d.agents}).Who(r.PID); err == nil && (e.Container == nil || e.Container.ID == who.Container.ID) {
			e.Container, e.Process = &who.Container, &who.Process
		}
	}
	return d.log.Write(e)
}
