package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/policy"
	"weir/internal/show"
)

func (s *system) approveCommand() *cobra.Command {
	return s.answerCommand(true, &cobra.Command{
		Use:   "approve ID... | --all",
		Short: "let a command reach its destination, once or for a time, or a tool call be made",
		Long: `Lets the process that asked, and what it starts, reach that destination, once. Of a tool's call: lets this call be made.

With --for, the approval goes on: you see what it adds, and it counts after you type yes. It ends with its time, by weir revoke, and when
the container gets new taint. weir approvals lists such approvals.`,
		Example: `  sudo weir approve abc234
  sudo weir approve abc234 def567 --reason "the build's mirror"
  sudo weir approve abc234 --for 30m --who program
  sudo weir approve --to 'pypi.org*'
  sudo weir approve --all`,
	})
}

// answers are what the flags of approve and deny say.
type answers struct {
	verb     string // approve or deny
	why      string
	lasts    string
	narrow   bool
	scope    int
	who      string
	size     string
	bytes    int64 // of size
	keeps    bool
	all, yes bool

	container, to, matching string // of all questions, those of this container, to this destination, of this command
}

// some says whether a flag selects among the questions that wait.
func (a answers) some() bool { return a.container != "" || a.to != "" || a.matching != "" }

// selects says whether a question is one of those that are meant.
func (a answers) selects(q gate.Question) bool {
	c, d := q.Container, q.Destination
	return (a.container == "" || c.ID == a.container || c.Name == a.container) &&
		(a.to == "" || glob(a.to, d.String()) || d.Name != "" && glob(a.to, d.Name) || d.Address != "" && glob(a.to, d.Address)) &&
		(a.matching == "" || glob(a.matching, cmp.Or(q.Text, event.Command(q.Process.Argv, 0, 0))))
}

