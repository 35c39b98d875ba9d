package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"weir/internal/bridge"
	"weir/internal/bridge/wire"
	"weir/internal/linux"
	"weir/internal/taint"
)

// lookedAt is how many processes of a container are asked for its folder, or who it is.
const lookedAt = 16

// ServeFolders tells the bridge's folders which containers there are.
func (a *bridgeHost) ServeFolders() error {
	var with []taint.Container
	a.d.state.Each(func(c taint.Container) {
		if a.d.policies.For(c.ID).IPC != "" {
			with = append(with, c)
		}
	})
	var live []string
	for _, c := range with {
		if linux.CgroupPopulated(c.Cgroup) {
			live = append(live, c.ID)
		}
	}
	a.folders.Serve(live)
	return nil
}

// folderOf is an ipc.Find: the folder as one of the container's processes sees it.
func (a *bridgeHost) folderOf(id string) (*bridge.Folder, error) {
	path, missing := a.d.policies.For(id).IPC, error(fs.ErrNotExist)
	if path == "" {
		return nil, missing
	}
	for _, pid := range a.some(id) {
		f, err := a.folderIn(id, pid, path)
		switch {
		case err == nil:
			return f, nil
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, linux.ErrGone) && !errors.Is(err, unix.ESRCH):
			missing = err
		}
	}
	return nil, missing
}

// folderIn is the folder that a process sees.
func (a *bridgeHost) folderIn(id string, pid int, path string) (*bridge.Folder, error) {
	if err := a.belongs(id, pid); err != nil {
		return nil, err
	}
	before, err := linux.ReadStat(pid)
	if err != nil {
		return nil, err
	}
	root, err := linux.OpenRoot(pid)
	if err != nil {
		return nil, fmt.Errorf("find a container's folder: %w", err)
	}
	defer root.Close()
	uid, err := linux.UID(pid)
	if err != nil {
		return nil, err
	}
	f, err := bridge.OpenFolder(root, path, uid)
	if err != nil {
		return nil, err
	}
	// It is still the same process, and still there: so what was read is the container's.
	if after, err := linux.ReadStat(pid); err != nil || after.Start != before.Start || a.belongs(id, pid) != nil {
		return nil, errors.Join(fs.ErrNotExist, f.Close())
	}
	return f, nil
}

// belongs says whether a process is in a container, and in none within that.
func (a *bridgeHost) belongs(id string, pid int) error {
	path, err := linux.CgroupOf(pid)
	if err != nil {
		return err
	}
	if st, ok := a.d.processes.Innermost(path); !ok || st.ID != id {
		return fs.ErrNotExist
	}
	return nil
}

// some are a few processes of a container.
func (a *bridgeHost) some(id string) []int {
	st, err := a.d.state.Find(id)
	if err != nil {
		return nil
	}
	pids, err := linux.CgroupTree(st.Cgroup)
	if err != nil {
		return nil
	}
	return pids[:min(len(pids), lookedAt)]
}

// answerIn decides on a request that was found in a container's folder.
func (a *bridgeHost) answerIn(ctx context.Context, id string, request []byte) wire.Answer {
	return a.bridge.Answer(ctx, request, func() (bridge.Asker, error) {
		for _, pid := range a.some(id) {
			if who, err := (host{a}).Who(pid); err == nil && who.Container.ID == id {
				return who, nil
			}
		}
		return bridge.Asker{}, fmt.Errorf("container %s has no process", id)
	})
}
