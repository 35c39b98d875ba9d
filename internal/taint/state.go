package taint

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/cilium/ebpf"

	"weir/internal/event"
)

// Container is a guarded cgroup as the host knows it.
type Container struct {
	ID       string `json:"id"` // stable over restarts
	Name     string `json:"name,omitempty"`
	Cgroup   string `json:"cgroup"` // path below the cgroup root
	CgroupID uint64 `json:"cgroup_id"`
	Agent    int    `json:"agent,omitempty"`   // process that commands descend from; 0: unknown
	Session  bool   `json:"session,omitempty"` // made by weir guard, over when its command ends
	Policy   uint32 `json:"-"`                 // slot of its own policy; 0: its parent's
	Dir      string `json:"dir,omitempty"`     // of a session: where its command began
	Text     string `json:"policy,omitempty"`  // its own policy, as YAML
	Alone    bool   `json:"alone,omitempty"`   // guarded by itself, outside every guarded parent
	Origin   Origin `json:"origin,omitzero"`
}

// Event is what the log tells of it, when it has these bits.
func (c Container) Event(bits Bits) event.Container {
	o := c.Origin
	return event.Container{
		ID: c.ID, Name: c.Name, Cgroup: c.Cgroup, CgroupID: c.CgroupID, Taint: bits.Names(),
		Runtime: o.Runtime, Namespace: o.Namespace, RuntimeID: o.ID, Image: o.Image, Pod: o.Pod, PodNamespace: o.PodNamespace, PodUID: o.PodUID,
	}
}

// Origin is what a runtime knows a container by. The zero Origin is of a cgroup that no runtime told of.
type Origin struct {
	Runtime      string `json:"runtime,omitempty"`   // containerd; by the cgroup's name also docker, podman, cri-o
	Namespace    string `json:"namespace,omitempty"` // the runtime's own
	ID           string `json:"id,omitempty"`        // of the container, or of the pod's sandbox
	Image        string `json:"image,omitempty"`
	Pod          string `json:"pod,omitempty"`
	PodNamespace string `json:"pod_namespace,omitempty"`
	PodUID       string `json:"pod_uid,omitempty"`
	Agent        string `json:"agent,omitempty"` // what its label says that the policy names for this
}

// Identity names a container, a pod or an agent on every machine; empty: nothing does.
func (o Origin) Identity() string {
	switch {
	case o.Agent != "":
		return "agent " + o.Agent
	case o.PodUID != "":
		return "pod " + o.PodUID
	case o.ID != "":
		return o.Namespace + "/" + o.ID
	}
	return ""
}

// same says whether both are the same container, of one pod, or the same agent.
func (o Origin) same(p Origin) bool {
	if o.Agent != "" && o.Agent == p.Agent {
		return true
	}
	if o.Runtime == "" || o.Runtime != p.Runtime {
		return false
	}
	return o.PodUID != "" && o.PodUID == p.PodUID || o.ID != "" && o.Namespace == p.Namespace && o.ID == p.ID
}

// Status is a container with its taint.
type Status struct {
	Container
	Own   Bits      `json:"-"` // set on itself
	Taint Bits      `json:"-"` // with its ancestors': what the kernel goes by (G3)
	Since time.Time // of the last change
	First time.Time // when its oldest taint was set; Since, if it has none by itself
	By    string
	Why   string
}

// kernel has the states of cgroups, and programs that go by them.
type kernel interface {
	state(id uint64) (cgroupState, error) // an absent one is zero
	writeState(cgroupStateChange) error
	deleteState(id uint64) error                      // that there is none is no error
	eachState(f func(id uint64, e cgroupState)) error // some twice if it changes meanwhile
	setEpoch(epoch uint64) error
}

// entry is a cgroup's state in the kernel.
func (s *State) entry(id uint64) (cgroupState, error) { return s.kernel.state(id) }

func (o *cgroupObjects) state(id uint64) (cgroupState, error) {
	var e cgroupState
	if err := o.Cgroups.Lookup(id, &e); err != nil && !errors.Is(err, os.ErrNotExist) && !isNoKey(err) {
		return e, fmt.Errorf("read state of cgroup %d: %w", id, err)
	}
	return e, nil
}

