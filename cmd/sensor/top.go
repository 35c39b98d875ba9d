package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/prompt"
	"weir/internal/runner"
	"weir/internal/show"
)

func (s *system) topCommand() *cobra.Command {
	fleet := false
	cmd := &cobra.Command{
		Use:   "top",
		Short: "follow questions and containers in the terminal, and answer by key",
		Long: `Shows the questions that wait and the guarded containers, with taint, mode, grants and rates. Keys answer; the last line names them. Who may
look and not answer sees the same without keys that answer. Without a terminal that can be drawn on, or with --json, it prints the questions, and what became of them.`,
		Args: args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if fleet {
				return s.fleet(cmd)
			}
			return s.top(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&fleet, "fleet", false, "the questions of all nodes: the same as weir-fleet top")
	return cmd
}

// fleet becomes weir-fleet, beside weir, for a question of any node. Nothing of it is in weir.
func (s *system) fleet(cmd *cobra.Command, args ...string) error {
	if s.json {
		return usage(cmd, "weir-fleet writes no JSON: leave --json out")
	}
	program, err := os.Executable()
	if err == nil {
		program = filepath.Join(filepath.Dir(program), "weir-fleet")
		err = syscall.Exec(program, append([]string{"weir-fleet", cmd.Name()}, args...), s.environ)
	}
	return fmt.Errorf("questions of other nodes are for weir-fleet: run %s: %w", event.Visible(program), err)
}

// top shows the sensor until a signal or a key ends it.
func (s *system) top(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer stop()
	if !s.json && term.IsTerminal(int(s.stdin.Fd())) && prompt.Draws(s.stdout, runner.Getenv(s.environ, "TERM")) {
		return prompt.Top(ctx, s.client(), prompt.Options{By: s.operator(), Grant: grant}, s.stdin, s.stdout)
	}
	return prompt.Lines(ctx, s.client(), func(q gate.Question) error {
		return s.answer(q, func(w io.Writer) {
			if q.State == gate.StatePending {
				printQuestion(w, q, time.Now())
			} else {
				fmt.Fprintf(w, "%s: %s\n", event.Command([]string{q.ID}, 0, 0), show.Outcome(q)+show.Again(q))
			}
		})
	}, func(err error) { s.note("weir top: %v: trying again", err) })
}
