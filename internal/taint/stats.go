package taint

import (
	"fmt"
	"time"

	"weir/internal/bpfobj"
)

// MapStats tells how full State's own maps are.
func (s *State) MapStats() ([]bpfobj.MapStat, error) {
	return bpfobj.MapStats(s.objects.Cgroups, s.objects.CgroupEvents)
}

// SinceBeat is how long ago the last beat was; false: there was none, or the daemon has ended.
func (s *State) SinceBeat() (time.Duration, bool, error) {
	var c cgroupSettings
	if err := s.objects.Config.Lookup(uint32(0), &c); err != nil {
		return 0, false, fmt.Errorf("read settings: %w", err)
	}
	now := Now()
	return time.Duration(max(now, c.Heartbeat) - c.Heartbeat), c.Heartbeat != 0, nil
}
