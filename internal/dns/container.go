package dns

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/bpfobj"
	"weir/internal/linux"
	"weir/internal/policy"
	"weir/internal/taint"
)

// maxOpen is how many network namespaces of a container get a resolver at the same time.
const maxOpen = 8

// containerDNS is what is kept of one container.
type containerDNS struct {
	container uint64
	pool      *Pool
	open      map[uint64]*resolver // by cookie of the network namespace
	sends     bool                 // datagrams that bear an address of their own are led, too
	led       uint64               // when what leads questions last changed, ns since boot
	reading   *linux.Slots         // for each resolv.conf that is being read
	policy    atomic.Pointer[policy.Policy]
	since     time.Time   // of its first taint, as far as is known; zero: none
	clean     atomic.Bool // it was made clean, and not tainted since as far as is known

	leasing sync.Mutex
	leases  map[netip.Addr]map[string]time.Time // name → until when
	freed   map[netip.Addr]time.Time            // when an address of the pool was given a real one while clean
	unfreed bool                                // the last that was tried was given none: the log knows
}

// resolver answers in one network namespace.
type resolver struct {
	*Resolver
	ns      *os.File
	inode   uint64 // of the namespace
	sockets *sockets
	up      *Upstream
	six     bool
}

func (s *Redirect) newContainer(container uint64, before map[netip.Addr]string) *containerDNS {
	b := &containerDNS{
		container: container, pool: NewPool(store{s, container}, before), open: map[uint64]*resolver{}, reading: &linux.Slots{All: maxOpen, Own: maxOpen},
		leases: map[netip.Addr]map[string]time.Time{}, freed: map[netip.Addr]time.Time{},
	}
	b.policy.Store(&policy.Policy{}) // allows no name, until a resolver starts
	return b
}

// refresh takes the policy that is in force for a container.
func (s *Redirect) refresh(b *containerDNS) {
	p := s.opts.Host.NamePolicy(b.container)
	b.policy.Store(&p)
}

// asks has those servers asked that the policy in force lists, else those of a resolv.conf. Its suffixes count for its servers only: who may
// write there would choose where an allowed name leads (B149).
func (b *containerDNS) asks(conf Config) func() Config {
	return func() Config {
		if listed := b.policy.Load().Resolvers; len(listed) > 0 {
			return Config{Servers: listed}
		}
		return conf
	}
}

// Open starts a resolver for a tainted container in the network namespace of one of its processes, if there is none. Since is the time of the
// taint: a resolv.conf that was changed afterwards is not believed. The error wraps linux.ErrGone if the process has ended.
func (s *Redirect) Open(container uint64, pid int, since time.Time) error {
	err := s.start(container, pid, since)
	if err != nil && !errors.Is(err, linux.ErrGone) && !errors.Is(err, fs.ErrNotExist) {
		s.unserved.Add(1)
	}
	return err
}

