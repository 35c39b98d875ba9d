package daemon

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"weir/internal/cop"
	"weir/internal/cop/model"
	"weir/internal/gate"
	"weir/internal/netegress"
	"weir/internal/policy"
)

// newReviewer makes the Cop that a policy names. It contacts nobody.
func newReviewer(p policy.Cop) (*cop.Cop, error) {
	c, err := model.New(model.Options{
		Reviewer: p.Reviewer, Model: p.Model, BaseURL: p.BaseURL, KeyFile: p.KeyFile, KeyEnv: p.KeyEnv,
		Timeout: seconds(p.Seconds), Concurrency: p.Concurrency, CacheFor: seconds(p.CacheSeconds),
	})
	if err != nil {
		return nil, fmt.Errorf("cop: %w", err)
	}
	return c, nil
}

// terms are what a verdict that allows opens for who asked, and where its name leads. What the grant took is noted before that can end.
func (d *daemon) terms(a netegress.Ask, r gate.Request, v gate.Verdict) (netegress.Terms, error) {
	t := termsOf(d.policies.For(r.Container.ID), v, a.Held)
	t.Granted = func(g netegress.Grant) { d.draws(g, v) }
	return d.lead(a, r.Destination, t)
}

// termsOf is what a verdict that allows opens: less, when no person gave it.
func termsOf(p policy.Policy, v gate.Verdict, held bool) netegress.Terms {
	grant := p.Grant
	if v.By == gate.ByCop {
		grant.Seconds, grant.Bytes = min(grant.Seconds, p.Cop.Grant.Seconds), min(grant.Bytes, p.Cop.Grant.Bytes)
	}
	if v.Open != nil {
		grant.Bytes = v.Open.Bytes
	}
	t := netegress.Terms{
		For: seconds(grant.Seconds), Bytes: grant.Bytes, ClaimFor: seconds(p.ApprovalTTL), Resolvers: resolversOf(p.Resolvers),
	}
	if v.Open != nil && (held || v.Root != nil) {
		t.ClaimFor = 0 // its next try asks again, and draws anew: what this one did not use goes back
	}
	if root := v.Root; root != nil {
		t.Root = netegress.Process{PID: root.PID, Start: root.Start, Comm: root.Comm}
	}
	return t
}

// scopeOf is the scope of the grant that a verdict on an asker has led to; 0: it was there before, for another process.
func scopeOf(v gate.Verdict, asker int, t netegress.Terms, g netegress.Grant) int {
	switch g.Root.PID {
	case 0, asker:
		return 1
	case t.Root.PID:
		return v.Scope
	}
	return 0
}

// lookUp asks the policy's name servers, or the host's own, for the addresses of a
// host that a command names.
func (d *daemon) lookUp(ctx context.Context, host string) ([]netip.Addr, error) {
	var resolver net.Resolver
	if servers := d.policies.Base().Resolvers; len(servers) > 0 {
		resolver.PreferGo = true
		resolver.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, network, netip.AddrPortFrom(servers[0], 53).String())
		}
	}
	return resolver.LookupNetIP(ctx, "ip", host)
}
