package daemon

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"sync"

	"weir/internal/dns"
	"weir/internal/policy"
)

// activePolicy are those in force. Their methods may be called at the same time.
type activePolicy struct {
	mu   sync.Mutex
	base versioned            // the daemon's own
	said policy.Mode          // by weir mode; empty: the policy's
	own  map[string]versioned // of sessions that brought one
}

// versioned is a policy with its version, which takes longer to compute than a question has.
type versioned struct {
	policy.Policy
	version string
}

// newActivePolicy begins with the daemon's own policy.
func newActivePolicy(base policy.Policy) *activePolicy {
	return &activePolicy{base: versioned{base, policyVersion(base)}, own: map[string]versioned{}}
}

// Base is the daemon's own policy.
func (p *activePolicy) Base() policy.Policy { return p.For("") }

// SetBase replaces the daemon's own policy.
func (p *activePolicy) SetBase(base policy.Policy) {
	v := versioned{base, policyVersion(base)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.base = v
}

// Mode is what is in force: what weir mode said, or the policy's.
func (p *activePolicy) Mode() policy.Mode { return p.ModeOf("") }

// ModeOf is the mode that is in force for a container.
func (p *activePolicy) ModeOf(id string) policy.Mode {
	p.mu.Lock()
	defer p.mu.Unlock()
	return cmp.Or(p.said, p.of(id).Mode)
}

// InForce is the policy of a container in the mode that is in force for it, and its version, which changes with what the policy says and with the mode.
func (p *activePolicy) InForce(id string) (policy.Policy, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.of(id)
	v.Mode = cmp.Or(p.said, v.Mode)
	return v.Policy, string(v.Mode) + "-" + v.version
}

// of needs mu. An empty id is the daemon's own policy.
func (p *activePolicy) of(id string) versioned {
	if own, ok := p.own[id]; ok {
		return own
	}
	return p.base
}

// Say puts a mode in force for all, empty: the policy's; and returns what was said before.
func (p *activePolicy) Say(m policy.Mode) (before policy.Mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, p.said = p.said, m
	return before
}

// For is the policy of a container: its own, or the daemon's.
func (p *activePolicy) For(id string) policy.Policy {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of(id).Policy
}

// InMode is a policy as the kernel gets it: in the mode that is in force for all, and with the name servers.
func (p *activePolicy) InMode(of policy.Policy) policy.Policy {
	p.mu.Lock()
	of.Mode = cmp.Or(p.said, of.Mode)
	p.mu.Unlock()
	if of.Taint.Untrusted {
		of.Resolvers = resolversOf(of.Resolvers) // they are trusted
	}
	return of
}

// SetOwn notes the policy that a session brought.
func (p *activePolicy) SetOwn(id string, own policy.Policy) {
	v := versioned{own, policyVersion(own)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.own[id] = v
}

// DropOwn forgets it, and says whether there was one.
func (p *activePolicy) DropOwn(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.own[id]
	delete(p.own, id)
	return ok
}

// Own are the policies that sessions brought, by container id.
func (p *activePolicy) Own() map[string]policy.Policy {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := make(map[string]policy.Policy, len(p.own))
	for id, v := range p.own {
		own[id] = v.Policy
	}
	return own
}

// policyVersion names a policy by what it says, so that no verdict outlives a change of it.
func policyVersion(p policy.Policy) string {
	data, err := json.Marshal(p)
	if err != nil {
		return fmt.Sprintf("%+v", p)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// resolversOf are the policy's name servers, or the host's.
func resolversOf(configured []netip.Addr) []netip.Addr {
	if len(configured) > 0 {
		return configured
	}
	f, err := os.Open("/etc/resolv.conf")
	if err != nil {
		return nil
	}
	defer f.Close()
	found := dns.ReadConfig(f).Servers
	for i := range found {
		found[i] = found[i].WithZone("")
	}
	return found
}
