//go:build vmguest

package exec

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// Hook sets what package taint sets in the running sensor, for tests of the probe alone: the children of the cgroup parent become
// containers, and argv is hashed with key.
func (p *Probe) Hook(parent uint64, key [2]uint64) error {
	state := execState{Flags: execStateFlagSTATE_PARENT}
	return errors.Join(
		wrap("cgroup", p.objects.Cgroups.Update(parent, &state, ebpf.UpdateAny)),
		wrap("key", p.objects.Config.Update(uint32(0), &execSettings{Key: key, Levels: ^uint32(0), Parents: ^uint64(0)}, ebpf.UpdateAny)))
}

// Lost returns how many executions the ring had no room for, since its counters were made. It is 0 after Close.
func (p *Probe) Lost() uint64 {
	sum, _ := p.lost()
	return sum
}

func wrap(what string, err error) error {
	if err != nil {
		return fmt.Errorf("set %s: %w", what, err)
	}
	return nil
}
