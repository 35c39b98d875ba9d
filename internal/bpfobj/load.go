package bpfobj

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// ErrPins says that another version's maps are pinned.
var ErrPins = errors.New("pins of another version")

// Options are how collections are loaded.
type Options struct {
	PinDir string     // where maps are pinned, or adopted
	Ring   uint32     // size of the ring buffers in bytes, a power of two and of whole pages; 0: as they were built
	Types  *btf.Cache // kernel types that were read before; nil: they are read again
	With   any        // pointer to a struct with maps that are there already, the collection's among them; nil: none are
}

// Load loads a collection, or what the struct has fields for, into one that bpf2go generated for its objects, and gives its pinned
// maps. what names the collection in errors. ErrPins: a map is pinned that is not like the collection's.
func Load(what string, into any, from func() (*ebpf.CollectionSpec, error), o Options) (Maps, error) {
	spec, err := from()
	if err != nil {
		return nil, fmt.Errorf("read %s programs: %w", what, err)
	}
	for _, m := range spec.Maps {
		if o.Ring != 0 && m.Type == ebpf.RingBuf {
			m.MaxEntries = o.Ring
		}
	}
	have := Maps{}
	if o.With != nil {
		have.add(reflect.ValueOf(o.With).Elem(), func(*ebpf.Map) bool { return true })
	}
	for name := range have {
		if spec.Maps[name] == nil {
			delete(have, name)
		}
	}
	err = spec.LoadAndAssign(into, &ebpf.CollectionOptions{Maps: ebpf.MapOptions{PinPath: o.PinDir}, MapReplacements: have, Cache: o.Types})
	if errors.Is(err, ebpf.ErrMapIncompatible) {
		err = fmt.Errorf("%w in %s: %w", ErrPins, o.PinDir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("load %s programs: %w", what, err)
	}
	maps := Maps{}
	maps.add(reflect.ValueOf(into).Elem(), (*ebpf.Map).IsPinned)
	return maps, nil
}

// HasFunction says whether the kernel has a function. types are its types that were read before; nil: they are read again.
func HasFunction(types *btf.Cache, name string) (bool, error) {
	if types == nil {
		types = btf.NewCache()
	}
	spec, err := types.Kernel()
	if err != nil {
		return false, fmt.Errorf("read the kernel's types: %w", err)
	}
	var f *btf.Func
	if err := spec.TypeByName(name, &f); errors.Is(err, btf.ErrNotFound) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("look for %s: %w", name, err)
	}
	return true, nil
}
