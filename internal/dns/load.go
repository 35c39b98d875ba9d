package dns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"weir/internal/bpfobj"
	"weir/internal/linux"
	"weir/internal/policy"
	"weir/internal/taint"
)

// RedirectOptions are what Load needs. All but Types must be set.
type RedirectOptions struct {
	Types  *taint.Types // for Load and Prepare
	PinDir string       // the same as the Links'
	Links  *bpfobj.Links
	Logger logrus.FieldLogger
	Host   RedirectHost
}

// RedirectHost is what Steer asks of the daemon.
type RedirectHost interface {
	// NamePolicy is what is in force for a container, by cgroup id.
	NamePolicy(container uint64) policy.Policy
	// Clean says that nothing stands against a container: no taint, and no mode.
	Clean(container uint64) bool
	// NameRefused tells of a name that leads where it may not; it does not block.
	NameRefused(container uint64, name string, to netip.Addr)
}

// Redirect keeps the names of all containers. Its methods may be called at the same time.
type Redirect struct {
	objects namesObjects
	pins    bpfobj.Maps
	opts    RedirectOptions
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	Counts

	mu         sync.Mutex
	replies    []io.Closer // what looks who asks, and whom the sensor answers
	containers map[uint64]*containerDNS
	targets    map[uint64][]namesFakeTargetKey // by grant
}

