package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/linux"
	"weir/internal/netegress"
	"weir/internal/policy"
	"weir/internal/secretfiles"

	"weir/internal/taint"
)

// sessionsOptions are what Sessions need; all must be set.
type sessionsOptions struct {
	Books     *taint.State
	Kernel    *netegress.Egress
	Files     *secretfiles.Files
	Agents    *bridgeHost
	Log       *eventLog
	Parents   *guardParents
	Policies  *activePolicy
	Processes *processCache
	Summaries *taintSummaries
}

// sessionTable are those of weir guard. It is a control.Guardian.
type sessionTable struct{ opts sessionsOptions }

// newSessions knows those that are in the books.
func newSessions(o sessionsOptions) *sessionTable { return &sessionTable{o} }

var errBusy = errors.New("processes are left")

// Guard implements control.Guardian.
func (s *sessionTable) Guard(_ context.Context, r control.GuardRequest) (control.GuardReply, error) {
	c := taint.Container{ID: "g-" + strings.ToLower(rand.Text()[:6]), Name: r.Name, Session: true, Text: r.Policy}
	p := s.opts.Policies.Base()
	if r.Policy != "" {
		var err error
		if p, err = policy.Parse(r.PolicyName, []byte(r.Policy)); err != nil {
			return control.GuardReply{}, control.Errorf(control.Usage, "%w", err)
		}
	}
	bits, err := taint.StartBits(append(p.Taint.Initial, r.Taint...))
	if err != nil {
		return control.GuardReply{}, control.Errorf(control.Usage, "%w", err)
	}
	if r.Name != "" {
		if st, err := s.opts.Books.Find(r.Name); err == nil && linux.CgroupPopulated(st.Cgroup) {
			return control.GuardReply{}, control.Errorf(control.Usage, "the name %q is taken by %s: choose another", r.Name, st.ID)
		}
	}
	if err := s.opts.Parents.GuardSlice(); err != nil {
		return control.GuardReply{}, err
	}
	c.Cgroup = guardSlice + "/" + c.ID
	if c.CgroupID, err = linux.MakeCgroup(c.Cgroup); err != nil {
		return control.GuardReply{}, err
	}
	if r.Policy != "" {
		if c.Policy, err = s.opts.Kernel.AddPolicy(s.opts.Policies.InMode(p)); err != nil {
			return control.GuardReply{}, errors.Join(err, linux.RemoveCgroup(c.Cgroup))
		}
		if err := s.opts.Files.Set(c.Policy, p.Taint.SecretFiles); err != nil {
			return control.GuardReply{}, errors.Join(err, s.opts.Kernel.DropPolicy(c.Policy), linux.RemoveCgroup(c.Cgroup))
		}
		s.opts.Policies.SetOwn(c.ID, p)
	}
	st, err := s.opts.Books.Guard(c, bits, r.By)
	if err == nil && bits != 0 {
		ec := s.opts.Processes.Container(st.CgroupID, st.Taint)
		err = s.opts.Log.Write(event.Event{
			Kind: event.Taint, Container: &ec, Change: &event.TaintChange{Set: bits.Names(), Source: "guard", By: r.By},
		})
	}
	if err != nil {
		return control.GuardReply{}, errors.Join(err, s.undo(c))
	}
	bridge, err := s.opts.Agents.Admit(st.ID, st.Policy)
	if err != nil {
		return control.GuardReply{}, errors.Join(err, s.undo(c))
	}
	mode := s.opts.Policies.InMode(p).Mode
	return control.GuardReply{ID: c.ID, Cgroup: linux.CgroupDir(c.Cgroup), Bridge: bridge, Mode: string(mode), Taint: st.Taint.Names()}, nil
}

// undo removes a session that could not be made.
func (s *sessionTable) undo(c taint.Container) error {
	if st, err := s.opts.Books.Find(c.ID); err == nil {
		return s.remove(st)
	}
	return removeTree(c.Cgroup)
}

// GuardAgent implements control.Guardian.
func (s *sessionTable) GuardAgent(_ context.Context, id string, pid int) error {
	st, err := s.opts.Books.Find(id)
	if err != nil {
		return err
	}
	path, err := linux.CgroupOf(pid)
	if err != nil || path != st.Cgroup {
		return fmt.Errorf("process %d is not in the cgroup of %s", pid, st.ID)
	}
	return s.opts.Books.SetAgent(st.ID, pid)
}

// GuardEnd implements control.Guardian. What is left goes on, guarded.
func (s *sessionTable) GuardEnd(_ context.Context, id string) (control.Summary, error) {
	st, err := s.opts.Books.Find(id)
	if err != nil {
		return control.Summary{}, err
	}
	sum := s.opts.Summaries.of(st.ID)
	sum.Taint = st.Taint.Names()
	pids, err := linux.CgroupTree(st.Cgroup)
	if err != nil {
		return sum, err
	}
	if sum.Left = len(pids); sum.Left > 0 {
		return sum, nil
	}
	err = s.remove(st)
	if errors.Is(err, errBusy) {
		err = nil // Reap tries again
	}
	return sum, err
}

// remove ends a session: its cgroup goes first, so that nothing can be in it
// when its state is forgotten.
func (s *sessionTable) remove(st taint.Status) error {
	if err := s.opts.Kernel.Revoke(st.CgroupID, 0); err != nil {
		return err
	}
	if err := removeTree(st.Cgroup); err != nil {
		return err
	}
	if err := errors.Join(s.opts.Books.Forget(st.ID), s.opts.Agents.Dismiss(st.ID, st.Policy)); err != nil {
		return err
	}
	s.opts.Summaries.drop(st.ID)
	if s.opts.Policies.DropOwn(st.ID) && st.Policy != netegress.BaseSlot {
		return errors.Join(s.opts.Files.Drop(st.Policy), s.opts.Kernel.DropPolicy(st.Policy))
	}
	return nil
}

// removeTree removes a cgroup with all below it, children first; errBusy when
// processes are left.
func removeTree(path string) error {
	err := linux.RemoveCgroupTree(path)
	if errors.Is(err, unix.EBUSY) {
		return errBusy
	}
	return err
}

// abandoned is how long a session may wait for its agent.
const abandoned = time.Minute

// Reap removes sessions that nothing is in any more, the second time it finds
// them so: whoever started one asks for its summary first. idle is what it found
// the time before.
func (s *sessionTable) Reap(idle map[string]bool) error {
	var errs []error
	for _, st := range s.opts.Books.Sessions() {
		if linux.CgroupPopulated(st.Cgroup) || st.Agent == 0 && time.Since(st.Since) < abandoned {
			delete(idle, st.ID)
			continue
		}
		if !idle[st.ID] {
			idle[st.ID] = true
			continue
		}
		delete(idle, st.ID)
		if err := s.remove(st); err != nil && !errors.Is(err, errBusy) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
