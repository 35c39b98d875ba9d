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

// Limits on what a question stores of its asker.
const (
	maxCommand = 32 << 10 // bytes of a text; what it is matched by is of the whole
	maxArgv    = 32 << 10 // bytes, one more counted per argument; of all parents together as well
	maxEnv     = 256      // names
	maxChain   = 64       // ancestors
)

// CheckRequest makes a tainted connect ready to be asked and matched: its destination
// in one spelling, its process within limits and no longer shared with the caller.
func CheckRequest(r Request) (CheckedRequest, error) {
	// Without a start time, a reused pid would be the same process.
	if r.Process.PID <= 0 || r.Process.Start == 0 {
		return CheckedRequest{}, errors.New("the request names no process: pid and start time are needed")
	}
	a := CheckedRequest{self: process{r.Process.PID, r.Process.Start}, command: command(r.Process)}
	switch r.Ask {
	case Connect:
		d, err := normal(r.Destination)
		if err != nil {
			return CheckedRequest{}, err
		}
		r.Destination = d
	case Command, Tool:
		if strings.TrimSpace(r.Command) == "" {
			return CheckedRequest{}, errors.New("the request names no command")
		}
		r.Destination, a.command = event.Destination{}, Digest(r.Command)
		if r.Ask == Tool {
			a.command = Digest("tool\x00" + r.Command) // no command of the same words has its answer
		}
		if len(r.Command) > maxCommand {
			r.Command = strings.ToValidUTF8(r.Command[:maxCommand], "") + "…"
		}
	default:
		r.Destination = event.Destination{}
	}
	r.Process = limit(r.Process)
	if r.Ask == Connect {
		a.chain = chain(r.Process, r.Above)
	}
	r.Above = nil
	r.Container.Taint = slices.Clone(r.Container.Taint)
	a.bound = r.Ask != Command && r.Ask != Tool && bound(r.Process)
	a.Request = r
	return a, nil
}

// to is where an approval of a command lets it go.
func (r Request) to() []classify.Place {
	if r.Judged == nil || r.Ask == Connect {
		return nil
	}
	return r.Judged.Facts.To
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
	argv, _ := within(p.Argv, maxArgv)
	cut := len(argv) < len(p.Argv)
	p.Argv, p.Truncated, p.Claimed = argv, p.Truncated || cut, p.Claimed && !cut
	if len(p.Env) > maxEnv {
		p.Env, p.EnvCut = p.Env[:maxEnv], true
	}
	p.Env = slices.Clone(p.Env)
	p.Ancestry = slices.Clone(p.Ancestry[:min(len(p.Ancestry), maxChain)])
	if p.Exe != nil {
		exe := *p.Exe
		p.Exe = &exe
	}
	return p
}

// within is as much of argv as there is room for, and the room that is left.
func within(argv []string, room int) (part []string, left int) {
	for i, s := range argv {
		if room -= len(s) + 1; room < 0 {
			return slices.Clone(argv[:i]), 0
		}
	}
	return slices.Clone(argv), room
}

// chain is whom an approval can let out: p, which is within limits, and its parents, which are cut to them.
func chain(p event.Process, above []event.Member) []event.Member {
	all, room := []event.Member{p.Member()}, maxArgv
	for _, m := range above[:min(len(above), maxChain)] {
		argv, left := within(m.Argv, room)
		cut := len(argv) < len(m.Argv)
		m.Argv, m.Truncated, m.Claimed, room = argv, m.Truncated || cut, m.Claimed && !cut, left
		all = append(all, m)
	}
	return all
}
