package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"strings"
	"sync"

	"weir/internal/policy"
)

// activePolicy are those in force. Their methods may be called at the same time.
type activePolicy struct {
	mu   sync.Mutex
	base policy.Policy            // the daemon's own
	said policy.Mode              // by weir mode; empty: the policy's
	own  map[string]policy.Policy // of sessions that brought one
}

// newActivePolicy begins with the daemon's own policy.
func newActivePolicy(base policy.Policy) *activePolicy {
	return &activePolicy{base: base, own: map[string]policy.Policy{}}
}

// Base is the daemon's own policy.
func (p *activePolicy) Base() policy.Policy {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.base
}

// SetBase replaces the daemon's own policy.
func (p *activePolicy) SetBase(base policy.Policy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.base = base
}

// Mode is what is in force: what weir mode said, or the policy's.
func (p *activePolicy) Mode() policy.Mode {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.said != "" {
		return p.said
	}
	return p.base.Mode
}

// ModeOf is the mode that is in force for a container.
func (p *activePolicy) ModeOf(id string) policy.Mode {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.said != "" {
		return p.said
	}
	if own, ok := p.own[id]; ok {
		return own.Mode
	}
	return p.base.Mode
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
	if own, ok := p.own[id]; ok {
		return own
	}
	return p.base
}

// InMode is a policy in the mode that is in force for all.
func (p *activePolicy) InMode(of policy.Policy) policy.Policy {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.said != "" {
		of.Mode = p.said
	}
	if of.Taint.Untrusted {
		of.Resolvers = resolversOf(of.Resolvers) // they are trusted
	}
	return of
}

// SetOwn notes the policy that a session brought.
func (p *activePolicy) SetOwn(id string, own policy.Policy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.own[id] = own
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
	return maps.Clone(p.own)
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
	data, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return nil
	}
	var found []netip.Addr
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		if addr, err := netip.ParseAddr(fields[1]); err == nil {
			found = append(found, addr.WithZone(""))
		}
	}
	return found
}