// glob says whether s is what a pattern says, in which * stands for anything.
func glob(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	rest, ok := strings.CutPrefix(s, parts[0])
	if !ok || len(parts) == 1 {
		return ok && rest == ""
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		if _, rest, ok = strings.Cut(rest, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(rest, parts[last])
}

// answerCommand makes cmd the one that answers questions.
func (s *system) answerCommand(allow bool, cmd *cobra.Command) *cobra.Command {
	a := answers{verb: "deny"}
	if allow {
		a.verb = "approve"
		cmd.Flags().IntVar(&a.scope, "scope", 1, "who is let out, by the `number` that the question gives: 1 is the process that asked")
		cmd.Flags().StringVar(&a.lasts, "for", "", "of a connection: a `time` from 1s to 24h such as 30m, or session, until the container ends; of a call of VaultHttpFetch or LocalMemoryRecall: session, or key for every container")
		cmd.Flags().StringVar(&a.who, "who", "", "with --for, of a connection: `process` (the default) of --scope with all it starts, program, or container")
		cmd.Flags().StringVar(&a.size, "bytes", "", "with --for, of a connection: at most this `size` in all, such as 64MiB")
		cmd.Flags().BoolVar(&a.keeps, "despite-taint", false, "with --for, of a connection: new taint does not end it")
		cmd.Flags().BoolVar(&a.narrow, "narrow", false, "with --for, of a tool's call: only calls with the same method and path")
	}
	whyFlag(cmd, &a.why, false)
	cmd.Flags().StringVar(&a.why, "reason", "", "the same as --why")
	cmd.Flags().BoolVar(&a.all, "all", false, "every question that waits now: shows them, then asks")
	cmd.Flags().StringVar(&a.container, "container", "", "every question of the container of this `name` or id: shows them, then asks")
	cmd.Flags().StringVar(&a.to, "to", "", "every question about this `destination`, with * for anything")
	cmd.Flags().StringVar(&a.matching, "matching", "", "every question of a command like this `pattern`, with * for anything")
	cmd.Flags().BoolVarP(&a.yes, "yes", "y", false, "where questions are shown first, do not ask")
	cmd.Args = func(cmd *cobra.Command, ids []string) error {
		const what = "the question's id; weir pending lists them"
		switch {
		case a.some() && len(ids) > 0:
			return usage(cmd, "--container, --to and --matching choose questions: leave %q out", ids[0])
		case a.some():
			a.all = true
			return nil
		case a.all && len(ids) > 0:
			return usage(cmd, "--all is every question: leave %q out", ids[0])
		case a.all:
			return nil
		case len(ids) == 0 || slices.Contains(ids, ""):
			return usage(cmd, "give %s", what)
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		switch flags := cmd.Flags(); {
		case slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(id, "/") }):
			return s.answerElsewhere(cmd, a, ids)
		case a.yes && !a.all && a.lasts == "":
			return usage(cmd, "--yes is for what asks: --all, --for, --container, --to and --matching")
		case (a.all || len(ids) > 1) && (flags.Changed("scope") || a.lasts != ""):
			return usage(cmd, "--scope and --for are for one question: give one id")
		case a.lasts != "" && a.lasts != gate.ForKey && !gate.Lasts(a.lasts):
			return usage(cmd, "--for %s: accepted are a time from 1s to 24h such as 30m, session, and key for a tool's call", a.lasts)
		case a.who != "" && !slices.Contains([]string{gate.WhoProcess, gate.WhoProgram, gate.WhoContainer}, a.who):
			return usage(cmd, "--who %s: accepted are process, program and container", a.who)
		case flags.Changed("scope") && a.who != "" && a.who != gate.WhoProcess:
			return usage(cmd, "--scope is one process and what it starts, and --who %s is more: leave one of them out", a.who)
		case a.lasts == "" && (a.who != "" || a.size != "" || a.keeps):
			return usage(cmd, "--who, --bytes and --despite-taint say what an approval for longer covers: give --for, too")
		case a.narrow && a.lasts == "":
			return usage(cmd, "--narrow says what an approval for longer covers: give --for session or --for key, too")
		case flags.Changed("scope") && a.scope < 1:
			return usage(cmd, "--scope is %d: give a number from 1, as the question lists them", a.scope)
		case !flags.Changed("scope"):
			a.scope = 0 // a tool's call has none
		}
		if a.size != "" {
			n, ok := policy.ParseBytes(a.size)
			if !ok || n < 1 {
				return usage(cmd, "--bytes %s: give a number of bytes, also as 64KiB, 64MiB or 1GiB", a.size)
			}
			a.bytes = n
		}
		list, err := s.client().Pending(cmd.Context())
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(q gate.Question) bool { return !a.selects(q) })
		if a.lasts != "" {
			i := slices.IndexFunc(list, func(q gate.Question) bool { return q.ID == ids[0] })
			switch tool := i >= 0 && list[i].Tool; {
			case tool && (a.who != "" || a.size != "" || a.keeps):
				return usage(cmd, "%s is a tool's call: --who, --bytes and --despite-taint are for connections", ids[0])
			case i >= 0 && !tool && (a.narrow || a.lasts == gate.ForKey):
				return usage(cmd, "%s is a connection: --narrow and --for key are for tools' calls", ids[0])
			case !tool:
				return s.answerLasting(cmd, a, ids[0], list)
			}
		}
		if a.all {
			if ids, err = s.confirmAll(cmd, a, list); err != nil {
				return err
			}
		}
		var errs []error
		for i, id := range ids {
			if slices.Contains(ids[:i], id) {
				continue
			}
			err := s.answerOne(cmd.Context(), a, id, list)
			if err != nil && len(ids) > 1 {
				err = fmt.Errorf("%s: %w", event.Visible(id), err)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		list, err := s.client().Pending(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var ids []string
		for _, q := range list {
			if !slices.Contains(args, q.ID) {
				ids = append(ids, q.ID+"\t"+event.Command([]string{cmp.Or(q.Text, q.Process.Comm)}, 40, 80))
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// answerElsewhere answers NODE/ID, a question of any node.
func (s *system) answerElsewhere(cmd *cobra.Command, a answers, ids []string) error {
	args, once := []string{ids[0]}, len(ids) == 1
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "reason", "why":
			args = append(args, "--why="+f.Value.String())
		case "scope":
			args = append(args, "--scope="+f.Value.String())
		case "run":
		default:
			once = false
		}
	})
	if !once {
		return usage(cmd, "%s is a question of another node: it is answered alone and for once, with --scope and --why", event.Visible(ids[0]))
	}
	return s.fleet(cmd, args...)
}

// answerOne answers one question and prints what it was, as list has it. What is wrong with id the sensor says.
func (s *system) answerOne(ctx context.Context, a answers, id string, list []gate.Question) error {
	text := ""
	if i := slices.IndexFunc(list, func(q gate.Question) bool { return q.ID == id }); i >= 0 {
		text = show.Question(list[i])
	}
	r := gate.Reply{Allow: a.verb == "approve", By: s.operator(), Why: a.why, Scope: a.scope, For: a.lasts, Narrow: a.narrow, Shown: text}
	q, err := s.client().Answer(ctx, id, r)
	if err != nil {
		return err
	}
	if text != "" && (!a.all || a.yes) { // else it was shown
		show.Put(s.stderr, event.Visible(id)+"\n"+indent(text))
	}
	verb := "denied"
	if r.Allow {
		verb = "approved"
	}
	return s.answer(q, func(w io.Writer) { fmt.Fprintf(w, "%s: %s%s%s\n", verb, show.Subject(q), also(q), show.Again(q)) })
}

// answerLasting gives an approval that goes on, after it was shown what it adds.
func (s *system) answerLasting(cmd *cobra.Command, a answers, id string, list []gate.Question) error {
	r := gate.Reply{
		Allow: true, By: s.operator(), Why: a.why, Scope: a.scope, For: a.lasts, Who: a.who, Bytes: a.bytes, Keeps: a.keeps,
	}
	i := slices.IndexFunc(list, func(q gate.Question) bool { return q.ID == id })
	if i < 0 {
		_, err := s.client().Answer(cmd.Context(), id, r) // what is wrong with it the sensor says
		return cmp.Or(err, gate.ErrUnknown)
	}
	given, err := list[i].StandingBy(r)
	if err != nil {
		other := r
		other.Who, other.Scope = gate.WhoContainer, 0
		if _, oerr := list[i].StandingBy(other); oerr == nil { // it is who it would be for
			return fmt.Errorf("%w; --scope and --who choose who it is for", err)
		}
		return err
	}
	before, err := s.client().Approvals(cmd.Context())
	if err != nil {
		return err
	}
	r.Adds, r.Shown = given.Adds, show.Question(list[i])+show.Adds(given, before)
	lines := event.Visible(id) + "\n" + indent(r.Shown)
	if err := show.Put(s.stderr, lines); err != nil {
		return err
	}
	if !a.yes {
		if !term.IsTerminal(int(s.stdin.Fd())) {
			return usage(cmd, "--for asks, and standard input is no terminal: add --yes")
		}
		if err := show.Confirm(cmd.Context(), s.stdin, s.stderr, show.Approve(s.stderr, lines)); err != nil {
			return err
		}
	}
	q, err := s.client().Answer(cmd.Context(), id, r)
	if err != nil {
		return err
	}
	return s.answer(q, func(w io.Writer) { fmt.Fprintf(w, "approved: %s%s\n", given.Adds, show.Again(q)) })
}

// also tells what else an approval of q lets be done.
func also(q gate.Question) string {
	i := slices.IndexFunc(q.Covers, func(c gate.Cover) bool { return q.For != "" && c.For == q.For && c.Rule == q.Rule })
	if i < 0 {
		return ""
	}
	return "; and " + event.Visible(q.Covers[i].Text)
}

// confirmAll shows the questions and asks whether all of them are meant; it gives the ids of those that were shown.
func (s *system) confirmAll(cmd *cobra.Command, a answers, list []gate.Question) ([]string, error) {
	if len(list) == 0 {
		s.note("no questions")
		return nil, nil
	}
	ids := make([]string, len(list))
	for i, q := range list {
		ids[i] = q.ID
	}
	if a.yes {
		return ids, nil
	}
	if !term.IsTerminal(int(s.stdin.Fd())) {
		return nil, usage(cmd, "--all asks, and standard input is no terminal: add --yes, or give ids")
	}
	var b strings.Builder
	printPending(&b, list, time.Now())
	if err := show.Put(s.stderr, b.String()); err != nil {
		return nil, err
	}
	beyond := ""
	if show.Above(s.stderr, b.String()) {
		beyond = ", also what is above the screen"
	}
	return ids, show.Confirm(cmd.Context(), s.stdin, s.stderr, fmt.Sprintf("\n%s all of these %d%s? Type yes: ", a.verb, len(list), beyond))
}
