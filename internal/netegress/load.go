package netegress

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"weir/internal/bpfobj"
	"weir/internal/linux"

	"weir/internal/taint"
)

// pollEvery bounds how late a record is told.
const pollEvery = 20 * time.Millisecond

// Options are what Egress needs. All but Types and Ring must be set.
type Options struct {
	Types  *taint.Types // for Load and Prepare
	PinDir string       // the same as State's
	State  *taint.State // stays the caller's; loaded before
	Logger logrus.FieldLogger
	Handle Handler
	// Directory is what the kernel calls the directory that a descriptor of this process has open.
	Directory func(fd int) (device uint32, number uint64, err error)
	Ring      uint32 // bytes of each ring, see bpfobj.Options
}

// Handler is told what the kernel saw. Its methods are called from one
// goroutine each and must not block.
type Handler interface {
	Asked(Ask)          // a verdict is wanted; answer with Grant, Refuse or Wake
	Recorded(Record)    // let through, refused, claimed, dropped or spent
	GrantChanged(Grant) // a grant is over or can be claimed again, see its State
}

// Egress is the kernel side of egress. Its methods may be called at the same time.
type Egress struct {
	egress egressObjects
	packet packetObjects
	peers  peersObjects
	splice struct { // nil: this kernel has no such function
		Program *ebpf.Program `ebpf:"weir_splice"`
	}
	selfLabel struct {
		Program *ebpf.Program `ebpf:"weir_self_label"`
	}
	pins  bpfobj.Maps
	asks  *ringbuf.Reader
	recs  *ringbuf.Reader
	opts  Options
	close sync.Once

	hooking  sync.Mutex // taken before all others
	attached bool

	mu       sync.Mutex
	grants   map[uint64]*live     // see keep
	commands map[command][]opened // what a command was granted lately
	slots    map[uint32]loaded
	bridges  map[uint32][]string // Unix peers of the sensor itself, by slot
	places   map[string]place    // directories of listed Unix peers
	closing  map[uint64]closing  // by grant
	cleared  map[clearing]uint64 // when: ns since boot
	saw      saw
	stirred  chan struct{} // there is something to sweep
	queues   sync.Map      // by container, a *sync.Mutex
	late     late
	lastID   uint64
}

// Load makes or adopts the pinned maps and loads the programs of guarded parents. It attaches nothing.
func Load(o Options) (*Egress, error) {
	e := &Egress{opts: o, grants: map[uint64]*live{}, commands: map[command][]opened{}, slots: map[uint32]loaded{}, bridges: map[uint32][]string{}, places: map[string]place{}, closing: map[uint64]closing{}, cleared: map[clearing]uint64{}, saw: saw{}, stirred: make(chan struct{}, 1)}
	e.pins = bpfobj.Maps{}
	for _, load := range []struct {
		what string
		into any
		from func() (*ebpf.CollectionSpec, error)
	}{
		{"egress", &e.egress.egressMaps, loadEgress}, {"packet", &e.packet, loadPacket}, {"peers", &e.peers.peersMaps, loadPeers},
	} {
		pins, err := bpfobj.Load(load.what, load.into, load.from, bpfobj.Options{PinDir: o.PinDir, Ring: o.Ring, Types: o.Types})
		if err != nil {
			return nil, errors.Join(err, e.Close())
		}
		maps.Copy(e.pins, pins)
	}
	var err error
	if e.asks, err = ringbuf.NewReader(e.egress.HoldReqs); err != nil {
		return nil, errors.Join(fmt.Errorf("open ring of questions: %w", err), e.Close())
	}
	if e.recs, err = ringbuf.NewReader(e.egress.EgressEvents); err != nil {
		return nil, errors.Join(fmt.Errorf("open ring of records: %w", err), e.Close())
	}
	return e, nil
}

// Close ends the readers and lets go of maps and programs; what is pinned stays
// in force.
func (e *Egress) Close() error {
	var errs []error
	e.close.Do(func() {
		for _, r := range []*ringbuf.Reader{e.asks, e.recs} {
			if r != nil {
				errs = append(errs, r.Close())
			}
		}
		errs = append(errs, e.egress.Close(), e.packet.Close(), e.peers.Close(), e.splice.Program.Close(), e.selfLabel.Program.Close())
	})
	return errors.Join(errs...)
}

// Prepare loads the programs of Attach, which the kernel verifies for a second or more.
func (e *Egress) Prepare() error {
	e.hooking.Lock()
	defer e.hooking.Unlock()
	return e.prepare()
}

