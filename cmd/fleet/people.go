package main

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/fleet"
	"weir/internal/fleet/link"
	"weir/internal/gate"
	"weir/internal/linux"
	"weir/internal/notify"
	"weir/internal/policy"
	"weir/internal/show"
)

const (
	counts   = 5 * time.Minute  // an answer, from when it is signed
	callTime = 10 * time.Second // for a node to say what became of it
)

func (p *place) pendingCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pending",
		Short: "the questions of all nodes that wait for an answer",
		Args:  exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := p.connect(cmd)
			if err != nil {
				return err
			}
			defer s.Close()
			list, err := s.Questions(cmd.Context())
			if err != nil {
				return err
			}
			var b strings.Builder
			for _, m := range waiting(list) {
				if b.Len() > 0 {
					b.WriteByte('\n')
				}
				b.WriteString(printed(m))
			}
			switch {
			case b.Len() == 0:
				b.WriteString("no questions\n")
			case show.Above(cmd.OutOrStdout(), b.String()):
				b.WriteString("\nthis is more than the screen has: read what is above\n")
			}
			_, err = io.WriteString(cmd.OutOrStdout(), b.String())
			return err
		},
	}
}

// name is what people call a question.
func name(m notify.Message) string { return m.Host + "/" + m.Question.ID }

// read is the text of a question, with its hash, as far as it is one that a sensor would word: whoever has the servers may have written it.
func read(m notify.Message) (text, hash string, err error) {
	for line := range strings.Lines(m.Shown.Text) {
		if line = strings.TrimSuffix(line, "\n"); event.Visible(line) != line {
			return "", "", errors.New("its text is not one of a sensor's: it has characters that are not shown")
		}
	}
	return m.Shown.Text, gate.Digest(m.Shown.Text), nil
}

// waiting are those that wait for an answer, oldest first.
func waiting(all map[string]notify.Message) (list []notify.Message) {
	for _, m := range all {
		if m.Answer == nil && time.Now().Before(m.Question.Deadline) {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b notify.Message) int {
		return cmp.Or(a.Question.Asked.Compare(b.Question.Asked), cmp.Compare(name(a), name(b)))
	})
	return list
}

// printed is all that an answer to m depends on.
func printed(m notify.Message) string {
	text, hash, err := read(m)
	if err != nil {
		text = err.Error() + "\n"
	}
	text += fmt.Sprintf("%-12s %s\n", "hash", hash) + show.Askers(gate.Question{Half: m.Question.Half})
	return fmt.Sprintf("%s  until %s\n", name(m), show.Time(m.Question.Deadline)) + indent(text)
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  " + line)
	}
	return b.String()
}

func (p *place) answerCommand(answer string) *cobra.Command {
	var key, why, hash string
	var scope int
	cmd := &cobra.Command{
		Use:   answer + " NODE/ID",
		Short: map[string]string{fleet.Approve: "let a command of a node reach its destination, once", fleet.Deny: "deny a command of a node what it asks for"}[answer],
		Args:  exactly(1, "a question as NODE/ID; weir-fleet pending lists them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if scope < 0 || cmd.Flags().Changed("scope") && scope < 1 {
				return control.Errorf(control.Usage, "--scope is %d: give a number from 1, as the question lists them", scope)
			}
			own, err := fleet.ReadKey(key)
			if err != nil {
				return err
			}
			s, err := p.connect(cmd)
			if err != nil {
				return err
			}
			defer s.Close()
			m, err := find(cmd, s, args[0])
			if err != nil {
				return err
			}
			text, shown, err := read(m)
			if text = name(m) + "\n" + indent(text); err == nil {
				_, err = io.WriteString(cmd.ErrOrStderr(), text)
			}
			if answer == fleet.Approve {
				if err != nil {
					return err
				}
				if err := agree(cmd, hash, shown, text); err != nil {
					return err
				}
			}
			text, err = send(cmd.Context(), s, own, fleet.Statement{Node: m.Host, Why: why, Question: m.Question.ID, Answer: answer, Scope: scope, Shown: shown})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), event.Visible(text))
			return err
		},
	}
	keyFlag(cmd, &key, "the `file` of your key")
	whyFlag(cmd, &why)
	if answer == fleet.Approve {
		cmd.Long = `Shows the question, asks whether you approve exactly this, and signs your answer with your key. Without a terminal give the hash of the text that
you saw, which weir-fleet pending prints: whoever has the servers could show another text now.`
		cmd.Flags().StringVar(&hash, "hash", "", "the `hash` of the text that you saw; nothing is asked then")
		cmd.Flags().IntVar(&scope, "scope", 0, "who is let out, by the `number` that the question gives (default 1, the process that asked)")
	}
	return cmd
}