func (s *State) put(id uint64, e cgroupState) error { return s.change(id, e, 0) }

// change writes a state in place: taint that a program sets meanwhile stays, and
// what the kernel has is cleared of nothing but the bits that are named.
func (s *State) change(id uint64, e cgroupState, clear Bits) error {
	c := cgroupStateChange{Cgroup: id, Clear: uint32(clear)}
	c.To.Taint, c.To.Flags, c.To.Policy, c.To.Agent, c.To.Grant = e.Taint&^uint32(clear), e.Flags, e.Policy, e.Agent, e.Grant
	return s.Change(func() error { return s.kernel.writeState(c) })
}

func (o *cgroupObjects) writeState(c cgroupStateChange) error {
	failed, err := o.WeirState.Run(&ebpf.RunOptions{Context: &c})
	if err == nil && failed != 0 {
		err = errors.New("the map is full")
	}
	if err != nil {
		return fmt.Errorf("write state of cgroup %d: %w", c.Cgroup, err)
	}
	return nil
}

// ErrKnown says that taint which programs had set is known, or cleared, by now.
var ErrKnown = errors.New("nothing to take up")

// Unknown are bits of one container that only the kernel knows.
type Unknown struct {
	Cgroup uint64
	Bits   Bits
}

// Unknown finds taint that programs have set and nobody was told of.
func (s *State) Unknown() ([]Unknown, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	more := map[uint64]Bits{}
	err := s.kernel.eachState(func(id uint64, e cgroupState) {
		if _, gone := s.removed[id]; e.Taint != 0 && !gone {
			more[id] = Bits(e.Taint)
		}
	})
	if err != nil {
		return nil, err
	}
	if len(more) > 0 {
		for _, r := range s.containers {
			more[r.CgroupID] &^= r.Bits
		}
	}
	var found []Unknown
	for id, bits := range more {
		if bits != 0 {
			found = append(found, Unknown{id, bits})
		}
	}
	return found, nil
}

// Mend puts taint back into the kernel that it had and does not have any more, which is never so, and gives what that was.
func (s *State) Mend() (lost []Unknown, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, r := range s.containers {
		if r.Bits == 0 || r.CgroupID == 0 {
			continue
		}
		e, err := s.entry(r.CgroupID)
		if missing := r.Bits &^ Bits(e.Taint); err == nil && missing != 0 {
			lost = append(lost, Unknown{r.CgroupID, missing})
			e.Taint |= uint32(missing)
			err = s.put(r.CgroupID, e)
		}
		errs = append(errs, err)
	}
	return lost, errors.Join(errs...)
}

// Guard takes a container in, with the bits it starts with. Taint that is
// stored under its id is put back (G1).
func (s *State) Guard(c Container, start Bits, by string) (Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &record{Container: c, Since: time.Now().UTC(), By: by, Why: "guarded"}
	old := s.containers[c.ID]
	if old != nil {
		r.Bits, r.Tainted, r.Since, r.By, r.Why, r.Causes = old.Bits, old.Tainted, old.Since, old.By, old.Why, old.Causes
		if c.Origin == (Origin{}) {
			r.Name, r.Origin = old.Name, old.Origin
		}
	}
	again := old != nil && old.CgroupID != c.CgroupID // under the same path (B45)
	if again {
		if err := s.inherit(r, old.CgroupID); err != nil {
			return Status{}, err
		}
	}
	e, err := s.entry(c.CgroupID)
	if err != nil {
		return Status{}, err
	}
	now := time.Now().UTC()
	r.add(start|Bits(e.Taint), now)
	r.because(start, event.Cause{At: now, Source: "guard", By: by})
	e.Taint, e.Policy, e.Agent = uint32(r.Bits), c.Policy, uint32(c.Agent)
	if err := s.put(c.CgroupID, e); err != nil {
		return Status{}, err
	}
	s.containers[c.ID] = r
	if again {
		err = s.drop(old.CgroupID)
	}
	return s.status(r), errors.Join(s.store(r), err)
}

