package container

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"weir/internal/bridge/wire"
	"weir/internal/event"
	"weir/internal/linux"
	"weir/internal/policy"
)

const (
	podNamespace = "k8s.io" // the runtime's own, of all that NRI tells
	ipcSource    = "weir-ipc"
	firstAnswer  = 3 * time.Second // until it is told that the runtime does not ask yet
)

// ipcOptions let no container fill the host's memory, nor run what somebody puts there.
var ipcOptions = []string{"nosuid", "nodev", "noexec", "mode=0700", "size=16m", "nr_inodes=4096"}

// answer serves the runtime's questions until ctx ends, if the policy says so. It returns once the runtime asks, or cannot.
func (k *Keeper) answer(ctx context.Context, now policy.Containers) {
	if now.NRI == "" {
		return
	}
	c, err := dial(now.Containerd)
	if err != nil {
		k.Fail("answer the runtime", err)
		return
	}
	first := make(chan struct{})
	var once sync.Once
	var asks asks
	go func() {
		defer c.close()
		runNRI(ctx, now.NRI, questions{k, c}, func(err error) {
			asks.change(k, err)
			once.Do(func() { close(first) })
		})
	}()
	select {
	case <-first:
	case <-time.After(firstAnswer):
		if !asks.known() {
			asks.change(k, errors.New("it has not taken the connection yet"))
		}
	case <-ctx.Done():
	}
}

// asks is whether the runtime asks, which is told when it changes.
type asks struct {
	mu         sync.Mutex
	told, lost bool
}

func (a *asks) known() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.told
}

func (a *asks) change(k *Keeper, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err != nil && !a.lost:
		k.Fail("answer the runtime before containers start: until it asks they are guarded as without NRI", err)
	case err == nil && a.lost:
		k.Log(event.Event{Kind: event.Error, Message: "the runtime asks before containers start, from now on"})
	}
	a.told, a.lost = true, err != nil
}

// questions are the runtime's. It implements nri.Host.
type questions struct {
	*Keeper
	client *client
}

// Creating gives a container that will be guarded the ways to ask.
func (q questions) Creating(ctx context.Context, c nriContainer) ([]*api.Mount, error) {
	if err := q.meet(ctx, c.Sandbox); err != nil {
		q.Fail("refuse to make container "+c.ID, err)
		return nil, err
	}
	one := Container{
		Namespace: podNamespace, ID: c.ID, Image: c.Annotations[imageAnnotation], Labels: c.Labels,
		Spec: &specs.Spec{Annotations: c.Annotations, Linux: &specs.Linux{CgroupsPath: c.Cgroup}},
	}
	p := q.Policy()
	at, _ := specified(one)
	if _, _, _, _, ok := q.choose(one, at, p); !ok {
		return nil, nil
	}
	var mounts []*api.Mount
	if to := filepath.Dir(wire.Default); q.Bridge != "" && !covered(c.Mounts, to) {
		mounts = append(mounts, &api.Mount{Destination: to, Type: "bind", Source: q.Bridge, Options: []string{"rbind", "ro", "nosuid", "nodev", "noexec"}})
	}
	// in a user namespace of its own the container's root could stamp answers itself
	if p.IPC != "" && !c.OwnUsers && !covered(c.Mounts, p.IPC) {
		mounts = append(mounts, &api.Mount{Destination: p.IPC, Type: "tmpfs", Source: ipcSource, Options: ipcOptions})
	}
	return mounts, nil
}

// covered says whether something is mounted at a path or below it: what the container brings along stays.
func covered(mounts []string, path string) bool {
	return slices.ContainsFunc(mounts, func(m string) bool { return linux.PathWithin(filepath.Clean(m), path) })
}

// Starting takes in a container that has a process, of the runtime still: whoever makes its cgroup, it is guarded, and has the taint
// of its label and what is stored (B45), before its first instruction.
func (q questions) Starting(ctx context.Context, id string) error {
	err := q.start(ctx, id)
	if err != nil {
		q.Fail("refuse to let container "+id+" start", err)
	}
	return err
}

func (q questions) start(ctx context.Context, id string) error {
	one, err := q.client.begun(ctx, podNamespace, id)
	if errors.Is(err, errGone) {
		return nil // some runtimes ask before they make a sandbox; what is not there cannot start
	}
	if err != nil {
		return err
	}
	if sandbox := one.Spec.Annotations[sandboxAnnotation]; sandbox != id {
		if err := q.meet(ctx, sandbox); err != nil {
			return err
		}
	}
	e, err := q.alone(ctx, one)
	if q.refused(one) {
		return errors.New("the policy refuses what it has: see its findings")
	}
	if err != nil || e == nil {
		return err
	}
	if err := hand(one); err != nil {
		q.Fail("hand over the folder for requests", err) // nobody answers in it then, and what is not answered is denied
	}
	return nil
}

// refused says whether the policy refuses a container: it may have been killed when its task was told.
func (q questions) refused(c Container) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.known[name(c.Namespace, c.ID)]
	return e != nil && e.refused
}

// meet looks at a sandbox that was not seen yet: the pod's labels stand there.
func (q questions) meet(ctx context.Context, id string) error {
	q.mu.Lock()
	_, known := q.known[name(podNamespace, id)]
	q.mu.Unlock()
	if known || id == "" {
		return nil
	}
	one, err := q.client.begun(ctx, podNamespace, id)
	if errors.Is(err, errGone) {
		return nil
	}
	if err != nil {
		return err
	}
	one.Running = true
	_, err = q.alone(ctx, one)
	return err
}

// alone takes in a container while no other is looked at.
func (q questions) alone(ctx context.Context, c Container) (*entry, error) {
	select {
	case q.acting <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for another container: %w", ctx.Err())
	}
	defer func() { <-q.acting }()
	return q.take(c)
}

// hand makes the folder for requests that Creating added the user's that the container runs as, which is known only now.
func hand(c Container) error {
	i := slices.IndexFunc(c.Spec.Mounts, func(m specs.Mount) bool { return m.Source == ipcSource && m.Type == "tmpfs" })
	if i < 0 || c.Spec.Process == nil {
		return nil
	}
	root, err := linux.OpenRoot(c.PID)
	if err != nil {
		return err
	}
	defer root.Close()
	fd, err := unix.Openat2(int(root.Fd()), c.Spec.Mounts[i].Destination, &unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return fmt.Errorf("open %s: %w", c.Spec.Mounts[i].Destination, err)
	}
	defer unix.Close(fd)
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return err
	}
	if fs.Type != unix.TMPFS_MAGIC {
		return fmt.Errorf("%s is no file system of its own", c.Spec.Mounts[i].Destination)
	}
	user := c.Spec.Process.User
	return unix.Fchown(fd, int(user.UID), int(user.GID))
}
