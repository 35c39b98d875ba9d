package bpfobj

import (
	"errors"

	"github.com/cilium/ebpf"
)

// Each gives every entry of a map to fn. The error wraps ebpf.ErrIterationAborted if too many were deleted meanwhile.
func Each[K, V any](m *ebpf.Map, fn func(K, V)) error {
	var key K
	var value V
	it := m.Iterate()
	for it.Next(&key, &value) {
		fn(key, value)
	}
	return it.Err()
}

// Keys are those of the entries that which picks.
func Keys[K, V any](m *ebpf.Map, which func(K, V) bool) ([]K, error) {
	var all []K
	err := Each(m, func(key K, value V) {
		if which(key, value) {
			all = append(all, key)
		}
	})
	return all, err
}

// Sum adds up what each processor has counted at a place of an array.
func Sum(m *ebpf.Map, at uint32) (sum uint64, err error) {
	var each []uint64
	err = m.Lookup(at, &each)
	for _, n := range each {
		sum += n
	}
	return sum, err
}

// Delete deletes entries; that one is gone already is no error.
func Delete[K any](m *ebpf.Map, keys ...K) error {
	var errs []error
	for _, key := range keys {
		if err := m.Delete(&key); !errors.Is(err, ebpf.ErrKeyNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
