package dns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
)

// MaxNames is how many addresses a container's pool hands out in its life.
const MaxNames = 4096

// ErrFull says that a container has asked for more names than a pool has room for.
var ErrFull = errors.New("the pool of names is full")

// The networks that synthetic addresses come from, as bpf/names.h has them.
var (
	pool4 = netip.MustParsePrefix("198.18.0.0/15")
	pool6 = netip.MustParsePrefix("fd77:6569:7200::/48")
)

// Synthetic says whether an address is of the networks that a pool hands out.
func Synthetic(a netip.Addr) bool {
	a = a.Unmap()
	return pool4.Contains(a) || pool6.Contains(a)
}

// Store keeps what a pool has handed out: it is in force before a program learns of it.
type Store interface {
	Put(addr netip.Addr, name string) error
}

// Pool hands out the addresses that stand for names in one container. None ever
// stands for another name, since programs remember them. Its methods may be called
// at the same time.
type Pool struct {
	store Store

	mu    sync.Mutex
	names map[netip.Addr]string
	addrs map[handed]netip.Addr
	next  uint32
}

type handed struct {
	name string
	six  bool
}

// NewPool takes up what was handed out before.
func NewPool(store Store, before map[netip.Addr]string) *Pool {
	p := &Pool{store: store, names: map[netip.Addr]string{}, addrs: map[handed]netip.Addr{}, next: 1}
	for addr, name := range before {
		p.names[addr], p.addrs[handed{name, addr.Is6()}] = name, addr
		p.next = max(p.next, number(addr)+1)
	}
	return p
}

func number(a netip.Addr) uint32 {
	if a.Is4() {
		b := a.As4()
		return binary.BigEndian.Uint32(b[:]) & 0x1ffff
	}
	b := a.As16()
	return binary.BigEndian.Uint32(b[12:])
}

func address(n uint32, six bool) netip.Addr {
	if !six {
		b := pool4.Addr().As4()
		binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])|n)
		return netip.AddrFrom4(b)
	}
	b := pool6.Addr().As16()
	binary.BigEndian.PutUint32(b[12:], n)
	return netip.AddrFrom16(b)
}

// Address is the one that stands for a name, of IPv6 if six. ErrFull: see there.
func (p *Pool) Address(name string, six bool) (netip.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if addr, ok := p.addrs[handed{name, six}]; ok {
		return addr, nil
	}
	if len(p.names) >= MaxNames {
		return netip.Addr{}, ErrFull
	}
	addr := address(p.next, six)
	p.next++ // also if it is not stored: it may have been
	if err := p.store.Put(addr, name); err != nil {
		return netip.Addr{}, fmt.Errorf("store the address of %s: %w", name, err)
	}
	p.names[addr], p.addrs[handed{name, six}] = name, addr
	return addr, nil
}

// Name is what an address stands for.
func (p *Pool) Name(addr netip.Addr) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name, ok := p.names[addr.Unmap()]
	return name, ok
}

// All are the addresses that were handed out.
func (p *Pool) All() []netip.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.names))
}
