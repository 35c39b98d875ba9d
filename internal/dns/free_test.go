package dns

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"weir/internal/policy"
)

// clean is a host on which nothing is tainted.
type clean struct{}

func (clean) NamePolicy(uint64) policy.Policy        { return policy.Policy{} }
func (clean) Clean(uint64) bool                      { return true }
func (clean) NameRefused(uint64, string, netip.Addr) {}

// A clean container connects to any number of addresses of the pool's network, at no cost but its own (B31).
func TestUsed(t *testing.T) {
	var log strings.Builder
	logger := logrus.New()
	logger.SetOutput(&log)
	given := netip.MustParseAddr("fd77:6569:7200::1")
	s := &Redirect{opts: RedirectOptions{Logger: logger, Host: clean{}}, ctx: context.Background(), containers: map[uint64]*containerDNS{}}
	b := s.newContainer(7, map[netip.Addr]string{given: "given.example"})
	s.containers[7] = b
	for _, a := range []string{"fd77:6569:7200::2", "fd77:6569:7200:1::1", "198.18.0.1"} {
		s.Used(7, netip.MustParseAddr(a))
	}
	s.running.Wait()
	if len(b.freed) != 0 || log.Len() != 0 {
		t.Errorf("addresses that nobody was given: %d are kept, log %q", len(b.freed), log.String())
	}
	for range 3 { // no resolver runs
		s.Used(7, given)
		s.running.Wait()
	}
	if len(b.freed) != 0 || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("an address that leads nowhere: %d are kept, log %q", len(b.freed), log.String())
	}
}