// find is a question that waits.
func find(cmd *cobra.Command, s *link.Servers, called string) (notify.Message, error) {
	list, err := s.Questions(cmd.Context())
	if err != nil {
		return notify.Message{}, err
	}
	for _, m := range list {
		switch {
		case name(m) != called:
		case m.Answer != nil && m.Answer.By != "":
			return m, fmt.Errorf("already answered: %s by %s", event.Visible(m.Answer.Outcome), event.Visible(m.Answer.By))
		case m.Answer != nil:
			return m, fmt.Errorf("it has ended: %s", event.Visible(m.Answer.Outcome))
		default:
			return m, nil
		}
	}
	return notify.Message{}, fmt.Errorf("no node asks %s; see weir-fleet pending", event.Visible(called))
}

// agree wants a yes to the text that was shown, or its hash.
func agree(cmd *cobra.Command, hash, shown, text string) error {
	if hash != "" {
		if hash != shown {
			return errors.New("nothing was answered: the text is not the one of this hash")
		}
		return nil
	}
	return show.Confirm(cmd.Context(), cmd.InOrStdin(), cmd.ErrOrStderr(), show.Approve(cmd.ErrOrStderr(), text))
}

// send signs a statement, brings it to its node, and returns what its link says.
func send(ctx context.Context, s *link.Servers, key ed25519.PrivateKey, statement fleet.Statement) (string, error) {
	now := time.Now()
	statement.Signed, statement.Expires = now, now.Add(counts)
	signed, err := fleet.Sign(key, statement)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return s.Send(ctx, statement.Node, signed)
}

func (p *place) modeCommand() *cobra.Command {
	var o order
	cmd := &cobra.Command{
		Use:   "mode MODE --node NODE|--every --why REASON",
		Short: "set the mode of a node, or of each: seal denies all egress of what is guarded",
		Long: `Signs an order with your key, tells the nodes that are connected, and leaves it for those that are not: an order to seal for 30 days, another for
an hour. A node takes none that was signed before its mode was last set. Prints what the nodes say; those that were away say nothing.`,
		Example: `  weir-fleet mode seal --every --why "an agent sends something that nobody knows"`,
		Args:    exactly(1, "a mode: observe, enforce or seal"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := policy.ParseMode(args[0])
			if err != nil {
				return control.Errorf(control.Usage, "%w", err)
			}
			counts := fleet.MostAnswer
			if m == policy.Seal {
				counts = fleet.MostSeal
			}
			return o.give(cmd, p, fleet.Statement{Mode: string(m)}, counts)
		},
	}
	o.flags(cmd)
	return cmd
}

