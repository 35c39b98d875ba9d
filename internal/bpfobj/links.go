package bpfobj

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// Links are programs that are attached. Each is pinned, so that it outlives the
// daemon, and held open, so that it outlives its pin: a bpf file system can be
// unmounted. Its methods may be called at the same time.
type Links struct {
	dir  string
	mu   sync.Mutex
	held map[string]link.Link
}

// New keeps links below a pin directory.
func New(pinDir string) *Links {
	return &Links{dir: filepath.Join(pinDir, "links"), held: map[string]link.Link{}}
}

// Pin attaches a program and puts its link in place of the one an earlier sensor
// pinned, so that there is no moment without either. What these Links have
// attached already stays as it is.
func (k *Links) Pin(name string, attach func() (link.Link, error)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held[name] != nil {
		return nil
	}
	l, err := attach()
	if err != nil {
		return fmt.Errorf("attach %s: %w", name, err)
	}
	if err := k.pin(name, l); err != nil {
		return errors.Join(err, l.Close())
	}
	k.held[name] = l
	return nil
}

// Trace pins a program that is attached to a function or a trace point of the kernel.
func (k *Links) Trace(name string, program *ebpf.Program) error {
	return k.Pin(name, func() (link.Link, error) { return link.AttachTracing(link.TracingOptions{Program: program}) })
}

// Program is one that is attached to a cgroup, and as what.
type Program struct {
	Program *ebpf.Program
	As      ebpf.AttachType
}

// Attach attaches the program to the cgroup with the given directory.
func (p Program) Attach(dir string) (link.Link, error) {
	return link.AttachCgroup(link.CgroupOptions{Path: dir, Attach: p.As, Program: p.Program})
}

// Cgroup pins programs that are attached to a cgroup, each under its name with an end of its cgroup's own.
func (k *Links) Cgroup(dir, end string, programs map[string]Program) error {
	for name, p := range programs {
		if err := k.Pin(name+end, func() (link.Link, error) { return p.Attach(dir) }); err != nil {
			return err
		}
	}
	return nil
}

func (k *Links) pin(name string, l link.Link) error {
	path := filepath.Join(k.dir, name)
	if err := os.Remove(path + "-new"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove stale pin: %w", err)
	}
	if err := l.Pin(path + "-new"); err != nil {
		return fmt.Errorf("pin %s: %w", name, err)
	}
	if err := os.Rename(path+"-new", path); err != nil {
		return fmt.Errorf("pin %s: %w", name, err)
	}
	if err := l.Unpin(); err != nil { // only forgets the first name, which is gone
		return fmt.Errorf("pin %s: %w", name, err)
	}
	return nil
}

// Restore pins again what is not pinned any more.
func (k *Links) Restore() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return fmt.Errorf("make pin directory: %w", err)
	}
	var errs []error
	for name, l := range k.held {
		if _, err := os.Stat(filepath.Join(k.dir, name)); errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, k.pin(name, l))
		}
	}
	return errors.Join(errs...)
}

// Drop lets go of the links whose name ends so, pins and all: what they were
// attached to is gone.
func (k *Links) Drop(suffix string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		return fmt.Errorf("list pins: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		if l := k.held[e.Name()]; l != nil {
			delete(k.held, e.Name())
			errs = append(errs, l.Close())
		}
		errs = append(errs, os.Remove(filepath.Join(k.dir, e.Name())))
	}
	return errors.Join(errs...)
}

// Release lets go of the links with these names, pins and all, as far as there are any.
func (k *Links) Release(names ...string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	for _, name := range names {
		if l := k.held[name]; l != nil {
			delete(k.held, name)
			errs = append(errs, l.Close())
		}
		if err := os.Remove(filepath.Join(k.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Close lets go of all links; what is pinned stays attached.
func (k *Links) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	for name, l := range k.held {
		delete(k.held, name)
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// Pinned says whether this sensor or an earlier one has pinned a link under that name.
func (k *Links) Pinned(name string) bool {
	_, err := os.Stat(filepath.Join(k.dir, name))
	return err == nil
}

// Maps are the pinned maps of a collection, by name.
type Maps map[string]*ebpf.Map

// add takes those maps of a struct that bpf2go generated which are wanted, by the ebpf tags of its fields.
func (m Maps) add(v reflect.Value, wanted func(*ebpf.Map) bool) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Anonymous {
			m.add(v.Field(i), wanted)
		} else if one, ok := v.Field(i).Interface().(*ebpf.Map); ok && wanted(one) {
			m[field.Tag.Get("ebpf")] = one
		}
	}
}

// Names gives the names of the maps, in no order.
func (m Maps) Names() []string { return slices.Collect(maps.Keys(m)) }

// Restore pins each map under its name in pinDir again, unless something is there.
func (m Maps) Restore(pinDir string) error {
	if err := os.MkdirAll(pinDir, 0o700); err != nil {
		return fmt.Errorf("make pin directory: %w", err)
	}
	var errs []error
	for name, one := range m {
		path := filepath.Join(pinDir, name)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		// forgets the pin that is gone, else nothing would be pinned
		if err := errors.Join(one.Unpin(), one.Pin(path)); err != nil {
			errs = append(errs, fmt.Errorf("pin map %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
