package exec

import "weir/internal/taint"

// Uses tells how full the probe's ring is.
func (p *Probe) Uses() ([]taint.Use, error) { return taint.Uses(p.objects.Execs) }

// Runs tells how long the probe's program ran, while the kernel measures it.
func (p *Probe) Runs() ([]taint.Run, error) { return p.links.Runs() }

// Check says what is wrong with what the probe attached.
func (p *Probe) Check() error { return p.links.Check() }
