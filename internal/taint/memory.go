package taint

import (
	"errors"
	"maps"
	"path"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/sirupsen/logrus"
	"go.etcd.io/bbolt"
)

// Memory is a kernel for tests that load nothing: it keeps what a State that is opened anew finds again.
type Memory struct {
	mu      sync.Mutex
	parents map[string]uint64 // guarded ones: path → id
	states  map[uint64]cgroupState
	initial map[cgroupInitialTaintKey]uint32
	full    bool
}

// NewMemory is one with these guarded parents, by path; no cgroup of this machine may be at or below one.
func NewMemory(parents map[string]uint64) *Memory {
	return &Memory{parents: parents, states: map[uint64]cgroupState{}, initial: map[cgroupInitialTaintKey]uint32{}}
}

// Open makes a State of what m and the disk have, as Load does. What is stored has no cgroup until Guard says so.
func (m *Memory) Open(db *bbolt.DB, logger logrus.FieldLogger) (*State, error) {
	s := &State{
		kernel: m, initial: beginnings{m}, db: db, logger: logger, containers: map[string]*record{}, lately: map[uint64]*record{}, parents: map[string]uint32{},
		ids: maps.Clone(m.parents), removed: map[uint64]gone{}, begins: map[uint64]begin{},
	}
	if err := s.read(); err != nil {
		return nil, err
	}
	for _, id := range m.parents {
		if err := s.keepStarts(id); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Taint sets bits as programs do, before anybody is told.
func (m *Memory) Taint(cgroup uint64, bits Bits) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.states[cgroup]
	e.Taint |= uint32(bits)
	m.states[cgroup] = e
}

// Bits are those of a cgroup.
func (m *Memory) Bits(cgroup uint64) Bits {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Bits(m.states[cgroup].Taint)
}

// Make tells of a cgroup that is made below a parent: it begins with what its name does.
func (m *Memory) Make(at string, cgroup uint64) {
	m.mu.Lock()
	parent := m.parents[path.Dir(at)]
	bits := m.initial[startKey(parent, "")] | m.initial[startKey(parent, path.Base(at))]
	m.mu.Unlock()
	m.Taint(cgroup, Bits(bits))
}

// Fill has no state written from now on, or again.
func (m *Memory) Fill(full bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.full = full
}

func (m *Memory) state(id uint64) (cgroupState, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.states[id], nil
}

func (m *Memory) writeState(c cgroupStateChange) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.full {
		return errors.New("the map is full")
	}
	e := m.states[c.Cgroup]
	c.To.Taint = (c.To.Taint | e.Taint) &^ c.Clear
	m.states[c.Cgroup] = c.To
	return nil
}

func (m *Memory) deleteState(id uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.states, id)
	return nil
}

func (m *Memory) eachState(f func(id uint64, e cgroupState)) error {
	m.mu.Lock()
	all := maps.Clone(m.states)
	m.mu.Unlock()
	for id, e := range all {
		f(id, e)
	}
	return nil
}

func (m *Memory) setEpoch(uint64) error { return nil }

// beginnings is m's map of what children of parents begin with.
type beginnings struct{ m *Memory }

func (b beginnings) Lookup(key, value any) error {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	bits, ok := b.m.initial[*key.(*cgroupInitialTaintKey)]
	if !ok {
		return ebpf.ErrKeyNotExist
	}
	*value.(*uint32) = bits
	return nil
}

func (b beginnings) Put(key, value any) error {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	b.m.initial[*key.(*cgroupInitialTaintKey)] = value.(uint32)
	return nil
}

func (b beginnings) Delete(key any) error {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	delete(b.m.initial, *key.(*cgroupInitialTaintKey))
	return nil
}

func (b beginnings) NextKey(any, any) error { return ebpf.ErrKeyNotExist } // nobody lists them