func (e *Egress) prepare() error {
	if e.peers.WeirUnix != nil {
		return nil
	}
	if e.egress.WeirConnect == nil {
		o := bpfobj.Options{Ring: e.opts.Ring, Types: e.opts.Types, With: &e.egress.egressMaps}
		if _, err := bpfobj.Load("egress", &e.egress.egressPrograms, loadEgress, o); err != nil {
			return err
		}
	}
	o := bpfobj.Options{Ring: e.opts.Ring, Types: e.opts.Types, With: &e.peers.peersMaps}
	for _, v := range []struct {
		function string
		into     any
	}{{"generic_splice_sendpage", &e.splice}, {"security_setselfattr", &e.selfLabel}} {
		has, err := bpfobj.HasFunction(e.opts.Types, v.function)
		if err == nil && has {
			_, err = bpfobj.Load(v.function, v.into, loadVersions, o)
		}
		if err != nil {
			return err
		}
	}
	if _, err := bpfobj.Load("peers", &e.peers.peersPrograms, loadPeers, o); err != nil {
		return err
	}
	e.opts.Types = nil // they are large
	return nil
}

// Attach puts the programs in force that the whole host passes. They are to be there before the first container is: who was below a
// guarded parent before counts as one that ran before it was guarded. It may be called again.
func (e *Egress) Attach() error {
	e.hooking.Lock()
	defer e.hooking.Unlock()
	if e.attached {
		return nil
	}
	if err := e.prepare(); err != nil {
		return err
	}
	hooks, watched := e.hooks(), e.opts.State.Links.Pinned(lastHook)
	for _, names := range [][]string{e.otherHooks(), {lastHook}} {
		if !watched { // also of who was made while the others were attached, which takes seconds
			late, err := e.opts.State.Unwatched()
			e.late.add(late...)
			if err != nil {
				return err
			}
		}
		for _, name := range names {
			if hooks[name] == nil {
				continue // this kernel has no such function
			}
			if err := e.opts.State.Links.Trace(name, hooks[name]); err != nil {
				return err
			}
		}
	}
	e.attached = true
	e.late.attached()
	e.KnowOwn()
	return nil
}

// Release lets go of what an earlier sensor has attached so. Nothing may be guarded.
func (e *Egress) Release() error {
	return e.opts.State.Links.Release(append([]string{lastHook}, e.otherHooks()...)...)
}

// lastHook is attached after all others, and released before them: where it is pinned, they are, though the sensor was killed meanwhile.
const lastHook = "weir_born"

func (e *Egress) otherHooks() []string {
	return slices.DeleteFunc(slices.Collect(maps.Keys(e.hooks())), func(name string) bool { return name == lastHook })
}

// hooks are the programs of Attach, by the names of their links; nil: at a function that this kernel does not have.
func (e *Egress) hooks() map[string]*ebpf.Program {
	return map[string]*ebpf.Program{
		"weir_connect": e.egress.WeirConnect, "weir_sendmsg": e.egress.WeirSendmsg, "weir_create": e.egress.WeirCreate,
		"weir_unix": e.peers.WeirUnix, "weir_unix_send": e.peers.WeirUnixSend, "weir_receive": e.peers.WeirReceive,
		"weir_attach": e.peers.WeirAttach, "weir_traceme": e.peers.WeirTraceme, "weir_unix_close": e.peers.WeirUnixClose, "weir_unix_freed": e.peers.WeirUnixFreed,
		"weir_group": e.peers.WeirGroup, "weir_key": e.peers.WeirKey,
		"weir_getsockopt": e.peers.WeirGetsockopt, "weir_bind": e.peers.WeirBind, "weir_listen": e.peers.WeirListen,
		"weir_accept": e.peers.WeirAccept, "weir_accepted": e.peers.WeirAccepted, "weir_born": e.peers.WeirBorn,
		"weir_recvmsg": e.peers.WeirRecvmsg, "weir_shutdown": e.peers.WeirShutdown,
		"weir_kill": e.peers.WeirKill, "weir_limit": e.peers.WeirLimit, "weir_ipc_made": e.peers.WeirIpcMade,
		"weir_ipc": e.peers.WeirIpc, "weir_key_use": e.peers.WeirKeyUse, "weir_core": e.peers.WeirCore, "weir_module": e.peers.WeirModule,
		"weir_parent": e.peers.WeirParent, "weir_acquire": e.peers.WeirAcquire, "weir_tun": e.peers.WeirTun, "weir_capable": e.peers.WeirCapable, "weir_userns": e.peers.WeirUserns, "weir_device": e.peers.WeirDevice,
		"weir_scheduler": e.peers.WeirScheduler, "weir_nice": e.peers.WeirNice, "weir_ioprio": e.peers.WeirIoprio,
		"weir_notes4": e.packet.WeirNotes4, "weir_notes6": e.packet.WeirNotes6, "weir_room4": e.packet.WeirRoom4, "weir_room6": e.packet.WeirRoom6,
		"weir_error": e.packet.WeirError,
		"weir_mount": e.peers.WeirMount, "weir_move_mount": e.peers.WeirMoveMount, "weir_umount": e.peers.WeirUmount,
		"weir_label": e.peers.WeirLabel, "weir_self_label": e.selfLabel.Program, "weir_splice": e.splice.Program,
		"weir_msgctl": e.peers.WeirMsgctl, "weir_semctl": e.peers.WeirSemctl, "weir_shmctl": e.peers.WeirShmctl,
	}
}

