package bpfobj

import (
	"encoding/binary"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// MapStat is how full a map is: entries, or of a ring bytes that were not read yet.
type MapStat struct {
	Name        string
	Ring        bool
	Used, Limit uint64
}

// MapStats counts what is in hash maps, tries and rings. It walks through the keys, since the kernel counts none; entries that
// come and go meanwhile may or may not be counted.
func MapStats(maps ...*ebpf.Map) ([]MapStat, error) {
	var all []MapStat
	for _, m := range maps {
		info, err := m.Info()
		if err != nil {
			return nil, fmt.Errorf("read name of map: %w", err)
		}
		u := MapStat{Name: info.Name, Ring: m.Type() == ebpf.RingBuf, Limit: uint64(m.MaxEntries())}
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