// Load makes or adopts the pinned maps. It attaches programs only where an earlier
// daemon had.
func Load(o RedirectOptions) (*Redirect, error) {
	s := &Redirect{opts: o, containers: map[uint64]*containerDNS{}, targets: map[uint64][]namesFakeTargetKey{}}
	var err error
	if s.pins, err = bpfobj.Load("names", &s.objects.namesMaps, loadNames, bpfobj.Options{PinDir: o.PinDir, Types: o.Types}); err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.adopt(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Prepare loads the programs, which the first tainted container would wait for.
func (s *Redirect) Prepare() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prepare()
}

func (s *Redirect) prepare() error {
	if s.objects.WeirName4 != nil {
		return nil
	}
	o := bpfobj.Options{Types: s.opts.Types, With: &s.objects.namesMaps}
	if _, err := bpfobj.Load("names", &s.objects.namesPrograms, loadNames, o); err != nil {
		return err
	}
	s.opts.Types = nil
	return nil
}

// attach puts the programs on a container's cgroup, and so on all below it, for as
// long as it lives: a host without a tainted container pays nothing for them
// (docs/decisions/0009).
func (s *Redirect) attach(container uint64) error {
	path, err := linux.CgroupPath(container)
	if err != nil {
		return err
	}
	if err := s.prepare(); err != nil {
		return err
	}
	return s.put(container, path, s.programs())
}

func (s *Redirect) put(container uint64, path string, programs map[string]bpfobj.Program) error {
	if err := s.opts.Links.Cgroup(linux.CgroupDir(path), suffix(container), programs); err != nil {
		return fmt.Errorf("redirect the names of %s: %w", path, err)
	}
	return nil
}

// leadDatagrams has datagrams of a container led that bear an address of their own. While there is a program for that anywhere,
// each datagram of the host on a socket that is not connected pays for it.
func (s *Redirect) leadDatagrams(b *containerDNS) error {
	if b.sends {
		return nil
	}
	path, err := linux.CgroupPath(b.container)
	if err != nil {
		return err
	}
	if err := errors.Join(s.prepare(), s.put(b.container, path, s.senders())); err != nil {
		return err
	}
	b.sends = true
	var errs []error
	for cookie, r := range b.open { // afterwards: who reads it sends at once
		errs = append(errs, s.tell(b, cookie, r))
	}
	b.led = taint.Now()
	return errors.Join(errs...)
}

// Asked is told that a container asked for a name by a question that no resolver got, at a time since boot in ns. It says whether the same
// question may be led to one if it is put again, since what leads has changed after it.
func (s *Redirect) Asked(container, at uint64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.containers[container]
	if b == nil {
		return false, nil
	}
	for cookie := range b.open {
		var value namesResolver
		err := s.objects.Resolvers.Lookup(&namesResolverKey{Container: container, Netns: cookie}, &value)
		if err == nil && value.Flags&namesResolverFlagRESOLVER_WANTED != 0 {
			if err := s.leadDatagrams(b); err != nil {
				return false, err
			}
		}
	}
	return at < b.led, nil
}

// LeadDatagrams is to be called before a container that may know addresses of the pool is let send there, since the datagrams that it
// addresses to those are to be led, too. containers: none: all.
func (s *Redirect) LeadDatagrams(containers ...uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for container, b := range s.containers {
		if (len(containers) > 0 && !slices.Contains(containers, container)) || len(b.pool.All()) == 0 {
			continue
		}
		if err := s.leadDatagrams(b); err != nil && !errors.Is(err, unix.ESTALE) && !errors.Is(err, unix.ENOENT) { // else it is gone
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// watchReplies has the kernel look who asks, and whom an answer goes to. The link ends with this process, as what answers does.
func (s *Redirect) watchReplies() error {
	if s.replies != nil {
		return nil
	}
	path, err := linux.CgroupOf(os.Getpid())
	if err != nil {
		return err
	}
	var links []io.Closer
	for _, p := range []bpfobj.Program{
		{Program: s.objects.WeirReply, As: ebpf.AttachCGroupInetEgress},
		{Program: s.objects.WeirQuestion, As: ebpf.AttachCGroupInetIngress},
	} {
		l, err := p.Attach(linux.CgroupDir(path))
		if err != nil {
			return errors.Join(fmt.Errorf("look at the resolver's questions and answers: %w", err), closeAll(links))
		}
		links = append(links, l)
	}
	s.replies = links
	return nil
}

func closeAll(links []io.Closer) error {
	var errs []error
	for _, l := range links {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// detach lets go of them. Others have programs on the same cgroup, which may have to stay for longer.
func (s *Redirect) detach(container uint64) error {
	var pins []string
	for _, programs := range []map[string]bpfobj.Program{s.senders(), s.programs()} {
		for name := range programs {
			pins = append(pins, name+suffix(container))
		}
	}
	return s.opts.Links.Release(pins...)
}

// programs are those of one container, by the first part of their links' names.
func (s *Redirect) programs() map[string]bpfobj.Program {
	return map[string]bpfobj.Program{
		first:             {Program: s.objects.WeirName4, As: ebpf.AttachCGroupInet4Connect},
		"weir_name6":      {Program: s.objects.WeirName6, As: ebpf.AttachCGroupInet6Connect},
		"weir_name_recv4": {Program: s.objects.WeirNameRecv4, As: ebpf.AttachCGroupUDP4Recvmsg},
		"weir_name_recv6": {Program: s.objects.WeirNameRecv6, As: ebpf.AttachCGroupUDP6Recvmsg},
		"weir_name_peer4": {Program: s.objects.WeirNamePeer4, As: ebpf.AttachCgroupInet4GetPeername},
		"weir_name_peer6": {Program: s.objects.WeirNamePeer6, As: ebpf.AttachCgroupInet6GetPeername},
	}
}

// senders are those of one that sends datagrams which bear an address of their own.
func (s *Redirect) senders() map[string]bpfobj.Program {
	return map[string]bpfobj.Program{
		firstSender:       {Program: s.objects.WeirNameSend4, As: ebpf.AttachCGroupUDP4Sendmsg},
		"weir_name_send6": {Program: s.objects.WeirNameSend6, As: ebpf.AttachCGroupUDP6Sendmsg},
	}
}

// firstSender tells a later daemon the same of senders.
const firstSender = "weir_name_send4"

// first is the program by whose links a later daemon finds the containers of an earlier one.
const first = "weir_name4"

func suffix(container uint64) string { return "-" + strconv.FormatUint(container, 10) }

// attached lists the containers that an earlier daemon has put its programs on.
func (s *Redirect) attached() ([]uint64, error) {
	pins, err := filepath.Glob(filepath.Join(s.opts.PinDir, "links", first+"-*"))
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	var all []uint64
	for _, pin := range pins {
		_, number, _ := strings.Cut(filepath.Base(pin), "-")
		if id, err := strconv.ParseUint(number, 10, 64); err == nil {
			all = append(all, id)
		}
	}
	return all, nil
}

// Pins gives the names of its pinned maps.
func (s *Redirect) Pins() []string { return s.pins.Names() }

// Restore pins again those maps that are not pinned any more.
func (s *Redirect) Restore() error { return s.pins.Restore(s.opts.PinDir) }

// MapStats tells how full the maps of names are.
func (s *Redirect) MapStats() ([]bpfobj.MapStat, error) {
	return bpfobj.MapStats(s.objects.FakeIps, s.objects.DnsLeases, s.objects.FakeTargets, s.objects.Resolvers)
}

// Close ends the resolvers and lets go of maps and programs; what is pinned stays
// in force, and questions to a resolver that has ended are refused.
func (s *Redirect) Close() error {
	if s.cancel != nil {
		s.cancel()
	}
	s.mu.Lock()
	for _, b := range s.containers {
		for cookie := range b.open {
			s.end(b, cookie)
		}
	}
	s.mu.Unlock()
	s.running.Wait()
	return errors.Join(closeAll(s.replies), s.objects.Close())
}

// adopt takes up what an earlier daemon has handed out. Its leases are void: it is
// not known for which names they were.
func (s *Redirect) adopt() error {
	found := map[uint64]map[netip.Addr]string{}
	err := bpfobj.Each(s.objects.FakeIps, func(key namesFakeIpKey, alias namesFakeIp) {
		if found[key.Container] == nil {
			found[key.Container] = map[netip.Addr]string{}
		}
		found[key.Container][netip.AddrFrom16(key.Addr).Unmap()] = bpfobj.Text(alias.Name[:])
	})
	if err != nil {
		return fmt.Errorf("list names: %w", err)
	}
	attached, err := s.attached()
	if err != nil {
		return err
	}
	for _, container := range attached {
		if found[container] == nil {
			found[container] = map[netip.Addr]string{}
		}
	}
	for container, before := range found {
		b := s.newContainer(container, before)
		s.containers[container] = b
		if _, err := linux.CgroupPath(container); err != nil {
			continue // Tend forgets it
		}
		led := s.opts.Links.Pinned(firstSender+suffix(container)) || !s.opts.Links.Pinned(first+suffix(container))
		if err := s.attach(container); err != nil {
			return err
		}
		if led {
			if err := s.leadDatagrams(b); err != nil {
				return err
			}
		}
	}
	err = bpfobj.Each(s.objects.FakeTargets, func(real namesFakeTargetKey, _ namesFakeTarget) {
		s.targets[real.Grant] = append(s.targets[real.Grant], real)
	})
	if err != nil {
		return fmt.Errorf("list addresses of names: %w", err)
	}
	return s.dropLeases(func(namesLeaseKey) bool { return true })
}

// store puts what a pool hands out where the kernel finds it.
type store struct {
	redirect  *Redirect
	container uint64
}

func (o store) Put(addr netip.Addr, name string) error {
	key, value := namesFakeIpKey{Container: o.container, Addr: addr.As16()}, namesFakeIp{}
	if len(name) >= len(value.Name) {
		return fmt.Errorf("a name of %d bytes", len(name))
	}
	for i := range len(name) {
		value.Name[i] = int8(name[i])
	}
	return o.redirect.objects.FakeIps.Update(&key, &value, ebpf.UpdateNoExist)
}

var _ Store = store{}
