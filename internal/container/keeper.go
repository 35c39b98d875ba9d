package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/event"
	"weir/internal/linux"
	"weir/internal/policy"
	"weir/internal/taint"
)

// Options are what a Keeper acts with. All must be set.
type Options struct {
	Policy  func() policy.Policy
	Parents func() []string // guarded parents, paths below the cgroup root
	State   *taint.State
	// Elsewhere is what a container was tainted with on other machines, and why it is thought so; begins: its own program did not run yet. With
	// wait it may take a moment until somebody tells.
	Elsewhere func(o taint.Origin, begins, wait bool) (bits taint.Bits, why string)

	Guard   func(path string) error                       // attaches what one cgroup needs that is a container by itself
	Taint   func(taint.Change) (taint.Status, error)      // puts taint in force: kernel, disk, sockets, log
	Sockets func(path string) ([]string, error)           // open sockets that send below the packet check (B18)
	Log     func(event.Event)                             // must not wait
	Fail    func(what string, err error)                  // must not wait
	Show    func(id uint64, b taint.Bits) event.Container // what the log tells of a container
	Shared  func() error                                  // looks at Places, before a new container's program runs if there is time
	Carried func(a, b string) bool                        // says whether what two containers share of these carries taint
	Bridge  string                                        // directory of the sockets on which containers ask; a runtime with NRI mounts it into them
}

// Keeper has the containers of a runtime guarded that the policy matches.
type Keeper struct {
	Options

	mu    sync.Mutex
	known map[string]*entry            // by namespace/id
	pods  map[string]map[string]string // labels of all sandboxes, also those that are left alone; by namespace/id
	lost  bool                         // the connection, and that was told

	acting chan struct{} // has room while nobody looks at a container: events and the runtime's questions come at the same time
	looked sync.Once
	ready  chan struct{}
}

// entry is a container that is guarded, or below a guarded parent.
type entry struct {
	container Container
	path      string // of the cgroup that Weir knows as its container
	alone     bool
	rule      policy.Match
	matched   bool
	told      map[string]bool // findings
	refused   bool
	applied   int // first process that the rule's taint was set for: what a person clears later stays so
	volumes   []volume
}

// New makes a Keeper that knows nothing yet.
func New(o Options) *Keeper {
	return &Keeper{Options: o, known: map[string]*entry{}, pods: map[string]map[string]string{}, acting: make(chan struct{}, 1), ready: make(chan struct{})}
}

// Run follows the runtime that the policy names, until ctx ends. changed says that the policy may be another.
func (k *Keeper) Run(ctx context.Context, changed <-chan struct{}) error {
	for ctx.Err() == nil {
		now := k.Policy().Containers
		one, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		if now.Containerd != "" {
			go func() {
				k.answer(one, now)
				done <- watch(one, now.Containerd, k)
			}()
		} else {
			k.hasLooked()
		}
		err := k.wait(ctx, changed, done, now)
		stop()
		if now.Containerd != "" && err == nil {
			err = <-done
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wait returns when the policy's containers are others, or the watch has failed.
func (k *Keeper) wait(ctx context.Context, changed <-chan struct{}, done chan error, was policy.Containers) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-done:
			done <- nil
			return err
		case <-changed:
			if !same(was, k.Policy().Containers) {
				return nil
			}
		}
	}
}

func same(a, b policy.Containers) bool {
	return a.Containerd == b.Containerd && a.NRI == b.NRI && slices.Equal(a.Refuse, b.Refuse) && slices.EqualFunc(a.Match, b.Match, func(a, b policy.Match) bool {
		return a.String() == b.String() && a.Guard == b.Guard && slices.Equal(a.Taint, b.Taint) && slices.Equal(a.Refuse, b.Refuse)
	})
}

// Ready is closed when Run has looked at all containers there are, or could not.
func (k *Keeper) Ready() <-chan struct{} { return k.ready }

func (k *Keeper) hasLooked() { k.looked.Do(func() { close(k.ready) }) }