func (s *Redirect) start(container uint64, pid int, since time.Time) error {
	inode, err := linux.Namespace(pid, "net")
	s.mu.Lock()
	b := s.containers[container]
	if b == nil {
		b = s.newContainer(container, nil)
		s.containers[container] = b
	}
	b.clean.Store(false)
	if b.since.IsZero() || since.Before(b.since) {
		b.since = since
	}
	since = b.since
	open := b.answersIn(inode)
	s.mu.Unlock()
	if err != nil || open {
		return err
	}
	its, _ := linux.Soon(b.reading, "", confTime, func() seen { return configOf(pid, since) })
	if its.err != nil {
		return its.err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.containers[container] != b {
		return linux.ErrGone
	}
	if b.answersIn(inode) {
		return nil
	}
	if len(b.open) >= maxOpen {
		return fmt.Errorf("start a resolver for process %d: its container has %d already", pid, maxOpen)
	}
	if err := s.attach(container); err != nil {
		return err
	}
	// who is not held would have its first question refused; who is only watched is not asked about what it sends
	if !s.opts.Host.NamePolicy(container).Hold || s.opts.Host.Clean(container) {
		if err := s.leadDatagrams(b); err != nil {
			return err
		}
	}
	ns, err := linux.OpenNetwork(pid)
	if err != nil {
		return err
	}
	r, cookie, err := s.begin(b, ns, its)
	if err != nil {
		return errors.Join(err, ns.Close())
	}
	r.inode = inode
	b.open[cookie] = r
	b.led = taint.Now()
	return nil
}

// answersIn says whether there is a resolver in a network namespace.
func (b *containerDNS) answersIn(inode uint64) bool {
	for _, r := range b.open {
		if r.inode == inode {
			return true
		}
	}
	return false
}

// begin opens the sockets, answers on them, and has questions go there.
func (s *Redirect) begin(b *containerDNS, ns *os.File, its seen) (*resolver, uint64, error) {
	var at place
	trusted := hosts(ns)
	r := &resolver{ns: ns, up: &Upstream{Config: b.asks(Config{}), Dial: dialer(ns)}}
	if !trusted { // only those that the policy lists, asked from the sensor's own
		r.up.Dial = dial
	}
	if its.believed && trusted {
		r.up.Config = b.asks(its.conf)
	}
	s.refresh(b)
	err := linux.InNetwork(ns, func() (err error) {
		if at, err = lookAt(); err == nil {
			r.sockets, err = listenOn()
		}
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	if err := s.watchReplies(); err != nil {
		r.sockets.close()
		return nil, 0, err
	}
	err = r.sockets.each(func(fd uintptr) error {
		return s.objects.ResolverSks.Put(uint32(fd), b.container)
	})
	if err != nil {
		r.sockets.close()
		return nil, 0, fmt.Errorf("mark the resolver's sockets: %w", err)
	}
	r.six = at.six
	r.Resolver = New(Options{Pool: b.pool, Up: r.up, Six: at.six, Host: host{s, b}, Search: its.conf.Search, Counts: &s.Counts})
	for _, c := range r.sockets.udp {
		s.running.Go(func() { r.ServeUDP(s.ctx, c) })
	}
	for _, l := range r.sockets.tcp {
		s.running.Go(func() { r.ServeTCP(s.ctx, l) })
	}
	if err := s.tell(b, at.cookie, r); err != nil {
		r.sockets.close()
		return nil, 0, err
	}
	return r, at.cookie, nil
}

// tell has the kernel lead questions to a resolver.
func (s *Redirect) tell(b *containerDNS, cookie uint64, r *resolver) error {
	key, value := namesResolverKey{Container: b.container, Netns: cookie}, namesResolver{Port: uint32(r.sockets.port)}
	if r.sockets.six {
		value.Flags |= namesResolverFlagRESOLVER_SIX
	}
	if b.sends {
		value.Flags |= namesResolverFlagRESOLVER_SENDS
	}
	if err := s.objects.Resolvers.Put(&key, &value); err != nil {
		return fmt.Errorf("write resolver: %w", err)
	}
	return nil
}

// end takes a resolver away: questions are judged as other connects again.
func (s *Redirect) end(b *containerDNS, cookie uint64) {
	r := b.open[cookie]
	delete(b.open, cookie)
	if s.ctx.Err() == nil { // else the next daemon's takes its place
		key := namesResolverKey{Container: b.container, Netns: cookie}
		if err := bpfobj.Delete(s.objects.Resolvers, key); err != nil {
			s.opts.Logger.WithError(err).Error("delete resolver")
		}
	}
	r.sockets.close()
	r.ns.Close()
}

// Tend ends the resolvers of network namespaces that no process of their container
// is in any more, and forgets containers that are gone.
func (s *Redirect) Tend() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for container, b := range s.containers {
		path, err := linux.CgroupPath(container)
		if errors.Is(err, unix.ESTALE) || errors.Is(err, unix.ENOENT) {
			errs = append(errs, s.forget(b))
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.expire(b)
		if len(b.open) == 0 {
			continue
		}
		pids, err := linux.CgroupTree(path)
		if err != nil {
			continue
		}
		live := linux.Namespaces(pids, "net")
		for cookie, r := range b.open {
			if live[r.inode] == 0 {
				s.end(b, cookie)
			}
		}
	}
	return errors.Join(errs...)
}

// forget drops all that is kept of a container that is gone.
func (s *Redirect) forget(b *containerDNS) error {
	for cookie := range b.open {
		s.end(b, cookie)
	}
	errs := []error{s.detach(b.container), s.dropLeases(func(k namesLeaseKey) bool { return k.Container == b.container })}
	for _, addr := range b.pool.All() {
		key := namesFakeIpKey{Container: b.container, Addr: addr.As16()}
		errs = append(errs, bpfobj.Delete(s.objects.FakeIps, key),
			bpfobj.Delete(s.objects.FakeTargets, namesFakeTargetKey{Container: b.container, Addr: addr.As16()}))
	}
	delete(s.containers, b.container)
	return errors.Join(errs...)
}

// host is what one container's resolvers ask.
type host struct {
	*Redirect
	of *containerDNS
}

func (h host) Rules(name string) ([]policy.Rule, bool) {
	rules := h.of.policy.Load().NameRules(name)
	return rules, len(rules) > 0
}

// Clean asks again where it may be so: taint comes from many sides.
func (h host) Clean() bool { return h.of.clean.Load() && h.opts.Host.Clean(h.of.container) }

func (h host) Listed(name string, a netip.Addr) bool { return h.of.policy.Load().Leads(name, a) }

func (h host) Refused(name string, a netip.Addr) {
	h.opts.Host.NameRefused(h.of.container, name, a)
}

// Name is what an address stands for in a container.
func (s *Redirect) Name(container uint64, a netip.Addr) (string, bool) {
	if !Synthetic(a) {
		return "", false
	}
	s.mu.Lock()
	b := s.containers[container]
	s.mu.Unlock()
	if b == nil {
		return "", false
	}
	return b.pool.Name(a)
}

// Resolve looks up where an address of the pool leads, from where a process of the
// container stands, and checks it.
func (s *Redirect) Resolve(ctx context.Context, container uint64, pid int, a netip.Addr) (netip.Addr, error) {
	s.mu.Lock()
	b := s.containers[container]
	var r *resolver
	if b != nil {
		r = b.near(pid)
	}
	s.mu.Unlock()
	if r == nil {
		return netip.Addr{}, errors.New("look up a name: no resolver runs for its container")
	}
	name, ok := b.pool.Name(a)
	if !ok {
		return netip.Addr{}, fmt.Errorf("look up a name: %s stands for none", a)
	}
	real, err := r.Resolve(ctx, name, a.Is6())
	if err != nil {
		return real, fmt.Errorf("look up %s: %w", name, err)
	}
	return real, nil
}

// near is the resolver in the network namespace of a process, or any, one that has name servers first.
func (b *containerDNS) near(pid int) *resolver {
	inode, _ := linux.Namespace(pid, "net") // 0 if it is gone
	var any *resolver
	for _, r := range b.open {
		if r.inode == inode {
			return r
		}
		if any == nil || len(any.up.Config().Servers) == 0 {
			any = r
		}
	}
	return any
}