// GuardParent attaches the packet and socket-address programs to a cgroup and so
// to all below it, now and later: no container has a moment without them. KnowOwn is to be called
// when all parents are guarded.
func (e *Egress) GuardParent(path string, slot uint32) error {
	if err := e.attachTo(path); err != nil {
		return err
	}
	late, err := e.opts.State.AddParent(path, slot)
	e.late.add(late...)
	return err
}

// GuardAlone does the same for one cgroup that is a container by itself, outside every guarded parent.
func (e *Egress) GuardAlone(path string, slot uint32) error {
	if err := e.attachTo(path); err != nil {
		return err
	}
	if err := e.opts.State.AddAlone(path, slot); err != nil {
		return err
	}
	e.late.add(path)
	e.KnowOwn()
	return nil
}

func (e *Egress) attachTo(path string) error {
	id, err := linux.CgroupID(path)
	if err != nil {
		return err
	}
	err = e.opts.State.Links.Cgroup(linux.CgroupDir(path), "-"+strconv.FormatUint(id, 10), map[string]bpfobj.Program{
		"weir_packet":       {Program: e.packet.WeirPacket, As: ebpf.AttachCGroupInetEgress},
		"weir_arrival":      {Program: e.packet.WeirArrival, As: ebpf.AttachCGroupInetIngress},
		"weir_connect4":     {Program: e.packet.WeirConnect4, As: ebpf.AttachCGroupInet4Connect},
		"weir_connect6":     {Program: e.packet.WeirConnect6, As: ebpf.AttachCGroupInet6Connect},
		"weir_option":       {Program: e.packet.WeirOption, As: ebpf.AttachCGroupSetsockopt},
		"weir_sock_create":  {Program: e.packet.WeirSockCreate, As: ebpf.AttachCGroupInetSockCreate},
		"weir_sock_release": {Program: e.packet.WeirSockRelease, As: ebpf.AttachCgroupInetSockRelease},
	})
	if err != nil {
		return fmt.Errorf("guard %s: %w", path, err)
	}
	return nil
}

// Pins gives the names of its pinned maps.
func (e *Egress) Pins() []string { return e.pins.Names() }

// Restore pins again those maps that are not pinned any more; State has the links.
func (e *Egress) Restore() error { return e.pins.Restore(e.opts.PinDir) }

// Run reads the rings, ends grants and keeps the books until ctx ends. A reader
// that fails ends it with an error: a sensor never goes blind.
func (e *Egress) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	stop := context.AfterFunc(ctx, func() { e.asks.Close(); e.recs.Close() })
	defer stop()
	group.Go(func() error {
		return bpfobj.ReadRing(ctx, e.asks, nil, func(r *egressRecord) { e.opts.Handle.Asked(askOf(r)) })
	})
	group.Go(func() error {
		pace := bpfobj.NewAdaptivePoll(pollEvery, e.setIdle)
		return errors.Join(bpfobj.ReadRing(ctx, e.recs, pace, e.record), pace.End())
	})
	group.Go(func() error { e.sweep(ctx); return nil })
	group.Go(func() error { e.watchPlaces(ctx); return nil })
	return group.Wait()
}

// setIdle says to the programs whether a record has to wake the reader.
func (e *Egress) setIdle(idle bool) error {
	var value uint32
	if idle {
		value = 1
	}
	if err := e.egress.ReaderIdle.Put(uint32(0), value); err != nil {
		return fmt.Errorf("tell programs who waits: %w", err)
	}
	return nil
}

// Counters sums the kernel's counters over all processors.
func (e *Egress) Counters() (map[string]uint64, error) {
	counts := map[string]uint64{}
	for at, name := range counterNames {
		sum, err := bpfobj.Sum(e.egress.Counters, uint32(at))
		if err != nil {
			return nil, fmt.Errorf("read counter %s: %w", name, err)
		}
		counts[name] = sum
	}
	return counts, nil
}

var counterNames = map[egressCounter]string{
	egressCounterCOUNT_LOST_EXEC:      "lost_exec",
	egressCounterCOUNT_LOST_ASK:       "lost_question",
	egressCounterCOUNT_LOST_RECORD:    "lost_record",
	egressCounterCOUNT_LOST_CGROUP:    "lost_move",
	egressCounterCOUNT_LOST_SECRET:    "lost_secret",
	egressCounterCOUNT_DENIED_CONNECT: "denied_connect",
	egressCounterCOUNT_DENIED_SEND:    "denied_send",
	egressCounterCOUNT_DENIED_SOCKET:  "denied_socket",
	egressCounterCOUNT_DENIED_UNIX:    "denied_unix",
	egressCounterCOUNT_DENIED_RECEIVE: "denied_receive",
	egressCounterCOUNT_DENIED_ATTACH:  "denied_attach",
	egressCounterCOUNT_DROPPED:        "dropped_packet",
	egressCounterCOUNT_HELD:           "held",
	egressCounterCOUNT_INTRUDED:       "intruded",
}

// openPinned opens one pinned map for those that load no programs.
func openPinned(dir, name string) (*ebpf.Map, error) {
	return ebpf.LoadPinnedMap(filepath.Join(dir, name), nil)
}
