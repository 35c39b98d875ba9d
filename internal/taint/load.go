package taint

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/sirupsen/logrus"
	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"weir/internal/bpfobj"
	"weir/internal/linux"
)

// ABI is the form of what this build keeps in the kernel; pins of another one are not taken over.
const ABI = cgroupAbiABI_VERSION

// Types is the kernel's type information, read when first needed: one for all
// that load programs, since reading it is the slowest part of a start. nil: each
// reads its own.
type Types = btf.Cache

// Options are what State needs. All but Types and Ring must be set.
type Options struct {
	Types  *Types
	PinDir string    // directory on a bpf file system
	DB     *bbolt.DB // stays the caller's; bucket "taint" is State's
	Logger logrus.FieldLogger
	Ring   uint32 // see bpfobj.Options
}

// State is the taint of all containers. Its methods may be called at the same time.
type State struct {
	objects cgroupObjects
	pins    bpfobj.Maps
	kernel  kernel // of objects, as is initial
	initial table
	reader  *ringbuf.Reader
	Links   *bpfobj.Links
	dir     string
	db      *bbolt.DB
	logger  logrus.FieldLogger
	close   sync.Once
	carried func(cgroup uint64) Bits // see CarriedBy

	changing   sync.Mutex // epochs
	mu         sync.Mutex
	containers map[string]*record
	lately     map[uint64]*record // by cgroup: see byCgroup
	parents    map[string]uint32  // path → policy slot
	ids        map[string]uint64  // path of a parent → its cgroup's id
	removed    map[uint64]gone
	begins     map[uint64]begin // by a parent's cgroup
	named      int              // entries of single children that the kernel has, as far as is known
}

// Load makes or adopts the pinned maps, loads the programs that watch tasks
// move, and reads what is on disk. It attaches nothing. ErrPins: see there.
func Load(o Options) (*State, error) {
	if err := os.MkdirAll(filepath.Join(o.PinDir, "links"), 0o700); err != nil {
		return nil, fmt.Errorf("make pin directory: %w", err)
	}
	s := &State{Links: bpfobj.New(o.PinDir), dir: o.PinDir, db: o.DB, logger: o.Logger, containers: map[string]*record{}, lately: map[uint64]*record{}, parents: map[string]uint32{}, ids: map[string]uint64{}, removed: map[uint64]gone{}, begins: map[uint64]begin{}}
	if err := CheckPins(o.PinDir); err != nil {
		return nil, err
	}
	var err error
	if s.pins, err = bpfobj.Load("cgroup", &s.objects, loadCgroup, bpfobj.Options{PinDir: o.PinDir, Ring: o.Ring, Types: o.Types}); err != nil {
		return nil, err
	}
	s.kernel, s.initial = &s.objects, s.objects.InitialTaint
	if err := errors.Join(s.settle(), s.Change(func() error { return nil })); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if s.reader, err = ringbuf.NewReader(s.objects.CgroupEvents); err != nil {
		return nil, errors.Join(fmt.Errorf("open ring of moves: %w", err), s.Close())
	}
	if err := errors.Join(s.read(), s.findRemoved(), s.sweepStarts()); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// CarriedBy says what tells the taint that the kernel has a container have by the volumes that it has read from. It is called once, before
// all else but Load.
func (s *State) CarriedBy(f func(cgroup uint64) Bits) { s.carried = f }

func (s *State) through(cgroup uint64) Bits {
	if s.carried == nil || cgroup == 0 {
		return 0
	}
	return s.carried(cgroup)
}

// CheckPins looks at the version that an earlier sensor left in its settings in
// a pin directory. No pins are fine; ErrPins: see there.
func CheckPins(dir string) error {
	m, err := ebpf.LoadPinnedMap(filepath.Join(dir, "config"), nil)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open pinned settings: %w", err)
	}
	defer m.Close()
	var c cgroupSettings
	if err := m.Lookup(uint32(0), &c); err != nil {
		return fmt.Errorf("%w in %s: its settings cannot be read", bpfobj.ErrPins, dir)
	}
	if c.Abi != ABI && c.Abi != 0 {
		return fmt.Errorf("%w in %s: they have %d, this build has %d", bpfobj.ErrPins, dir, c.Abi, ABI)
	}
	return nil
}

// settle makes the kernel's settings this daemon's own; the key of the argv
// hash stays while claims may refer to it.
func (s *State) settle() error {
	any := false
	if err := s.kernel.eachState(func(uint64, cgroupState) { any = true }); err != nil {
		return err
	}
	return s.configure(func(c *cgroupSettings) error {
		if c.Levels == 0 && any {
			c.Levels, c.Parents = ^uint32(0), ^uint64(0) // the settings were lost, the states were not
		}
		c.Abi = ABI
		c.Daemon, c.Heartbeat = 0, 0
		if c.Key != [2]uint64{} {
			return nil
		}
		var key [16]byte
		if _, err := rand.Read(key[:]); err != nil {
			return fmt.Errorf("make key: %w", err)
		}
		c.Key = [2]uint64{binary.NativeEndian.Uint64(key[:8]), binary.NativeEndian.Uint64(key[8:])}
		return nil
	})
}

