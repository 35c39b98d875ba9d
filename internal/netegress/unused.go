package netegress

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
)

// unusedGrant is an approval that a held command was moved out for, until its use is seen.
type unusedGrant struct {
	ask   Ask
	to    []Destination
	terms Terms
	until uint64 // ns since boot
}

// claimUnused is for a command that ended before it used what it was let to: it had
// given up while it was held, with its own limit for connecting. The next try of
// the same command claims the approval, in the time that claims have (G15).
func (e *Egress) claimUnused(g *live, now uint64) error {
	var errs []error
	for _, o := range g.unused {
		if o.until <= now {
			continue
		}
		unused, err := e.takeBack(g.ID, o.to)
		if err != nil || !unused {
			errs = append(errs, err)
			continue
		}
		o.terms.ClaimFor = time.Duration(o.until - now)
		c, err := e.claim(o.ask, o.to, o.terms)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		e.opts.Handle.GrantChanged(c)
	}
	g.unused = nil
	return errors.Join(errs...)
}

// takeBack closes destinations of a grant, if not a byte was sent to any of them.
func (e *Egress) takeBack(id uint64, to []Destination) (bool, error) {
	for _, d := range to {
		var use egressDestUse
		err := e.egress.GrantDests.Lookup(&egressGrantDest{Grant: id, Dest: d.raw()}, &use)
		if errors.Is(err, ebpf.ErrKeyNotExist) || err == nil && use == egressDestUseDEST_USED {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read destination of grant: %w", err)
		}
	}
	unused := true
	for _, d := range to {
		key := egressGrantDest{Grant: id, Dest: d.raw()}
		var use egressDestUse
		if err := e.egress.GrantDests.LookupAndDelete(&key, &use); err != nil {
			return false, fmt.Errorf("close destination of grant: %w", err)
		}
		if use == egressDestUseDEST_USED { // just now
			unused = false
			if err := e.egress.GrantDests.Put(&key, use); err != nil {
				return false, fmt.Errorf("write destination of grant: %w", err)
			}
		}
	}
	return unused, nil
}
