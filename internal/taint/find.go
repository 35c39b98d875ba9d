package taint

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"weir/internal/linux"
)

// status adds the taint of ancestors. It reads the kernel's own entries.
func (s *State) status(r *record) Status { return s.statusWith(r, map[string]Bits{}) }

// statusWith does the same; above has the taint of ancestors that were read before, by path.
func (s *State) statusWith(r *record, above map[string]Bits) Status {
	st := Status{Container: r.Container, Own: r.Bits, Taint: r.Bits | s.through(r.CgroupID), Since: r.Since, First: r.Tainted, By: r.By, Why: r.Why}
	if st.First.IsZero() {
		st.First = r.Since
	}
	for path := r.Cgroup; path != "/" && path != ""; {
		path = path[:strings.LastIndex(path, "/")]
		bits, read := above[path]
		if !read {
			if id, err := linux.CgroupID("/" + path); err == nil {
				if e, err := s.entry(id); err == nil {
					bits = Bits(e.Taint)
				}
			}
			above[path] = bits
		}
		st.Taint |= bits
	}
	return st
}

// Find returns a container by id, name, unique prefix of its id or of its runtime's, or any cgroup of a guarded
// parent by its path or as systemd calls it.
func (s *State) Find(name string) (Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(name)
	if err != nil {
		return Status{}, err
	}
	return s.status(r), nil
}

func (s *State) known(id string) (*record, error) {
	if r := s.containers[id]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("unknown container %q: see `weir containers`", id)
}

func (s *State) find(name string) (*record, error) {
	if r := s.containers[name]; r != nil {
		return r, nil
	}
	if strings.HasPrefix(name, "/") {
		return s.findPath(linux.CleanCgroup(name))
	}
	var found []string
	for id, r := range s.containers {
		if r.Name == name || r.Origin.ID == name || len(name) >= 3 && (strings.HasPrefix(id, name) || strings.HasPrefix(r.Origin.ID, name)) {
			found = append(found, id)
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 0:
		if !linux.IsUnit(name) {
			return s.known(name)
		}
		at, err := linux.CgroupNamed(name)
		if err != nil {
			return nil, err
		}
		return s.findPath(at)
	case 1:
		return s.containers[found[0]], nil
	}
	return nil, fmt.Errorf("%q is ambiguous: %s", name, strings.Join(found, ", "))
}

// findPath takes any cgroup at or below a guarded parent: a pod's is one.
func (s *State) findPath(path string) (*record, error) {
	for _, r := range s.containers {
		if r.Cgroup == path {
			return r, nil
		}
	}
	if _, err := linux.CgroupNamed(path); err != nil {
		return nil, err
	}
	if !linux.CgroupWithin(path, slices.Collect(maps.Keys(s.parents))) {
		return nil, fmt.Errorf("cgroup %s is not guarded: guard it with `weir guard --cgroup %s`, or under guard.parents or guard.cgroups in the policy", path, path)
	}
	id, err := linux.CgroupID(path)
	if err != nil {
		return nil, err
	}
	return &record{Container: Container{ID: path, Cgroup: path, CgroupID: id}}, nil
}

// ByCgroup returns the container with a cgroup id, if it is known.
func (s *State) ByCgroup(id uint64) (Status, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.byCgroup(id); r != nil {
		return s.status(r), true
	}
	return Status{}, false
}

// Recorded is the same without a look at the kernel's entries, for each event: the container, with the bits that are known to be set on
// itself. What is above it is in the record that tells of it.
func (s *State) Recorded(id uint64) (c Container, own Bits, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.byCgroup(id)
	if r == nil {
		return Container{}, 0, false
	}
	return r.Container, r.Bits, true
}

// byCgroup is the container with a cgroup id, or nil. It remembers where it found one, and looks whether that still holds.
func (s *State) byCgroup(id uint64) *record {
	if r := s.lately[id]; r != nil && r.CgroupID == id && s.containers[r.ID] == r {
		return r
	}
	delete(s.lately, id)
	for _, r := range s.containers {
		if r.CgroupID == id && id != 0 {
			if len(s.lately) > len(s.containers) {
				clear(s.lately) // most are gone
			}
			s.lately[id] = r
			return r
		}
	}
	return nil
}

// Clean says that the kernel has no taint of the container with a cgroup id, of what is above it, nor of what is known
// below it: programs set taint before anybody is told. What cannot be read is not clean.
func (s *State) Clean(id uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.byCgroup(id)
	if r == nil {
		return false
	}
	at := r.Cgroup
	for _, r := range s.containers {
		if r.CgroupID != 0 && linux.PathWithin(r.Cgroup, at) && (r.Bits != 0 || !s.untainted(r.CgroupID)) {
			return false
		}
	}
	for at != "/" {
		at = path.Dir(at)
		if id, err := linux.CgroupID(at); err != nil || !s.untainted(id) {
			return false
		}
	}
	return true
}

// untainted reads one entry of the kernel's.
func (s *State) untainted(id uint64) bool {
	e, err := s.entry(id)
	return err == nil && e.Taint == 0
}

// Each gives every container to f, in no order, without its taint: f must call no method of s.
func (s *State) Each(f func(Container)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.containers {
		f(r.Container)
	}
}

// Sessions returns the containers that weir guard made, by id.
func (s *State) Sessions() []Status {
	return s.listed(func(r *record) bool { return r.Session })
}

// List returns all containers, by id.
func (s *State) List() []Status {
	return s.listed(func(*record) bool { return true })
}

func (s *State) listed(which func(*record) bool) []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Status
	above := map[string]Bits{}
	for _, r := range s.containers {
		if which(r) {
			all = append(all, s.statusWith(r, above))
		}
	}
	slices.SortFunc(all, func(a, b Status) int { return strings.Compare(a.ID, b.ID) })
	return all
}