func (p *place) policyCommand() *cobra.Command {
	var o order
	cmd := &cobra.Command{
		Use:   "policy FILE --node NODE|--every --why REASON",
		Short: "replace the policy of a node, or of each",
		Long: `Signs the policy in a file with your key, tells the nodes that are connected, and leaves it for a day for those that are not. A node writes it into
its policy file. It takes none that was signed before its own was last changed, none that its sensor cannot put in force without a new start, and none
under which you could not take it back. Prints what the nodes say; those that were away say nothing.`,
		Example: `  weir-fleet policy policy.yaml --every --why "the new registry"`,
		Args:    exactly(1, "a policy's file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := linux.ReadInput(args[0], policy.MaxFile)
			if err == nil {
				_, err = policy.Parse(args[0], text)
			}
			if err != nil {
				return err
			}
			err = o.give(cmd, p, fleet.Statement{Policy: string(text)}, fleet.MostPolicy)
			if errors.Is(err, fleet.ErrTooLong) {
				err = control.Errorf(control.Usage, "%s cannot be signed: with the order around %w: shorten the policy, or load it on each node with weir reload", args[0], fleet.ErrTooLong)
			}
			return err
		},
	}
	o.flags(cmd)
	return cmd
}

func (p *place) forgetCommand() *cobra.Command {
	o := order{every: true}
	cmd := &cobra.Command{
		Use:   "forget IDENTITY --why REASON",
		Short: "have each node forget what a container was tainted with, by what it is called everywhere",
		Long: `Signs an order with your key, tells the nodes that are connected, and leaves it for a week for those that are not: what any node told of this identity
before counts no more, and containers of it lose the taint that they had when you signed. What is tainted later is tainted.`,
		Example: `  weir-fleet forget "agent reviewer-7" --why "its workspace was made anew"`,
		Args:    exactly(1, "an identity, as weir containers --json of its node names it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "" {
				return control.Errorf(control.Usage, "the identity is empty: see %s --help", cmd.CommandPath())
			}
			return o.give(cmd, p, fleet.Statement{Forget: args[0]}, fleet.MostForget)
		},
	}
	o.common(cmd)
	return cmd
}

// order is how one is given.
type order struct {
	key, why, node string
	every          bool
	wait           time.Duration
}

func (o *order) flags(cmd *cobra.Command) {
	o.common(cmd)
	cmd.Flags().StringVar(&o.node, "node", "", "of this `node`")
	cmd.Flags().BoolVar(&o.every, "every", false, "of each node")
}

// common are the flags of orders to each node.
func (o *order) common(cmd *cobra.Command) {
	keyFlag(cmd, &o.key, "the `file` of your key")
	whyFlag(cmd, &o.why)
	cmd.Flags().DurationVar(&o.wait, "wait", 5*time.Second, "for what nodes say, this `time`")
}

// give signs an order, leaves it for its nodes, and prints what they say.
func (o *order) give(cmd *cobra.Command, p *place, statement fleet.Statement, counts time.Duration) error {
	switch {
	case o.every == (o.node != ""):
		return control.Errorf(control.Usage, "give --node NODE, or --every for each node")
	case !o.every && !policy.IsNode(o.node):
		return control.Errorf(control.Usage, "--node %q is not the name of a node", o.node)
	case strings.TrimSpace(o.why) == "":
		return control.Errorf(control.Usage, "give --why, the reason for the log")
	}
	own, err := fleet.ReadKey(o.key)
	if err != nil {
		return err
	}
	s, err := p.connect(cmd)
	if err != nil {
		return err
	}
	defer s.Close()
	now := time.Now()
	statement.Node, statement.Signed, statement.Expires, statement.Why = cmp.Or(o.node, s.Every()), now, now.Add(counts), o.why
	signed, err := fleet.Sign(own, statement)
	if err != nil {
		return err
	}
	done, refused := 0, 0
	err = s.Order(cmd.Context(), statement.Node, signed, o.wait, func(node, text string, err error) {
		if err != nil {
			refused++
			text = event.Plain(err)
		} else {
			done++
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", event.Visible(node), event.Visible(text))
	})
	switch {
	case err != nil:
		return err
	case refused > 0:
		return fmt.Errorf("%d did not take it, %d did", refused, done)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%d %s took it; those that are away find it when they come back, until %s\n", done, show.Plural(done, "node", "nodes"), show.Time(statement.Expires))
	return nil
}
