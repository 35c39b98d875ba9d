package gate

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"weir/internal/classify"
	"weir/internal/cop"
	"weir/internal/event"
)

// Reviewer is the Cop. A nil one is a failure like any other.
type Reviewer interface {
	Review(ctx context.Context, c cop.Case) (cop.Opinion, error)
}

// judge classifies what is asked about: a command's text, or what a process runs.
func judge(r Request) classify.Result {
	if r.Ask == Command {
		return classify.ShellWith(r.Command, r.Dir, r.Git)
	}
	p := r.Process
	o := classify.Observed{Argv: p.Argv, Env: p.Env, File: fileOf(p), Dir: p.Dir, Git: r.Git, Truncated: p.Truncated || p.EnvCut}
	if p.Exe != nil {
		o.Truncated = o.Truncated || p.Exe.Memfd || p.Exe.Deleted // a name that stands for nothing any more
	}
	return classify.Argv(o)
}

func fileOf(p event.Process) string {
	if p.Exe == nil {
		return ""
	}
	return p.Exe.Path
}

// unreadable says why a command could not be judged at all; empty if it was (G9).
func unreadable(r Request, judged classify.Result) Reason {
	if r.Process.Truncated || r.Process.EnvCut {
		return ArgvLimit
	}
	if judged.Facts.Cut {
		return TextLimit
	}
	for _, found := range judged.Reasons {
		switch {
		case strings.HasPrefix(found.Rule, "limit-"):
			return TextLimit
		case found.Rule == "syntax" && r.Ask == Command:
			return Unparsable
		}
	}
	return ""
}

func (g *Gate) theReviewer() Reviewer {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reviewer
}

func caseOf(r Request, judged classify.Result) cop.Case {
	c := cop.Case{
		Command:   r.Command,
		Argv:      classify.Named(r.Process.Argv, fileOf(r.Process)),
		Truncated: r.Process.Truncated,
		Taint:     cop.Taint{Corruption: slices.Contains(r.Container.Taint, "corruption"), Secret: slices.Contains(r.Container.Taint, "secret")},
		Dir:       r.Dir,
		ID:        r.Container.ID,
		Container: r.Container.Name,
		Image:     r.Container.Image,
		Judged:    judged,
		Policy:    r.Policy,
	}
	if r.Ask == Command { // the process is the one that asks, not the one that will run
		c.Argv, c.Truncated = nil, false
	}
	for _, p := range r.Process.Ancestry {
		if r.Ask != Command && p.Inside {
			c.Ancestry = append(c.Ancestry, cop.Process{Comm: p.Comm, Argv: classify.Named(p.Argv, p.Exe)})
		}
	}
	if r.Ask == Connect {
		c.Destination = reached(r.Destination)
	}
	return c
}

func reached(d event.Destination) cop.Destination {
	to := cop.Destination{Port: d.Port, Protocol: d.Protocol}
	if d.Name != "" {
		to.Name = d.Name // nobody knows yet where it leads
		return to
	}
	addr, err := netip.ParseAddr(d.Address)
	if err != nil {
		to.Name = d.Address
		return to
	}
	to.Address = addr
	return to
}

// reviewFailed is the code of a failed review, as reasons are spelled.
func reviewFailed(code cop.Code) Reason {
	return Reason(strings.ReplaceAll(string(code), "-", "_"))
}
