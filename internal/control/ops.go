package control

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"weir/internal/event"
	"weir/internal/gate"
)

// exchange is one request on its way to a backend.
type exchange struct {
	backend Backend
	line    []byte
	who     func(said string) string // names the asker
	from    func() *event.Origin     // tells where the asker is
	send    func(result any) error   // writes one line of many
}

// handler carries out one operation; its result is the answer's.
type handler func(context.Context, exchange) (any, error)

// handlers has every operation by its name.
func handlers() map[string]handler {
	return map[string]handler{
		"status": func(ctx context.Context, x exchange) (any, error) {
			if err := decode(x.line, new(plainRequest)); err != nil {
				return nil, err
			}
			return x.backend.Status(ctx)
		},
		"containers": func(ctx context.Context, x exchange) (any, error) {
			if err := decode(x.line, new(plainRequest)); err != nil {
				return nil, err
			}
			return x.backend.Containers(ctx)
		},
		"pending": func(ctx context.Context, x exchange) (any, error) {
			if err := decode(x.line, new(plainRequest)); err != nil {
				return nil, err
			}
			return x.backend.Pending(ctx)
		},
		"history": history,
		"reload": func(ctx context.Context, x exchange) (any, error) {
			if err := decode(x.line, new(plainRequest)); err != nil {
				return nil, err
			}
			return nil, x.backend.Reload(ctx)
		},
		"taint":        taint,
		"untaint":      untaint,
		"approve":      func(ctx context.Context, x exchange) (any, error) { return reply(ctx, x, true) },
		"deny":         func(ctx context.Context, x exchange) (any, error) { return reply(ctx, x, false) },
		"events":       events,
		"guard":        guard,
		"guard-cgroup": guardCgroup,
		"guard-agent":  guardAgent,
		"guard-end":    guardEnd,
		"mode":         mode,
	}
}

func unknown(op string, known map[string]handler) error {
	names := slices.Sorted(maps.Keys(known))
	return Errorf(Usage, "unknown operation %q: the operations are %s", op, strings.Join(names, ", "))
}

// need refuses a request with an empty field.
func need(op string, fields ...string) error {
	for i := 0; i < len(fields); i += 2 {
		if fields[i+1] == "" {
			return Errorf(Usage, "%s: no %s given", op, fields[i])
		}
	}
	return nil
}

func taint(ctx context.Context, x exchange) (any, error) {
	var r taintRequest
	if err := decode(x.line, &r); err != nil {
		return nil, err
	}
	if err := need(r.Op, "name", r.Name, "bits", strings.Join(r.Bits, "")); err != nil {
		return nil, err
	}
	return x.backend.Taint(ctx, r.Name, r.Bits, x.who(r.By), r.Why)
}

func untaint(ctx context.Context, x exchange) (any, error) {
	var r taintRequest
	if err := decode(x.line, &r); err != nil {
		return nil, err
	}
	if err := need(r.Op, "name", r.Name, "bits", strings.Join(r.Bits, ""), "why", strings.TrimSpace(r.Why)); err != nil {
		return nil, err
	}
	return x.backend.Untaint(ctx, r.Name, r.Bits, x.who(r.By), r.Why)
}

func reply(ctx context.Context, x exchange, allow bool) (any, error) {
	var r answerRequest
	if err := decode(x.line, &r); err != nil {
		return nil, err
	}
	if err := need(r.Op, "id", r.ID); err != nil {
		return nil, err
	}
	why := strings.ToValidUTF8(r.Why, "?")
	if len(why) > maxWhy {
		return nil, Errorf(Usage, "%s: why has more than %d bytes", r.Op, maxWhy)
	}
	return x.backend.Answer(ctx, r.ID, gate.Reply{Allow: allow, By: x.who(r.By), Why: why, Scope: r.Scope, For: r.For, Narrow: r.Narrow, From: x.from(), Shown: r.Shown})
}

// maxWhy bounds a reason, in bytes.
const maxWhy = 4096

func history(ctx context.Context, x exchange) (any, error) {
	var r historyRequest
	if err := decode(x.line, &r); err != nil {
		return nil, err
	}
	if r.Most < 0 {
		return nil, Errorf(Usage, "%s: most is %d: give how many, from 1", r.Op, r.Most)
	}
	return x.backend.History(ctx, cmp.Or(r.Most, 100))
}

func events(ctx context.Context, x exchange) (any, error) {
	var r eventsRequest
	if err := decode(x.line, &r); err != nil {
		return nil, err
	}
	for _, k := range r.Kinds {
		if !slices.Contains(event.Kinds(), k) {
			return nil, Errorf(Usage, "events: unknown kind %q: the kinds are %s", k, event.KindNames())
		}
	}
	f := event.Filter{Kinds: r.Kinds, Container: r.Container, Since: r.Since, Text: r.Text}
	err := x.backend.Events(ctx, f, r.Follow, func(e event.Event) error { return x.send(e) })
	if r.Follow && errors.Is(err, context.Canceled) {
		err = nil // how following ends
	}
	return nil, err
}

func guard(ctx context.Context, x exchange) (any, error) {
	var r guardRequest
	if err := decode(x.line, &r); err != nil {
		return nil, err
	}
	return x.backend.Guard(ctx, GuardRequest{
		Name: r.Name, Taint: r.Taint, Policy: r.Policy, PolicyName: r.PolicyName, By: x.who(r.By),
	})
}

func guardCgroup(ctx context.Context, x exchange) (any, error) {
	var r cgroupRequest
	if err := decode(x.line, &r); err != nil {
		return nil, err
	}
	if err := need(r.Op, "cgroup", r.Cgroup); err != nil {
		return nil, err
	}
	return x.backend.GuardCgroup(ctx, CgroupRequest{Cgroup: r.Cgroup, Name: r.Name, Taint: r.Taint, By: x.who(r.By)})
}

func guardAgent(ctx context.Context, x exchange) (any, error) {
	var r agentRequest
	if err := decode(x.line, &r); err != nil {
		return nil, err
	}
	if err := need(r.Op, "id", r.ID); err != nil {
		return nil, err
	}
	if r.PID <= 0 {
		return nil, Errorf(Usage, "%s: the pid %d is none", r.Op, r.PID)
	}
	return nil, x.backend.GuardAgent(ctx, r.ID, r.PID)
}

func guardEnd(ctx context.Context, x exchange) (any, error) {
	var r sessionRequest
	if err := decode(x.line, &r); err != nil {
		return nil, err
	}
	if err := need(r.Op, "id", r.ID); err != nil {
		return nil, err
	}
	return x.backend.GuardEnd(ctx, r.ID)
}

func mode(ctx context.Context, x exchange) (any, error) {
	var r modeRequest
	if err := decode(x.line, &r); err != nil {
		return nil, err
	}
	if err := need(r.Op, "mode", r.Mode, "why", strings.TrimSpace(r.Why)); err != nil {
		return nil, err
	}
	return nil, x.backend.Mode(ctx, r.Mode, x.who(r.By), r.Why)
}
