package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/fleet"
	"weir/internal/show"
	"weir/internal/taint"
)

const (
	maxWanted  = 4096                   // identities that nobody has told of yet
	maxAsked   = 16                     // that a link is asked about at once: it tells when it has looked for all of them
	wantedTime = 500 * time.Millisecond // for a link that is there to tell: a runtime waits 1.5 s for all that is done before a start
	linkBack   = time.Second            // a link comes again within it, or it is away
	linkStays  = 5 * time.Second        // while nothing is wanted

	forgetAhead = 2 * time.Second // that another clock may be ahead: an order to forget waits for it
)

// inquiries ask the node's link what containers that begin here were tainted with on other nodes. Nothing that it is told is signed, so it only adds
// taint: who lies taints, or keeps quiet.
type inquiries struct {
	forgets sync.Mutex // held while an identity is forgotten, and while what was found is told

	mu     sync.Mutex
	links  int       // that wait for what is wanted
	late   bool      // somebody waited in vain since anything was told: nobody else waits
	back   time.Time // until when one that waited comes again
	wanted map[string]*inquiry
	taken  map[string][]*inquiry // that a link finds out now: who asks later must not get what it found before
	news   chan struct{}         // closed when there is more
}

// inquiry is about one identity.
type inquiry struct {
	waits     bool          // somebody does: it is asked first
	forgotten time.Time     // as the link was asked: what it found before counts no more
	told      chan struct{} // closed: the others are set
	bits      taint.Bits
	nodes     string
}

// want asks about an identity, and says whether a link is there to tell; nil: there is no room.
func (m *inquiries) want(identity string, waits bool) (q *inquiry, there bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wanted == nil {
		m.wanted, m.taken = map[string]*inquiry{}, map[string][]*inquiry{}
	}
	if q = m.wanted[identity]; q == nil && len(m.wanted)+len(m.taken) < maxWanted {
		q = &inquiry{told: make(chan struct{})}
		m.wanted[identity] = q
		if m.news != nil {
			close(m.news)
			m.news = nil
		}
	}
	if q != nil {
		q.waits = q.waits || waits
	}
	return q, q != nil && !m.late && (m.links > 0 || time.Now().Before(m.back))
}

// tell answers what was taken, and says whether that was anything. What was asked before its identity was forgotten is asked again.
func (m *inquiries) tell(one control.Elsewhere, bits taint.Bits, forgotten time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.taken[one.Identity]
	if slices.ContainsFunc(all, func(q *inquiry) bool { return q.forgotten.Before(forgotten) }) {
		return false
	}
	delete(m.taken, one.Identity)
	m.late = m.late && len(all) == 0
	for _, q := range all {
		q.bits, q.nodes = bits, strings.Join(one.Nodes, ", ")
		close(q.told)
	}
	return len(all) > 0
}

// asks notes what a link is asked.
func (m *inquiries) asks(identity string, forgotten time.Time) control.Wanted {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, q := range m.taken[identity] {
		q.forgotten = forgotten
	}
	return control.Wanted{Identity: identity, Forgotten: forgotten}
}

// missed says that somebody waited in vain.
func (m *inquiries) missed(q *inquiry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.late, q.waits = true, false
}

// wait returns some of what is wanted, once something is, or nothing after some time.
func (m *inquiries) wait(ctx context.Context) []string {
	late := time.After(linkStays)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.links++
	defer func() { m.links--; m.back = time.Now().Add(linkBack) }()
	for len(m.wanted)+len(m.taken) == 0 {
		if m.news == nil {
			m.news = make(chan struct{})
		}
		news := m.news
		m.mu.Unlock()
		over := false
		select {
		case <-news:
		case <-late:
			over = true
		case <-ctx.Done():
			over = true
		}
		m.mu.Lock()
		if over {
			return nil
		}
	}
	for identity, q := range m.wanted {
		m.taken[identity] = append(m.taken[identity], q)
	}
	clear(m.wanted)
	// Those for which somebody waits come first, and the others in no order: what a link fails to find must not keep it from the rest.
	var first, others []string
	for identity, all := range m.taken {
		if slices.ContainsFunc(all, func(q *inquiry) bool { return q.waits }) {
			first = append(first, identity)
		} else {
			others = append(others, identity)
		}
	}
	first = append(first, others...)
	return first[:min(len(first), maxAsked)]
}

// elsewhere is what a container was tainted with on other nodes, and why that is known. One that begins, and of which nobody tells, has what the
// policy says of unknown ones; what is told later is added.
func (d *daemon) elsewhere(o taint.Origin, begins, wait bool) (bits taint.Bits, why string) {
	p, identity := d.policies.Base().Fleet, o.Identity()
	if !p.Identity || identity == "" {
		return 0, ""
	}
	q, there := d.inquiries.want(identity, begins && wait)
	if !begins {
		return 0, "" // it has what is known of it
	}
	switch {
	case there && !wait:
		return 0, "" // somebody will tell
	case there:
		select {
		case <-q.told:
			return q.bits, "had it on " + q.nodes
		case <-time.After(wantedTime):
			d.inquiries.missed(q)
		}
	}
	bits, err := taint.StartBits(p.Unknown)
	if err != nil {
		bits = taint.Corruption | taint.Secret
	}
	return bits, "fleet.unknown: nobody tells of other nodes"
}

