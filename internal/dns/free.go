package dns

import (
	"context"
	"net/netip"
	"time"
)

// freshFor is how long an address that was looked up for a clean container serves.
const freshFor = time.Minute

// maxFreeing is how many names of a container are looked up at the same time.
const maxFreeing = 8

// Freed is told that nothing stands against a container any more: programs remember
// addresses that stand for names, so all are looked up.
func (s *Redirect) Freed(container uint64) {
	s.mu.Lock()
	b := s.containers[container]
	if b != nil {
		b.since = time.Time{}
	}
	s.mu.Unlock()
	if b == nil {
		return
	}
	if err := s.LeadDatagrams(container); err != nil { // it may have got an address meanwhile
		s.opts.Logger.WithError(err).Error("lead the datagrams of a clean container")
	}
	b.clean.Store(true)
	room := make(chan struct{}, maxFreeing)
	s.running.Go(func() {
		for _, a := range b.pool.All() {
			room <- struct{}{}
			s.running.Go(func() {
				defer func() { <-room }()
				s.free(b, a)
			})
		}
	})
}

// Used is told that a clean container wanted to reach an address of the pool: where it
// leads is looked up, if that was not done lately.
func (s *Redirect) Used(container uint64, a netip.Addr) {
	if !Synthetic(a) {
		return
	}
	s.mu.Lock()
	b := s.containers[container]
	s.mu.Unlock()
	if b == nil {
		return
	}
	if _, ok := b.pool.Name(a); ok { // the container may connect to as many others as it likes
		s.running.Go(func() { s.free(b, a) })
	}
}

func (s *Redirect) free(b *containerDNS, a netip.Addr) {
	b.leasing.Lock()
	late := time.Since(b.freed[a]) > freshFor
	if late {
		b.freed[a] = time.Now()
	}
	b.leasing.Unlock()
	if !late || s.ctx.Err() != nil || !s.opts.Host.Clean(b.container) {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	to, err := s.Resolve(ctx, b.container, 0, a)
	if err == nil {
		err = s.Lead(0, b.container, a, to)
	}
	b.leasing.Lock()
	told := b.unfreed
	if b.unfreed = err != nil; err != nil {
		delete(b.freed, a) // the next try looks again
	}
	b.leasing.Unlock()
	if err != nil && !told {
		s.opts.Logger.WithError(err).Warn("look up a name for a clean container")
	}
}
