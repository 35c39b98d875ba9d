package runner

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"

	"weir/internal/control"
)

// forwarder deals with the signals that come while a command is guarded. Until
// it is started they end what is being done. Then those that a terminal sends to
// the whole foreground group are swallowed, since the command has them too, and
// others are sent on. They are caught, not ignored: the command would inherit that.
type forwarder struct {
	ctx     context.Context
	signals chan os.Signal

	mu      sync.Mutex
	process *os.Process
	first   os.Signal // that ended ctx
}

func newForwarder(parent context.Context) *forwarder {
	ctx, cancel := context.WithCancel(parent)
	f := &forwarder{ctx: ctx, signals: make(chan os.Signal, 8)}
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) { // as under nohup
			signal.Notify(f.signals, sig)
		}
	}
	go func() {
		defer cancel()
		for sig := range f.signals {
			f.take(sig, cancel)
		}
	}()
	return f
}

func (f *forwarder) take(sig os.Signal, cancel context.CancelFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.process == nil:
		f.first = sig
		cancel()
	case sig == syscall.SIGTERM || sig == syscall.SIGHUP:
		f.process.Signal(sig) // it may have ended just now
	}
}

// start starts cmd, unless a signal came before.
func (f *forwarder) start(cmd *exec.Cmd) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first != nil {
		return f.ctx.Err()
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	f.process = cmd.Process
	return nil
}

// explain is err, or the signal that caused it.
func (f *forwarder) explain(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if sig, ok := f.first.(syscall.Signal); ok {
		return control.Errorf(128+int(sig), "interrupted: nothing was run")
	}
	return err
}

func (f *forwarder) stop() {
	signal.Stop(f.signals)
	close(f.signals)
}