// SetAgent names the process that a container's commands descend from, and where it begins.
func (s *State) SetAgent(id string, pid int, dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.known(id)
	if err != nil {
		return err
	}
	e, err := s.entry(r.CgroupID)
	if err != nil {
		return err
	}
	e.Agent, r.Agent, r.Dir = uint32(pid), pid, dir
	return errors.Join(s.put(r.CgroupID, e), s.store(r))
}

// Change is taint to be set on a container, as a source reports it (G2).
type Change struct {
	Container string // id, name, prefix of the id or cgroup path
	Bits      Bits
	Source    string // one of event.Sources
	By, Why   string
	Argv      []string // of the process that caused it, cut; nil: not known
	Above     []string // command lines of its parents in the container, nearest first, cut
	Tool      string   // whose call it is
	Volume    string   // that it comes from
	From      []string // and how it came there, see event.Cause
	PID       int      // of the process that caused it; 0: none did
	Start     uint64   // its start, ns since boot
	Grant     uint64   // of the socket that caused it, which may finish what it began; 0: none
	InKernel  bool     // programs set Bits before; what was cleared since then stays so
}

// Set sets bits: first in the kernel, then on disk. When only the disk fails
// the container is tainted all the same, and the error is ErrNotStored.
func (s *State) Set(c Change) (Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(c.Container)
	if err != nil {
		return Status{}, err
	}
	e, err := s.entry(r.CgroupID)
	if err != nil {
		return Status{}, err
	}
	if c.InKernel {
		if c.Bits &= Bits(e.Taint); c.Bits&^r.Bits == 0 {
			return s.status(r), ErrKnown
		}
	}
	e.Taint |= uint32(c.Bits)
	if err := s.put(r.CgroupID, e); err != nil {
		return Status{}, err
	}
	r.Since, r.By, r.Why = time.Now().UTC(), c.By, c.Why
	r.add(c.Bits, r.Since)
	r.because(c.Bits, c.cause(r.Since))
	s.containers[r.ID] = r
	if err := s.store(r); err != nil {
		return s.status(r), fmt.Errorf("%w: %w", ErrNotStored, err)
	}
	return s.status(r), nil
}

// Clear clears bits: first on disk, then in the kernel. What fails leaves the
// container tainted.
func (s *State) Clear(name string, bits Bits, by, why string) (Status, error) {
	if strings.TrimSpace(why) == "" {
		return Status{}, errors.New("no reason given: say --why")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(name)
	if err != nil {
		return Status{}, err
	}
	cleared := *r
	cleared.clear(bits)
	cleared.Since, cleared.By, cleared.Why = time.Now().UTC(), by, why
	r.unsaved = true // what is on disk is not what is in force, until both are
	if err := s.store(&cleared); err != nil {
		return Status{}, err
	}
	e, err := s.entry(r.CgroupID)
	if err != nil {
		return Status{}, err
	}
	if err := s.change(r.CgroupID, e, bits); err != nil {
		return Status{}, err
	}
	*r = cleared
	return s.status(r), nil
}

// Forget drops a session whose cgroup is gone. A container that is no session
// keeps its taint on disk: it may be started again (G1).
func (s *State) Forget(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.known(id)
	if err != nil {
		return err
	}
	if err := s.drop(r.CgroupID); err != nil || !r.Session {
		return err
	}
	delete(s.containers, id)
	return s.erase(id)
}

// PutGrant makes a cgroup the place of a grant.
func (s *State) PutGrant(cgroupID, grant uint64) error {
	return s.put(cgroupID, cgroupState{Flags: cgroupStateFlagSTATE_GRANT, Grant: grant})
}

// DropGrant makes it an ordinary cgroup again.
func (s *State) DropGrant(cgroupID uint64) error { return s.delete(cgroupID) }

// DropParent notes that a guarded parent's cgroup has been removed: sockets of
// its containers may have something queued, so it and its programs stay a while.
func (s *State) DropParent(cgroupID uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drop(cgroupID)
}

// Grants returns the cgroups that are places of grants, by cgroup id.
func (s *State) Grants() (map[uint64]uint64, error) {
	grants := map[uint64]uint64{}
	err := s.kernel.eachState(func(id uint64, e cgroupState) {
		if e.Flags&cgroupStateFlagSTATE_GRANT != 0 {
			grants[id] = e.Grant
		}
	})
	return grants, err
}
