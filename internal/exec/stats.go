package exec

import "weir/internal/bpfobj"

// MapStats tells how full the probe's ring is.
func (p *Probe) MapStats() ([]bpfobj.MapStat, error) { return bpfobj.MapStats(p.objects.Execs) }

// Runs tells how long the probe's program ran, while the kernel measures it.
func (p *Probe) Runs() ([]bpfobj.ProgramStat, error) { return p.links.Runs() }

// Check says what is wrong with what the probe attached.
func (p *Probe) Check() error { return p.links.Check() }
