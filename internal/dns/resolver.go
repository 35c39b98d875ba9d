package dns

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"weir/internal/linux"
	"weir/internal/policy"
)

// Times to live, of what programs are told and of what is open for it.
const (
	minTTL   = 30 * time.Second
	maxTTL   = 10 * time.Minute
	leaseFor = time.Minute // longer: who was told just before the end still connects
	standTTL = 5           // seconds, of an answer that stands for a name: after the taint, programs shall ask again
)

const (
	maxAsking = 64 // look-ups of a container at the same time
	maxCached = 512
	lookFor   = 8 * time.Second // one look-up, all servers
)

// Resolver answers the DNS questions of one container in one network namespace.
// Its methods may be called at the same time.
type Resolver struct {
	opts   Options
	cache  atomic.Pointer[lru.Cache[handed, cached]]
	asking chan struct{}

	mu   sync.Mutex
	told map[string]bool // refused names, of which the log knows
}

// Options are what a Resolver needs; all must be set.
type Options struct {
	Pool   *Pool
	Up     *Upstream
	Six    bool // the container has no IPv4
	Host   Host
	Search []string // suffixes that programs add: nobody knows what they make of a name, unless the policy does, or it has no dot and Up does not
	Counts *Counts
}

// Host is what a Resolver asks of who runs it.
type Host interface {
	// Rules are what the policy opens to a name; false: nothing.
	Rules(name string) ([]policy.Rule, bool)
	// Clean says that nothing stands against the container: names are looked up for it.
	Clean() bool
	// Listed says whether a name may lead to an address that is not public.
	Listed(name string, a netip.Addr) bool
	// Lease opens addresses to the container until then. Programs are told of them afterwards.
	Lease(name string, addrs []netip.Addr, until time.Time) error
	// Refused tells of a name that leads where it may not.
	Refused(name string, a netip.Addr)
}

type cached struct {
	found Found
	err   error
	until time.Time
}

// New makes a Resolver.
func New(o Options) *Resolver {
	r := &Resolver{opts: o, asking: make(chan struct{}, maxAsking), told: map[string]bool{}}
	r.Forget()
	return r
}

// Forget drops what was looked up, and what is just being looked up is not kept: the policy has changed.
func (r *Resolver) Forget() {
	cache, err := lru.New[handed, cached](maxCached)
	if err != nil {
		panic(err) // only of a size below one
	}
	r.cache.Store(cache)
}

// errBusy says that too many look-ups are under way.
var errBusy = errors.New("too many names are looked up at the same time")

// find looks a name up. Of an allowed one it remembers where it leads, and opens that. While the container is clean
// everything is open, and what it is told then is neither opened nor remembered for when it is tainted (B25).
func (r *Resolver) find(ctx context.Context, name string, six bool) (Found, error) {
	clean := r.opts.Host.Clean()
	cache, key := r.cache.Load(), handed{name, six}
	c, ok := cache.Get(key)
	if ok && !clean && time.Until(c.until) > 0 {
		c.found.TTL = time.Until(c.until)
		return c.found, c.err
	}
	select {
	case r.asking <- struct{}{}:
		defer func() { <-r.asking }()
	default:
		return Found{}, errBusy
	}
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	r.opts.Counts.lookedUp.Add(1)
	f, err := r.opts.Up.Lookup(ctx, name, six)
	if err != nil && !errors.Is(err, ErrNoName) {
		return Found{}, err
	}
	f.TTL = min(max(f.TTL, minTTL), maxTTL)
	if clean {
		return f, err
	}
	f.Addrs = slices.DeleteFunc(f.Addrs, func(a netip.Addr) bool { return !r.may(name, a) })
	until := time.Now().Add(f.TTL)
	if err == nil && len(f.Addrs) > 0 {
		if err := r.opts.Host.Lease(name, f.Addrs, until.Add(leaseFor)); err != nil {
			return Found{}, err
		}
	}
	cache.Add(key, cached{f, err, until})
	return f, err
}

// may says whether a name may lead to an address, and tells once if not (B25).
func (r *Resolver) may(name string, a netip.Addr) bool {
	if Public(a) || r.opts.Host.Listed(name, a) {
		return true
	}
	r.opts.Counts.refused.Add(1)
	r.mu.Lock()
	known := r.told[name] || len(r.told) >= maxCached
	if !known {
		r.told[name] = true
	}
	r.mu.Unlock()
	if !known {
		r.opts.Host.Refused(name, a)
	}
	return false
}

// ErrNotPublic says that a name leads only to addresses of one's own network, of
// this machine or of a cloud's services, and nobody listed them (B25).
var ErrNotPublic = errors.New("it leads to an address that is not public: list it under allow, with name and prefix, if it may")

// Resolve finds the address that a name leads to, once it was let through, of IPv6 if six.
func (r *Resolver) Resolve(ctx context.Context, name string, six bool) (netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	clean := r.opts.Host.Clean()
	f, err := r.opts.Up.Lookup(ctx, name, six)
	if err != nil {
		return netip.Addr{}, err
	}
	for _, a := range f.Addrs {
		if clean || r.may(name, a) {
			return a, nil
		}
	}
	if len(f.Addrs) == 0 {
		return netip.Addr{}, ErrNoName
	}
	return netip.Addr{}, ErrNotPublic
}

// kind is what is done with a name.
type kind int

const (
	stand   kind = iota // an address stands for it
	look                // it is looked up
	unknown             // nobody knows it, at once
	here                // this machine
)

// kindOf sorts a name. unknown are those that would go over the local link, to nobody, or that a search list makes of
// others (B24), and those that read as if they led to this machine, or to an address (B147).
func (r *Resolver) kindOf(name string) kind {
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return here
	}
	if !plain(name) {
		return unknown
	}
	if _, ok := r.opts.Host.Rules(name); ok || r.opts.Host.Clean() {
		return look
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	if linux.LocalName(name) || strings.Trim(last, "0123456789") == "" {
		return unknown
	}
	for _, suffix := range []string{"local", "invalid", "onion", "arpa", "use-application-dns.net"} {
		if name == suffix || strings.HasSuffix(name, "."+suffix) {
			return unknown
		}
	}
	completed := len(r.opts.Up.Config().Search) > 0 // names without a dot are, when they are looked up
	for _, suffix := range r.opts.Search {
		if of, ok := strings.CutSuffix(name, "."+suffix); ok && (completed || strings.Contains(of, ".")) {
			return unknown
		}
	}
	return stand
}

// plain: letters, digits, hyphens and underscores, as every host's name that people read.
func plain(name string) bool {
	return name != "" && len(name) <= 253 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}
