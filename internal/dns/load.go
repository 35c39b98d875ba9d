package dns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/sirupsen/logrus"

	"weir/internal/linux"

	"weir/internal/bpfobj"
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
	failed  atomic.Uint64 // resolvers that could not be started

	mu         sync.Mutex
	replies    []io.Closer // what looks who asks, and whom the sensor answers
	containers map[uint64]*containerDNS
	reals      map[uint64][]namesFakeTargetKey // by grant
	past       RedirectCounts                  // of resolvers that have ended
}

// Load makes or adopts the pinned maps. It attaches programs only where an earlier
// daemon had.
func Load(o RedirectOptions) (*Redirect, error) {
	s := &Redirect{opts: o, containers: map[uint64]*containerDNS{}, reals: map[uint64][]namesFakeTargetKey{}}
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
	for name, a := range s.programs() {
		err := s.opts.Links.Pin(name+suffix(container), func() (link.Link, error) {
			return link.AttachCgroup(link.CgroupOptions{Path: linux.CgroupDir(path), Attach: a.as, Program: a.prog})
		})
		if err != nil {
			return fmt.Errorf("redirect the names of %s: %w", path, err)
		}
	}
	return nil
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
	for _, p := range []program{
		{s.objects.WeirReply4, ebpf.AttachCGroupUDP4Sendmsg},
		{s.objects.WeirReply6, ebpf.AttachCGroupUDP6Sendmsg},
		{s.objects.WeirQuestion, ebpf.AttachCGroupInetIngress},
	} {
		l, err := link.AttachCgroup(link.CgroupOptions{Path: linux.CgroupDir(path), Attach: p.as, Program: p.prog})
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
	for name := range s.programs() {
		pins = append(pins, name+suffix(container))
	}
	return s.opts.Links.Release(pins...)
}

type program struct {
	prog *ebpf.Program
	as   ebpf.AttachType
}

// programs are those of one container, by the first part of their links' names.
func (s *Redirect) programs() map[string]program {
	return map[string]program{
		first:             {s.objects.WeirName4, ebpf.AttachCGroupInet4Connect},
		"weir_name6":      {s.objects.WeirName6, ebpf.AttachCGroupInet6Connect},
		"weir_name_send4": {s.objects.WeirNameSend4, ebpf.AttachCGroupUDP4Sendmsg},
		"weir_name_send6": {s.objects.WeirNameSend6, ebpf.AttachCGroupUDP6Sendmsg},
		"weir_name_recv4": {s.objects.WeirNameRecv4, ebpf.AttachCGroupUDP4Recvmsg},
		"weir_name_recv6": {s.objects.WeirNameRecv6, ebpf.AttachCGroupUDP6Recvmsg},
		"weir_name_peer4": {s.objects.WeirNamePeer4, ebpf.AttachCgroupInet4GetPeername},
		"weir_name_peer6": {s.objects.WeirNamePeer6, ebpf.AttachCgroupInet6GetPeername},
	}
}

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
	var key namesFakeIpKey
	var alias namesFakeIp
	it := s.objects.FakeIps.Iterate()
	for it.Next(&key, &alias) {
		if found[key.Container] == nil {
			found[key.Container] = map[netip.Addr]string{}
		}
		found[key.Container][netip.AddrFrom16(key.Addr).Unmap()] = bpfobj.Text(alias.Name[:])
	}
	if err := it.Err(); err != nil {
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
		s.containers[container] = s.newContainer(container, before)
		if _, err := linux.CgroupPath(container); err != nil {
			continue // Tend forgets it
		}
		if err := s.attach(container); err != nil {
			return err
		}
	}
	var real namesFakeTargetKey
	var to namesFakeTarget
	reals := s.objects.FakeTargets.Iterate()
	for reals.Next(&real, &to) {
		s.reals[real.Grant] = append(s.reals[real.Grant], real)
	}
	if err := reals.Err(); err != nil {
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