// connected is told that all were listed, by namespace/id, or why there is no connection. One goroutine calls it, seen and stopped.
func (k *Keeper) connected(listed map[string]bool, err error) {
	defer k.hasLooked()
	if err != nil {
		if !k.lost {
			k.lost = true
			k.Fail("follow containers: what is guarded stays so, containers that start meanwhile are looked at later", err)
		}
		return
	}
	if k.lost {
		k.lost = false
		k.Log(event.Event{Kind: event.Error, Message: fmt.Sprintf("containers are followed again: %d", len(listed))})
	}
	k.mu.Lock()
	var gone []*entry
	for at, e := range k.known {
		if !listed[at] {
			gone = append(gone, e)
		}
	}
	maps.DeleteFunc(k.pods, func(at string, _ map[string]string) bool { return !listed[at] })
	k.mu.Unlock()
	for _, e := range gone {
		k.stopped(e.container.Namespace, e.container.ID, true)
	}
}

// each is told of all that exist. A pod's sandbox may be listed after its containers.
func (k *Keeper) each(all []Container) {
	for _, c := range all {
		k.label(c)
	}
	for _, c := range all {
		k.seen(c)
	}
}

// label notes the labels of a pod.
func (k *Keeper) label(c Container) {
	if c.Spec.Annotations[kindAnnotation] == "sandbox" {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.pods[name(c.Namespace, c.ID)] = c.Labels
	}
}

// seen is told of a container that exists, is about to run, or runs.
func (k *Keeper) seen(c Container) {
	k.acting <- struct{}{}
	defer func() { <-k.acting }()
	if _, err := k.take(c); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ESRCH) {
		k.Fail("look at container "+name(c.Namespace, c.ID), err)
	}
}

// stopped is told that a container's first process has ended; deleted: the runtime has forgotten it.
func (k *Keeper) stopped(namespace, id string, deleted bool) {
	k.acting <- struct{}{}
	defer func() { <-k.acting }()
	at := name(namespace, id)
	k.mu.Lock()
	e := k.known[at]
	if e != nil {
		e.container.PID, e.container.Running = 0, false
	}
	if deleted {
		delete(k.known, at)
		delete(k.pods, at)
	}
	k.mu.Unlock()
	if e == nil {
		return
	}
	if err := k.over(e, deleted); err != nil {
		k.Fail("keep the taint of container "+at, err)
	}
}

// over keeps what is stored of a container that has ended ready for its next start. One of a pod is not over with one container.
func (k *Keeper) over(e *entry, deleted bool) error {
	if k.shared(e) {
		return nil
	}
	if deleted {
		if _, err := k.State.Find(e.path); err != nil {
			return nil
		}
		if e.alone {
			_ = linux.RemoveCgroup(e.path) // one that was prepared and never used; else the runtime has removed it
		}
		if err := k.State.Discard(e.path); err != nil {
			return err
		}
		if _, err := k.State.Find(e.path); err != nil {
			return nil // nothing was stored of it
		}
		return k.State.Gone(e.path)
	}
	if !e.alone {
		return nil
	}
	return k.prepare(e)
}

// shared says whether another container that is known has the same cgroup for Weir.
func (k *Keeper) shared(e *entry) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, other := range k.known {
		if other != e && other.path == e.path && other.container.PID != 0 {
			return true
		}
	}
	return false
}

// take finds the container's cgroup, and guards it if the policy says so; nil: it is left alone.
func (k *Keeper) take(c Container) (*entry, error) {
	k.label(c)
	p := k.Policy()
	e, err := k.locate(c, p)
	if err != nil || e == nil {
		return nil, err
	}
	bits, err := taint.StartBits(e.rule.Taint)
	if err != nil {
		return nil, err
	}
	if e.alone {
		more, err := taint.StartBits(p.Taint.Initial)
		if err != nil {
			return nil, err
		}
		bits |= more
	}
	found := k.look(e)
	refuse := slices.ContainsFunc(found, func(f event.Finding) bool { return f.Refused })
	if refuse {
		bits |= taint.Corruption | taint.Secret // until it is killed
	}
	bits |= k.State.Stored(k.origin(c))
	why := "containers.match: " + e.rule.String()
	switch {
	case c.PID == 0:
		if more, because := k.Elsewhere(k.origin(c), true, false); more&^bits != 0 {
			bits, why = bits|more, because
		}
		if bits != 0 || e.alone {
			err = k.State.Expect(k.described(e), bits, "policy", why)
		}
		if err == nil && e.alone {
			err = k.prepare(e)
		}
	case e.applied == c.PID:
		err = k.admit(e, 0, why)
	default:
		if err = k.admit(e, bits, why); err == nil { // what is known is in force meanwhile, and what is told too late finds the container
			more, because := k.Elsewhere(k.origin(c), !c.Running, true)
			err = k.admit(e, more, because)
		}
		if err == nil {
			e.applied = c.PID
		}
	}
	if c.PID != 0 && len(e.volumes) > 0 {
		err = errors.Join(err, k.Shared())
	}
	k.tell(e, found)
	if refuse && c.PID != 0 {
		err = errors.Join(err, k.kill(e))
	}
	if c.Running && len(e.volumes) > 0 {
		k.spread()
	}
	return e, err
}