// elsewhereTold taints what runs by now. What was looked for before it was forgotten is looked for again.
func (d *daemon) elsewhereTold(told []control.Elsewhere) error {
	d.inquiries.forgets.Lock()
	defer d.inquiries.forgets.Unlock()
	forgotten, err := d.forgotten()
	if err != nil {
		return err
	}
	var errs []error
	for _, one := range told {
		bits, err := taint.StartBits(one.Taint)
		if err != nil {
			return control.Errorf(control.Usage, "%w", err)
		}
		if !d.inquiries.tell(one, bits, forgotten[one.Identity]) || bits == 0 {
			continue
		}
		for _, st := range d.state.List() {
			if st.Origin.Identity() == one.Identity && bits&^st.Taint != 0 && st.CgroupID != 0 {
				_, err := d.taint(taint.Change{Container: st.ID, Bits: bits, Source: "fleet", By: "fleet", Why: "had it on " + strings.Join(one.Nodes, ", ")})
				if err != nil {
					d.inquiries.want(one.Identity, false) // it is told again
				}
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// Moved implements control.Tainter.
func (d *daemon) Moved(ctx context.Context, told []control.Elsewhere) ([]control.Wanted, error) {
	if err := d.elsewhereTold(told); err != nil {
		return nil, err
	}
	asked := d.inquiries.wait(ctx)
	forgotten, err := d.forgotten() // by now
	if err != nil {
		return nil, err
	}
	var wanted []control.Wanted
	for _, identity := range asked {
		wanted = append(wanted, d.inquiries.asks(identity, forgotten[identity]))
	}
	return wanted, nil
}

// tainted are the containers of an identity with taint of their own, which was changed last by a time, or after it.
func tainted(all []taint.Status, identity string, at time.Time) (older, newer []taint.Status) {
	for _, st := range all {
		switch {
		case st.Origin.Identity() != identity || st.Own == 0:
		case st.Since.After(at):
			newer = append(newer, st)
		default:
			older = append(older, st)
		}
	}
	return older, newer
}

// forgotten is until when what was told of identities counts no more.
func (d *daemon) forgotten() (map[string]time.Time, error) {
	all := map[string]time.Time{}
	return all, d.memory.Get(keyForgotten, &all)
}

// forget has what is known of an identity elsewhere count no more, and clears the taint that its containers here had by then.
func (d *daemon) forget(ctx context.Context, s fleet.Statement, by string) (string, error) {
	for ahead := time.Until(s.Signed); ahead > 0; ahead = time.Until(s.Signed) { // else it would clear what is set after it came, and before it was signed
		if ahead > forgetAhead {
			return "", control.Errorf(control.Denied, "refused: it was signed at %s, and is taken when that has come here: compare the clocks", show.Time(s.Signed))
		}
		select {
		case <-time.After(ahead):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	d.inquiries.forgets.Lock()
	defer d.inquiries.forgets.Unlock()
	forgotten, err := d.forgotten()
	if err != nil {
		return "", err
	}
	done := fmt.Sprintf("%s is forgotten", event.Visible(s.Forget))
	if last := forgotten[s.Forget]; !s.Signed.After(last) { // it clears nothing that was set since
		if s.Signed.Equal(last) {
			return done, nil
		}
		return "", control.Errorf(control.Denied, "refused: %s was forgotten at %s, after this was signed", event.Visible(s.Forget), show.Time(last))
	}
	older, newer := tainted(d.state.List(), s.Forget, s.Signed)
	for _, st := range older {
		if _, err := d.Untaint(ctx, st.ID, st.Own.Names(), by, cmp.Or(s.Why, "forgotten everywhere")); err != nil {
			return "", fmt.Errorf("clear the taint of %s: %w", event.Visible(st.ID), err)
		}
	}
	if len(newer) > 0 {
		done += fmt.Sprintf(", but %d of its containers here %s tainted after this was signed", len(newer), show.Plural(len(newer), "was", "were"))
	}
	maps.DeleteFunc(forgotten, func(_ string, at time.Time) bool { return time.Since(at) > fleet.MostForget+fleet.Skew })
	forgotten[s.Forget] = s.Signed
	if err := d.memory.Put(keyForgotten, forgotten); err != nil {
		return "", err
	}
	return done, d.log.Write(event.Event{Kind: event.Mode, Mode: string(d.policies.Mode()), Message: done + ", as " + by + " says: " + s.Why})
}
