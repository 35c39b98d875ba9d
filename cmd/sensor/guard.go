package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/policy"
	"weir/internal/prompt"
	"weir/internal/runner"
	"weir/internal/taint"
)

// guardOptions are the flags of weir guard.
type guardOptions struct {
	taint  []string
	policy string
	name   string
	user   string
	quiet  bool
	silent bool // no notices
	preset string
	tell   bool // only say what the preset does
	cgroup string
	model  modelOptions
}

func (s *system) guardCommand() *cobra.Command {
	var o guardOptions
	cmd := &cobra.Command{
		Use:   "guard [flags] -- CMD [ARG…]",
		Short: "run one command in a guarded cgroup of its own",
		Long: `Runs CMD in a guarded cgroup of its own. Everything that it starts stays in it, and once it is tainted the kernel denies its egress.
With --cgroup it runs no command: an existing cgroup, with everything below it, becomes one container until it is removed.
If no sensor runs, weir guard starts one for as long as CMD runs; its events go to ` + runner.Events + `.
Under sudo, CMD runs as the user who called sudo. The exit status is CMD's; 127: CMD was not found, 126: it cannot be run.`,
		Example: `  sudo weir guard -- bash
  sudo weir guard --taint secret --name review -- claude
  sudo weir guard --preset claude -- claude
  sudo weir guard --preset claude --model-key anthropic -- claude
  weir guard --preset claude --explain
  sudo weir guard --cgroup agent-1.scope --taint secret`,
		Args: func(cmd *cobra.Command, argv []string) error {
			if o.cgroup != "" {
				return args(0, 0, "")(cmd, argv)
			}
			if o.tell && len(argv) == 0 {
				return nil
			}
			return args(1, -1, "a command, after --")(cmd, argv)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			p, known := presets[o.preset]
			switch {
			case o.cgroup != "" && (o.policy != "" || o.user != "" || o.preset != "" || o.tell):
				return usage(cmd, "--cgroup guards what runs already: leave --policy, --user, --preset and --explain out")
			case o.preset != "" && !known:
				return usage(cmd, "--preset %s: accepted are %s", o.preset, presetNames)
			case o.model.given() && p.api == "":
				return usage(cmd, "--model-key and its like need --preset claude or codex")
			case o.model.given() && o.model.key == "" && o.model.tokenFile == "":
				return usage(cmd, "give --model-key or --model-token-file, too")
			case o.preset != "" && o.policy != "":
				return usage(cmd, "--preset has a policy of its own: leave --policy out")
			case o.tell && o.preset == "":
				return usage(cmd, "--explain says what a preset does: add --preset, one of %s", presetNames)
			case o.tell:
				_, err := io.WriteString(s.stdout, p.explain(o.preset))
				return err
			}
			if s.euid != 0 {
				return errRoot
			}
			if len(o.taint) > 0 {
				if _, err := taint.ParseBits(o.taint); err != nil {
					return usage(cmd, "--taint: %w", err)
				}
			}
			if o.cgroup != "" {
				return s.guardCgroup(cmd.Context(), o)
			}
			return s.guard(cmd.Context(), o, args)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // CMD's flags are CMD's
	f.StringSliceVar(&o.taint, "taint", nil, "`bits` that the session starts with: corruption,secret")
	f.StringVar(&o.policy, "policy", "", "policy `file` of this session")
	f.StringVar(&o.name, "name", "", "`name` to show people")
	f.StringVar(&o.user, "user", "", "run CMD as this `user` (default: who called sudo)")
	f.StringVar(&o.preset, "preset", "", "policy, protected files and hook for an `agent`: "+presetNames)
	f.StringVar(&o.cgroup, "cgroup", "", "guard an existing `cgroup`: its path, or the name of a systemd slice, scope or service")
	f.StringVar(&o.model.key, "model-key", "", "reach the model only by its proxy, which adds this `key` of the vault")
	f.StringVar(&o.model.tokenFile, "model-token-file", "", "reach the model only by its proxy, which compares keys with what this `file` has")
	f.StringVar(&o.model.setup.Upstream, "model-upstream", "", "https `URL` of the model, if not its maker's")
	f.StringVar(&o.model.ca, "model-ca", "", "`file` of certificates that sign the model's, in place of the system's")
	f.BoolVar(&o.tell, "explain", false, "say what --preset denies and what remains possible, and run nothing")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print errors only")
	f.BoolVar(&o.silent, "no-notices", false, "write no line to the terminal, and nothing on the desktop, when CMD waits for an answer")
	completeFlag(cmd, "taint", taintBits())
	completeFlag(cmd, "preset", strings.Split(presetNames, ", "))
	return cmd
}

func (s *system) guard(ctx context.Context, o guardOptions, argv []string) error {
	if err := runner.FindProgram(argv[0]); err != nil {
		return err
	}
	w := s.world()
	who, err := w.Identify(o.user)
	if err != nil {
		return err
	}
	request := control.GuardRequest{Name: o.name, Taint: o.taint, By: s.operator()}
	if o.policy != "" {
		if request.Policy, err = runner.ReadPolicy(o.policy); err != nil {
			return err
		}
		request.PolicyName = o.policy
	}
	session := runner.Session{
		Request: request, Policy: o.policy, Who: who, Argv: argv,
		Began: func(r control.GuardReply) {
			if !o.quiet {
				s.tellBegin(r, who)
			}
		},
		Ended: func(id string, sum control.Summary) {
			if !o.quiet {
				s.tellSummary(id, sum)
			}
		},
	}
	if !o.quiet && !o.silent {
		session.Beside = s.notices
	}
	if o.preset != "" {
		if err := s.apply(ctx, o.preset, o.quiet, &o.model, &session); err != nil {
			return err
		}
	}
	return w.Guard(ctx, session)
}

// guardCgroup guards what runs already.
func (s *system) guardCgroup(ctx context.Context, o guardOptions) error {
	c, err := s.client().GuardCgroup(ctx, control.CgroupRequest{Cgroup: o.cgroup, Name: o.name, Taint: o.taint, By: s.operator()})
	if err != nil {
		return err
	}
	return s.answer(c, func(w io.Writer) {
		if o.quiet {
			return
		}
		fmt.Fprintf(w, "%s is guarded\n", event.Visible(c.Cgroup))
		printTaint(w, c)
	})
}

// tellBegin says what a session denies, and where questions are answered (F12).
func (s *system) tellBegin(r control.GuardReply, who runner.Identity) {
	denies := ""
	switch {
	case r.Mode == string(policy.Observe):
		denies = ": the mode is observe, nothing is denied"
	case r.Mode == string(policy.Seal):
		denies = ": the mode is seal, all egress is denied"
	case r.Mode != "" && len(r.Taint) > 0:
		denies = " and starts tainted (" + strings.Join(r.Taint, ", ") + "): egress needs an approval"
	case r.Mode != "":
		denies = " and is clean: nothing is denied until it is tainted"
	}
	s.note("weir guard: %s runs as %s%s", r.ID, who.Says, denies)
	if who.Root() {
		s.note("weir guard: root can undo what guards it: better use --user NAME")
	}
	if r.Mode == string(policy.Enforce) {
		dir := ""
		if s.runDir != control.DefaultDir {
			dir = " --run " + event.Command([]string{s.runDir}, 0, 0)
		}
		s.note("weir guard: to answer questions, run in another terminal: sudo weir%s top", dir)
	}
}

// notices tells the person at the terminal, and at the desktop where there is one, that the session waits for an answer.
func (s *system) notices(ctx context.Context, id string) {
	var show func(context.Context) error
	if desktop, ok := s.world().Desktop(); ok {
		show = func(ctx context.Context) error {
			return desktop.Show(ctx, "weir", "A command in "+event.Visible(id)+" waits for your answer.")
		}
	}
	// standard output and error may be files: they are the command's
	tty, err := os.OpenFile("/dev/tty", os.O_WRONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil && show == nil {
		return
	}
	defer tty.Close() // without one it does nothing
	prompt.Notify(ctx, s.client(), id, tty, show)
}

func (s *system) tellSummary(id string, sum control.Summary) {
	if s.json {
		if err := writeJSON(s.stderr, sum); err != nil {
			s.note("weir guard: %v", err)
		}
		return
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
}
