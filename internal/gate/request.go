package gate

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weir/internal/event"
)

// Ask is what a request wants. Its zero value is what is judged hardest.
type Ask uint8

// What can be asked.
const (
	Connect Ask = iota // to reach Destination
	Run                // to run Process; Destination is not looked at
)

// The modes; an empty one is enforce.
const (
	modeObserve = "observe"
	modeEnforce = "enforce"
	modeSeal    = "seal"
)

func known(mode string) bool {
	switch mode {
	case "", modeObserve, modeEnforce, modeSeal:
		return true
	}
	return false
}

// Request is one thing that a process in a container wants to do, as the host
// established it.
type Request struct {
	Container   event.Container // Taint holds the names of the bits, with those of ancestors; any name counts
	Process     event.Process
	Destination event.Destination
	Ask         Ask
	Held        bool   // the asker waits in the kernel; false: it was refused and may retry
	Mode        string // observe, enforce or seal
}

// Limits on what a question stores of its asker.
const (
	maxArgv  = 32 << 10 // bytes, one more counted per argument
	maxEnv   = 256      // names
	maxChain = 64       // ancestors
)

// check makes a tainted connect ready to be asked and matched: its destination
// in one spelling, its process within limits and no longer shared with the caller.
func check(r Request) (asker, error) {
	if !known(r.Mode) {
		return asker{}, fmt.Errorf("the request has the unknown mode %q", r.Mode)
	}
	if r.Ask != Connect {
		return asker{}, fmt.Errorf("the request asks for the unknown %d", r.Ask)
	}
	// Without a start time, a reused pid would be the same process.
	if r.Process.PID <= 0 || r.Process.Start == 0 {
		return asker{}, errors.New("the request names no process: pid and start time are needed")
	}
	d, err := normal(r.Destination)
	if err != nil {
		return asker{}, err
	}
	r.Destination = d
	a := asker{self: process{r.Process.PID, r.Process.Start}, command: command(r.Process)}
	r.Process = limit(r.Process)
	r.Container.Taint = slices.Clone(r.Container.Taint)
	a.bound = bound(r.Process)
	a.Request = r
	return a, nil
}

func normal(d event.Destination) (event.Destination, error) {
	d.Protocol = strings.ToLower(d.Protocol)
	switch d.Protocol {
	case "":
		return d, errors.New("the request names no protocol")
	case "6":
		d.Protocol = "tcp"
	case "17":
		d.Protocol = "udp"
	}
	if d.Address == "" {
		return d, errors.New("the request names no destination")
	}
	if d.Protocol == "unix" {
		return d, nil
	}
	addr, err := netip.ParseAddr(d.Address)
	if err != nil {
		return d, fmt.Errorf("the request's destination %q is not an address", d.Address)
	}
	d.Address = addr.Unmap().String()
	if d.Port == 0 && (d.Protocol == "tcp" || d.Protocol == "udp") {
		return d, errors.New("the request names no port")
	}
	return d, nil
}

// limit copies p, cut to what a question may store. A cut argv is marked, which
// binds the question to the one process.
func limit(p event.Process) event.Process {
	room := maxArgv
	for i, s := range p.Argv {
		if room -= len(s) + 1; room < 0 {
			p.Argv, p.Truncated = p.Argv[:i], true
			break
		}
	}
	if len(p.Env) > maxEnv {
		p.Env, p.EnvCut = p.Env[:maxEnv], true
	}
	p.Argv, p.Env = slices.Clone(p.Argv), slices.Clone(p.Env)
	p.Ancestry = slices.Clone(p.Ancestry[:min(len(p.Ancestry), maxChain)])
	if p.Exe != nil {
		exe := *p.Exe
		p.Exe = &exe
	}
	return p
}
