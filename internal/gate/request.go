package gate

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weir/internal/classify"
	"weir/internal/event"
)

// Ask is what a request wants. Its zero value is what is judged hardest.
type Ask uint8

// What can be asked.
const (
	Connect Ask = iota // to reach Destination
	Run                // to go on with Process, which was seen to be executed; Destination is not looked at
	Command            // to run Command, before it runs; Process is the one that asks
	Tool               // to call a tool, as Command words it; only Confirm takes it
)

var asks = []Ask{Connect, Run, Command}

// The modes; an empty one is enforce.
const (
	modeObserve = "observe"
	modeEnforce = "enforce"
	modeSeal    = "seal"
)

// Request is one thing that a process in a container wants to do, as the host
// established it.
type Request struct {
	Container   event.Container // Taint holds the names of the bits, with those of ancestors; any name counts
	Process     event.Process
	Destination event.Destination
	Command     string // a shell text, with Ask Command; what a call would do, with Ask Tool
	Dir         string // where it would run, if that is known
	Ask         Ask
	Held        bool   // the asker waits in the kernel; false: it was refused and may retry, or waits for an answer over a bridge
	Mode        string // observe, enforce or seal
	Policy      string // its version, for the reviewer's cache

	judged *classify.Result // once it was classified
}

// Limits on what a question stores of its asker.
const (
	maxCommand = 32 << 10 // bytes of a text; what it is matched by is of the whole
	maxArgv    = 32 << 10 // bytes, one more counted per argument
	maxEnv     = 256      // names
	maxChain   = 64       // ancestors
)

// point is where in the cascade a request stands.
func (r Request) point() Point {
	switch {
	case r.Ask == Connect:
		return Out
	case r.Ask == Run && !r.Held:
		return Seen
	}
	return Asked
}

// check makes a tainted connect ready to be asked and matched: its destination
// in one spelling, its process within limits and no longer shared with the caller.
func check(r Request) (asker, error) {
	// Without a start time, a reused pid would be the same process.
	if r.Process.PID <= 0 || r.Process.Start == 0 {
		return asker{}, errors.New("the request names no process: pid and start time are needed")
	}
	a := asker{self: process{r.Process.PID, r.Process.Start}, command: command(r.Process)}
	switch r.Ask {
	case Connect:
		d, err := normal(r.Destination)
		if err != nil {
			return asker{}, err
		}
		r.Destination = d
	case Command, Tool:
		if strings.TrimSpace(r.Command) == "" {
			return asker{}, errors.New("the request names no command")
		}
		r.Destination, a.command = event.Destination{}, textKey(r.Command)
		if r.Ask == Tool {
			a.command = textKey("tool\x00" + r.Command) // no command of the same words has its answer
		}
		if len(r.Command) > maxCommand {
			r.Command = strings.ToValidUTF8(r.Command[:maxCommand], "") + "…"
		}
	default:
		r.Destination = event.Destination{}
	}
	r.Process = limit(r.Process)
	r.Container.Taint = slices.Clone(r.Container.Taint)
	a.bound = r.Ask != Command && r.Ask != Tool && bound(r.Process)
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
