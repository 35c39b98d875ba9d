package taint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Use is how full a map is: entries, or of a ring bytes that were not read yet.
type Use struct {
	Name        string
	Ring        bool
	Used, Limit uint64
}

// Uses counts what is in hash maps, tries and rings. It walks through the keys, since the kernel counts none; entries that
// come and go meanwhile may or may not be counted.
func Uses(maps ...*ebpf.Map) ([]Use, error) {
	var all []Use
	for _, m := range maps {
		info, err := m.Info()
		if err != nil {
			return nil, fmt.Errorf("read name of map: %w", err)
		}
		u := Use{Name: info.Name, Ring: m.Type() == ebpf.RingBuf, Limit: uint64(m.MaxEntries())}
		if u.Ring {
			u.Used, err = unread(m)
		} else {
			u.Used, err = entries(m)
		}
		if err != nil {
			return nil, fmt.Errorf("count what is in %s: %w", u.Name, err)
		}
		all = append(all, u)
	}
	return all, nil
}

// unread is how far a ring's producer is ahead of its consumer. It looks at the two pages that hold their positions, not through
// the ring's reader, which may be closed meanwhile.
func unread(m *ebpf.Map) (uint64, error) {
	var at [2]uint64 // consumer, producer
	for i := range at {
		page := os.Getpagesize()
		data, err := unix.Mmap(m.FD(), int64(i*page), page, unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return 0, fmt.Errorf("map positions: %w", err)
		}
		at[i] = binary.NativeEndian.Uint64(data)
		if err := unix.Munmap(data); err != nil {
			return 0, fmt.Errorf("unmap positions: %w", err)
		}
	}
	return at[1] - at[0], nil // read later, the producer is never behind
}

func entries(m *ebpf.Map) (uint64, error) {
	var key []byte
	for n := uint64(0); ; n++ {
		var err error
		if key == nil {
			key, err = m.NextKeyBytes(nil)
		} else {
			key, err = m.NextKeyBytes(key)
		}
		if err != nil {
			return 0, err
		}
		if key == nil || n >= uint64(m.MaxEntries()) { // a key that was deleted meanwhile starts over
			return n, nil
		}
	}
}

// Uses tells how full State's own maps are.
func (s *State) Uses() ([]Use, error) { return Uses(s.objects.Cgroups, s.objects.Moves) }

// SinceBeat is how long ago the last beat was; false: there was none, or the daemon has ended.
func (s *State) SinceBeat() (time.Duration, bool, error) {
	var c cgroupSettings
	if err := s.objects.Config.Lookup(uint32(0), &c); err != nil {
		return 0, false, fmt.Errorf("read settings: %w", err)
	}
	now := Now()
	return time.Duration(max(now, c.Heartbeat) - c.Heartbeat), c.Heartbeat != 0, nil
}

// Run is what the kernel measured of a program.
type Run struct {
	Name  string
	Count uint64
	Time  time.Duration
}

// Measured says whether the kernel measures how long programs run. That costs time, and is for the operator to switch on.
func Measured() (bool, error) {
	data, err := os.ReadFile("/proc/sys/kernel/bpf_stats_enabled")
	if err != nil {
		return false, fmt.Errorf("read whether programs are measured: %w", err)
	}
	return strings.TrimSpace(string(data)) == "1", nil
}

// Runs tells of each program that is attached by these links, once.
func (k *Links) Runs() ([]Run, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []Run
	seen := map[ebpf.ProgramID]bool{}
	for name, l := range k.held {
		info, err := l.Info()
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", name, err)
		}
		if seen[info.Program] {
			continue
		}
		seen[info.Program] = true
		run, err := ran(info.Program)
		if err != nil {
			return nil, fmt.Errorf("look at the program of %s: %w", name, err)
		}
		all = append(all, run)
	}
	return all, nil
}

func ran(id ebpf.ProgramID) (Run, error) {
	p, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return Run{}, err
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil {
		return Run{}, err
	}
	stats, err := p.Stats()
	if err != nil {
		return Run{}, err
	}
	return Run{info.Name, stats.RunCount, stats.Runtime}, nil
}

// Check says what is wrong with the links: nothing is attached, the kernel does not have one any more, or one is not pinned.
func (k *Links) Check() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.held) == 0 {
		return errors.New("no program is attached")
	}
	var errs []error
	for name, l := range k.held {
		if _, err := l.Info(); err != nil {
			errs = append(errs, fmt.Errorf("%s is not attached: %w", name, err))
		} else if _, err := os.Stat(filepath.Join(k.dir, name)); err != nil {
			errs = append(errs, fmt.Errorf("%s is not pinned: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