// locate says which cgroup a container is for Weir; nil: it is left alone.
func (k *Keeper) locate(c Container, p policy.Policy) (*entry, error) {
	at, _ := specified(c)
	if c.PID != 0 {
		var err error
		if at, err = actual(c, linux.CgroupOf); err != nil {
			return nil, err
		}
	}
	path, alone, rule, matched, ok := k.choose(c, at, p)
	if !ok {
		return nil, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	key := name(c.Namespace, c.ID)
	e := k.known[key]
	if e == nil || e.path != path {
		e = &entry{told: map[string]bool{}}
		k.known[key] = e
	}
	e.container, e.path, e.alone, e.rule, e.matched = c, path, alone, rule, matched
	e.volumes = volumes(c.Spec)
	return e, nil
}

func (k *Keeper) described(e *entry) taint.Container {
	c := taint.Container{ID: e.path, Name: called(e.container), Cgroup: e.path, Alone: e.alone, Origin: k.origin(e.container)}
	if c.Origin.Pod != "" && !strings.Contains(e.path, e.container.ID) {
		c.Name, c.Origin.ID, c.Origin.Image = c.Origin.Pod, "", "" // the whole pod
		if sandbox := e.container.Spec.Annotations[sandboxAnnotation]; sandbox != "" {
			c.Origin.ID = sandbox
		}
	}
	if id, err := linux.CgroupID(e.path); err == nil {
		c.CgroupID = id
	}
	return c
}

// prepare makes the cgroup of a container that does not run, guarded and tainted, so that it is in it from its first instruction.
// What systemd makes cannot be made beforehand.
func (k *Keeper) prepare(e *entry) error {
	at, systemd := specified(e.container)
	if systemd || at == "" || !linux.PathWithin(at, e.path) {
		return nil
	}
	if _, err := linux.MakeCgroup(e.path); err != nil {
		return err
	}
	k.arrive(e)
	if err := k.Guard(e.path); err != nil {
		return err
	}
	_, err := k.State.Guard(k.described(e), 0, "policy")
	return err
}

// arrive lets the runtime's own program, which is in the cgroup already, finish the start.
func (k *Keeper) arrive(e *entry) {
	pids, err := linux.CgroupTree(e.path)
	if err == nil {
		err = k.State.Arrive(pids)
	}
	if err != nil {
		k.Fail("let "+e.container.ID+" start", err)
	}
}

// admit takes in a container that has a process.
func (k *Keeper) admit(e *entry, bits taint.Bits, why string) error {
	id, err := linux.CgroupID(e.path)
	if err != nil {
		return err
	}
	c := k.described(e)
	st, known := k.State.ByCgroup(id)
	if !known || e.alone && !st.Alone {
		if e.alone {
			if !e.container.Running {
				k.arrive(e)
			}
			if err := k.Guard(e.path); err != nil {
				return err
			}
		}
		if st, err = k.State.Guard(c, 0, "policy"); err != nil {
			return err
		}
		if e.alone && e.container.Running {
			ec := k.Show(id, st.Taint)
			k.Log(event.Event{Kind: event.Error, Container: &ec, Message: fmt.Sprintf(
				"guarded late: it ran %s before; containers below a guarded parent are guarded from their first instruction", since(e.container.PID))})
		}
	}
	if err := k.State.Describe(e.path, c.Name, c.Origin); err != nil {
		return err
	}
	if bits&^st.Own == 0 {
		return nil
	}
	_, err = k.Taint(taint.Change{Container: e.path, Bits: bits, Source: "start", By: "policy", Why: why})
	if errors.Is(err, taint.ErrNotStored) {
		return nil // it is in force
	}
	return err
}

// since is how long a process has run.
func since(pid int) time.Duration {
	st, err := linux.ReadStat(pid)
	if err != nil {
		return 0
	}
	return time.Duration(taint.Now() - min(st.Start, taint.Now())).Round(time.Millisecond)
}
