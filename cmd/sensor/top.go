package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
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
	return &cobra.Command{
		Use:   "top",
		Short: "follow questions and containers in the terminal, and answer by key",
		Long: `Shows the questions that wait and the guarded containers, with taint, mode, grants and rates. Keys answer; the last line names them. Who may
look and not answer sees the same without keys that answer. Without a terminal that can be drawn on, or with --json, it prints the questions, and what became of them.`,
		Args: args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.top(cmd.Context()) },
	}
}

// top shows the sensor until a signal or a key ends it.
func (s *system) top(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer stop()
	if !s.json && term.IsTerminal(int(s.stdin.Fd())) && draws(s.stdout, runner.Getenv(s.environ, "TERM")) {
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

// draws says whether f is a terminal on which any place can be written to.
func draws(f *os.File, kind string) bool {
	width, height, err := term.GetSize(int(f.Fd()))
	return err == nil && width > 0 && height > 0 && kind != "" && kind != "dumb"
}
