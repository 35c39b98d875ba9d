//go:build vmguest

package rig

import (
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/google/go-cmp/cmp"

	"weir/internal/control"
)

const pins = "/sys/fs/bpf/weir/"

// Left is what must not grow while containers and commands come and go.
type Left struct {
	FDs, Goroutines       int // of the daemon
	Namespaces            int // network namespaces that a descriptor or a thread of the daemon keeps
	Maps, Programs, Links int // in the kernel
	Cgroups               int
	Entries               map[string]int // of pinned maps; those that are empty are not there
}

// Left counts, with the entries of some pinned maps.
func (s *Sensor) Left(t testing.TB, maps ...string) Left {
	t.Helper()
	l := Left{Entries: map[string]int{}}
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	l.FDs = len(fds)
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/ns/net", s.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	namespaces := map[string]bool{}
	for _, name := range append(fds, threads...) {
		// one that cannot be read is gone
		if to, err := os.Readlink(name); err == nil && strings.HasPrefix(to, "net:[") {
			namespaces[to] = true
		}
	}
	l.Namespaces = len(namespaces)
	st, err := control.NewClient(runDir).Status(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	l.Goroutines = st.Goroutines
	for id, err := ebpf.MapGetNextID(0); err == nil; id, err = ebpf.MapGetNextID(id) {
		l.Maps++
	}
	for id, err := ebpf.ProgramGetNextID(0); err == nil; id, err = ebpf.ProgramGetNextID(id) {
		l.Programs++
	}
	it := new(link.Iterator)
	for it.Next() {
		l.Links++
	}
	it.Close()
	if err := it.Err(); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(cgroupRoot, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			l.Cgroups++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range maps {
		if n := Entries(t, name); n != 0 {
			l.Entries[name] = n
		}
	}
	return l
}

// Entries is how many a pinned map has.
func Entries(t testing.TB, name string) int {
	t.Helper()
	m, err := ebpf.LoadPinnedMap(pins+name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	n := 0
	key, value := make([]byte, m.KeySize()), make([]byte, m.ValueSize())
	for it := m.Iterate(); it.Next(&key, &value); n++ {
	}
	return n
}

// Heartbeat is the daemon's last, as the kernel has it.
func Heartbeat(t testing.TB) uint64 {
	t.Helper()
	m, err := ebpf.LoadPinnedMap(pins+"config", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	settings, err := m.LookupBytes(uint32(0))
	if err != nil {
		t.Fatal(err)
	}
	return binary.NativeEndian.Uint64(settings) // its first member
}

// Settle counts until what is left is want, or does not change any more, for a minute at most.
func (s *Sensor) Settle(t testing.TB, want *Left, maps ...string) Left {
	t.Helper()
	var last Left
	same := 0
	for end := time.Now().Add(Late); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		now := s.Left(t, maps...)
		if same++; !cmp.Equal(now, last) {
			same = 0
		}
		last = now
		if want != nil && cmp.Equal(now, *want) || want == nil && same >= 12 { // longer than what is forgotten by itself
			break
		}
	}
	return last
}