func (s *State) configure(change func(*cgroupSettings) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var c cgroupSettings
	if err := s.objects.Config.Lookup(uint32(0), &c); err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	if err := change(&c); err != nil {
		return err
	}
	if err := s.objects.Config.Put(uint32(0), &c); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	return nil
}

// SetControl names the control socket by its cookie: no guarded process
// connects to it (B27). This process is the daemon for as long as it is open (B119).
func (s *State) SetControl(cookie uint64) error {
	return s.configure(func(c *cgroupSettings) error {
		c.Control, c.Daemon = cookie, uint32(os.Getpid())
		return nil
	})
}

// Beat tells the kernel that the daemon is alive. Without a beat for 3 s
// nothing is held any more, and all that would be is denied.
func (s *State) Beat() error {
	return s.configure(func(c *cgroupSettings) error {
		c.Heartbeat = Now()
		return nil
	})
}

// findProcessors tells the kernel which devices are processors': a driver has another number each time it is loaded.
func (s *State) findProcessors() error {
	majors, err := linux.MajorsOf(func(driver string) bool { return driver == "kfd" || strings.HasPrefix(driver, "nvidia") })
	if err != nil {
		s.logger.WithError(err).Warn("who is tainted opens no device of a processor: they are not known")
	}
	return s.configure(func(c *cgroupSettings) error {
		clear(c.Processors[:])
		copy(c.Processors[:], majors)
		return nil
	})
}

// Now is the time since boot in ns, the clock of all kernel records.
func Now() uint64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return uint64(ts.Nano())
}

// Move is a cgroup made, or a task moved.
type Move struct {
	Kind      MoveKind
	Container uint64 // cgroup id of the container it belongs to, or that was left
	Cgroup    uint64 // the new cgroup, or the one the task is in now
	From      uint64 // container it came from; the parent of a new cgroup
	Grant     uint64 // with Intruded: the grant that was revoked
	PID       int    // the task's thread group; 0 for a new cgroup
	Start     uint64 // ns since boot
	By        int    // thread group that did it
	ByComm    string
}

// MoveKind says what happened.
type MoveKind uint32

// The kinds of moves.
const (
	Made     = MoveKind(cgroupRecordKindRECORD_MKDIR)
	Moved    = MoveKind(cgroupRecordKindRECORD_MOVE)
	Escaped  = MoveKind(cgroupRecordKindRECORD_ESCAPE)
	Intruded = MoveKind(cgroupRecordKindRECORD_INTRUDE)
)

// Run attaches the programs, calls ready, and gives every move to handle until
// ctx ends. A reader that fails ends it with an error.
func (s *State) Run(ctx context.Context, ready func(), handle func(Move)) error {
	for name, prog := range map[string]*ebpf.Program{
		"weir_mkdir": s.objects.WeirMkdir, "weir_attach_enter": s.objects.WeirAttachEnter,
		"weir_attach_done": s.objects.WeirAttachDone, "weir_exec_begins": s.objects.WeirExecBegins, "weir_exec_left": s.objects.WeirExecLeft, "weir_fork": s.objects.WeirFork,
	} {
		if err := s.Links.Trace(name, prog); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(ctx, func() { s.reader.Close() })
	defer stop()
	ready()
	return bpfobj.ReadRing(ctx, s.reader, nil, func(r *cgroupRecord) {
		handle(Move{
			Kind: MoveKind(r.Kind), Container: r.Container, Cgroup: r.Cgroup, From: r.Parent, Grant: r.Grant,
			PID: int(r.Target), Start: r.Start, By: int(r.Tgid), ByComm: bpfobj.Text(r.Comm[:]),
		})
	})
}

// Close ends the reader and lets go of maps and programs; what is pinned stays
// in force.
func (s *State) Close() error {
	var err error
	s.close.Do(func() {
		if s.reader != nil {
			err = s.reader.Close()
		}
		err = errors.Join(err, s.Links.Close(), s.objects.Close())
	})
	return err
}

// beatEvery is how often the daemon should call Beat, and driversEvery after how many of these it looks for drivers.
const (
	beatEvery    = 500 * time.Millisecond
	driversEvery = 20
)

// KeepBeating beats until ctx ends, while able says that verdicts can be made.
// Afterwards nothing is held any more: the watcher need not wait for a stale beat.
func (s *State) KeepBeating(ctx context.Context, able func() bool) error {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for beats := 0; ctx.Err() == nil; beats++ {
		if beats%driversEvery == 0 {
			if err := s.findProcessors(); err != nil {
				return err
			}
		}
		if able() {
			if err := s.Beat(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return s.configure(func(c *cgroupSettings) error {
		c.Daemon, c.Heartbeat = 0, 0 // also where a change crossed with the kernel's, when the control socket was closed (B119)
		return nil
	})
}

// Pins gives the names of its pinned maps.
func (s *State) Pins() []string { return s.pins.Names() }

// Restore pins again what is not pinned any more.
func (s *State) Restore() error { return errors.Join(s.pins.Restore(s.dir), s.Links.Restore()) }
