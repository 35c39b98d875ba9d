package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/show"
)

func (s *system) approveCommand() *cobra.Command {
	return s.answerCommand(true, &cobra.Command{
		Use:   "approve ID... | --all",
		Short: "let a command reach its destination once, or a tool call be made",
		Example: `  sudo weir approve abc234
  sudo weir approve abc234 def567 --reason "the build's mirror"
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
	all, yes bool
}

// answerCommand makes cmd the one that answers questions.
func (s *system) answerCommand(allow bool, cmd *cobra.Command) *cobra.Command {
	a := answers{verb: "deny"}
	if allow {
		a.verb = "approve"
		cmd.Flags().IntVar(&a.scope, "scope", 1, "who is let out, by the `number` that the question gives: 1 is the process that asked")
		cmd.Flags().StringVar(&a.lasts, "for", "", "`session` or key: also approve later calls of VaultHttpFetch or LocalMemoryRecall, as the question lists them")
		cmd.Flags().BoolVar(&a.narrow, "narrow", false, "with --for: only calls with the same method and path")
	}
	cmd.Flags().StringVar(&a.why, "why", "", "`reason`, for the log")
	cmd.Flags().StringVar(&a.why, "reason", "", "the same as --why")
	cmd.Flags().BoolVar(&a.all, "all", false, "every question that waits now: shows them, then asks")
	cmd.Flags().BoolVarP(&a.yes, "yes", "y", false, "with --all, do not ask")
	cmd.Args = func(cmd *cobra.Command, ids []string) error {
		const what = "the question's id; weir pending lists them"
		switch {
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
		case a.yes && !a.all:
			return usage(cmd, "--yes is for --all")
		case (a.all || len(ids) > 1) && (flags.Changed("scope") || a.lasts != ""):
			return usage(cmd, "--scope and --for are for one question: give one id")
		case a.lasts != "" && a.lasts != "session" && a.lasts != "key":
			return usage(cmd, "--for %s: accepted are session and key, as the question lists them", a.lasts)
		case a.narrow && a.lasts == "":
			return usage(cmd, "--narrow says what an approval for longer covers: give --for session or --for key, too")
		case flags.Changed("scope") && a.scope < 1:
			return usage(cmd, "--scope is %d: give a number from 1, as the question lists them", a.scope)
		case !flags.Changed("scope"):
			a.scope = 0 // a tool's call has none
		}
		list, err := s.client().Pending(cmd.Context())
		if err != nil {
			return err
		}
		if a.all {
			if ids, err = s.confirmAll(cmd, a, list); err != nil {
				return err
			}
		}
		var errs []error
		for i, id := range ids {
			if !slices.Contains(ids[:i], id) {
				errs = append(errs, s.answerOne(cmd.Context(), a, id, list))
			}
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
		put(s.stderr, event.Visible(id)+"\n"+indent(text))
	}
	verb := "denied"
	if r.Allow {
		verb = "approved"
	}
	return s.answer(q, func(w io.Writer) { fmt.Fprintf(w, "%s: %s%s%s\n", verb, show.Subject(q), also(q), show.Again(q)) })
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
	if err := put(s.stderr, b.String()); err != nil {
		return nil, err
	}
	beyond := ""
	if above(s.stderr, b.String()) {
		beyond = ", also what is above the screen"
	}
	fmt.Fprintf(s.stderr, "\n%s all of these %d%s? Type yes: ", a.verb, len(list), beyond)
	line, err := bufio.NewReader(s.stdin).ReadString('\n')
	if word := strings.TrimSpace(line); word != "yes" && word != "y" || err != nil {
		return nil, errors.New("nothing was answered")
	}
	return ids, nil
}
