package daemon

import (
	"errors"
	"io/fs"

	"weir/internal/linux"
	"weir/internal/policy"
)

// The programs that the whole host passes are attached before the first container is there, and stay: until then nobody pays for them.

// attachHooks attaches them. It may be called again.
func (d *daemon) attachHooks() error {
	return errors.Join(d.egress.Attach(), d.files.Attach(), d.volumes.Attach())
}

// attachOrRelease does so at the start if something is guarded, or may be before this daemon is asked; else it lets go of what an
// earlier one attached.
func (d *daemon) attachOrRelease() error {
	some, err := d.guards()
	if err != nil {
		return err
	}
	if some {
		return d.attachHooks()
	}
	return errors.Join(d.egress.Release(), d.files.Release(), d.volumes.Release())
}

func (d *daemon) guards() (bool, error) {
	if guardsByItself(d.policies.Base()) || len(d.state.List()) > 0 {
		return true, nil
	}
	if some, err := d.guardsByHand(); err != nil || some {
		return true, err
	}
	if some, err := d.state.InForce(); err != nil || some {
		return true, err
	}
	return d.state.Escapes()
}

// guardsByHand says whether somebody made a cgroup where the sensor makes its own.
func (d *daemon) guardsByHand() (bool, error) {
	children, err := linux.CgroupChildren(guardSlice)
	return len(children) > 0, err
}

// attachByHand attaches them if so. That such a cgroup is made is told; this finds what was lost, or failed.
func (d *daemon) attachByHand() error {
	some, err := d.guardsByHand()
	if errors.Is(err, fs.ErrNotExist) || err == nil && !some {
		return nil
	}
	return errors.Join(err, d.attachHooks())
}

// guardsByItself says whether a policy guards what nobody asks this daemon for first, or asks when there is no time to attach much.
func guardsByItself(p policy.Policy) bool {
	return len(p.Guard.Parents)+len(p.Guard.Cgroups)+len(p.Containers.Match) > 0
}

// prepareHooks loads them, and the programs for names, while nobody waits; those of volumes are loaded when a directory is shared first.
func (d *daemon) prepareHooks() error {
	if err := errors.Join(d.egress.Prepare(), d.files.Prepare(), d.dns.Prepare()); err != nil {
		return err
	}
	return linux.TrimMemory()
}
