package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/control"
	"weir/internal/policy"
	"weir/internal/taint"
)

// guardOptions are the flags of weir guard.
type guardOptions struct {
	taint  []string
	policy string
	name   string
	user   string
	quiet  bool
}

func (s *system) guardCommand() *cobra.Command {
	var o guardOptions
	cmd := &cobra.Command{
		Use:   "guard [flags] -- CMD [ARG…]",
		Short: "run one command in a guarded cgroup of its own",
		Long: `Runs CMD in a guarded cgroup of its own: all that it starts stays in it, and once it is tainted the kernel denies its egress.
If no sensor runs, one is started for as long as CMD does; its events go to ` + defaultEvents + `.
Under sudo, CMD runs as the user who called sudo. The exit status is CMD's; 127: CMD was not found, 126: it cannot be run.`,
		Example: `  sudo weir guard -- bash
  sudo weir guard --taint secret --name review -- claude`,
		Args: args(1, -1, "a command, after --"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.euid != 0 {
				return errRoot
			}
			if len(o.taint) > 0 {
				if _, err := taint.ParseBits(o.taint); err != nil {
					return usage(cmd, "--taint: %v", err)
				}
			}
			return s.guard(cmd.Context(), o, args)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // CMD's flags are CMD's
	f.StringSliceVar(&o.taint, "taint", nil, "`bits` that it starts with: corruption,secret")
	f.StringVar(&o.policy, "policy", "", "policy `file` of this session")
	f.StringVar(&o.name, "name", "", "`name` for people")
	f.StringVar(&o.user, "user", "", "run CMD as this `user` (default: who called sudo)")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "say nothing but errors")
	return cmd
}

func (s *system) guard(ctx context.Context, o guardOptions, argv []string) error {
	if err := findProgram(argv[0]); err != nil {
		return err
	}
	who, err := s.identity(o.user)
	if err != nil {
		return err
	}
	request := control.GuardRequest{Name: o.name, Taint: o.taint, By: s.operator()}
	if o.policy != "" {
		if request.Policy, err = readPolicy(o.policy); err != nil {
			return err
		}
		request.PolicyName = o.policy
	}
	forward := newForwarder(ctx)
	defer forward.stop()
	own, err := s.ensureSensor(forward.ctx, o.policy)
	if err != nil {
		return forward.explain(err)
	}
	if own != nil {
		defer s.stopSensor(context.WithoutCancel(ctx), own)
	}
	session, err := s.client().Guard(forward.ctx, request)
	if err != nil {
		return forward.explain(err)
	}
	if !o.quiet {
		s.note("weir guard: %s: %s", session.ID, who.says)
	}
	runErr := s.runGuarded(forward, session, who, argv)
	return errors.Join(runErr, s.endSession(context.WithoutCancel(ctx), session.ID, o.quiet))
}

// findProgram finds a slip before anything is started for it. What only the
// user's own rights would show is found when it is executed.
func findProgram(name string) error {
	if _, err := exec.LookPath(name); err != nil && !errors.Is(err, exec.ErrDot) {
		return cannotRun(name, err)
	}
	return nil
}

func readPolicy(path string) (string, error) {
	if _, err := policy.Load(path); err != nil {
		return "", err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read policy: %w", err)
	}
	return string(data), nil
}

// endSession tells what happened. A sensor that is gone is no failure of CMD's.
func (s *system) endSession(ctx context.Context, id string, quiet bool) error {
	sum, err := s.client().GuardEnd(ctx, id)
	if err != nil {
		s.note("weir guard: %s: end the session: %v", id, err)
		return nil
	}
	switch {
	case quiet:
		return nil
	case s.json:
		return writeJSON(s.stderr, sum)
	}
	said := []string{
		fmt.Sprintf("%d denied", sum.Denied), fmt.Sprintf("%d asked", sum.Asked), fmt.Sprintf("%d approved", sum.Approved),
	}
	if len(sum.Taint) > 0 {
		said = append(said, "tainted: "+strings.Join(sum.Taint, ", "))
	}
	if sum.Left > 0 {
		said = append(said, fmt.Sprintf("%d processes go on, guarded", sum.Left))
	}
	s.note("weir guard: %s ended: %s", id, strings.Join(said, ", "))
	return nil
}
