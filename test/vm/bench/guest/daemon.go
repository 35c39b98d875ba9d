//go:build linux

package main

import (
	"fmt"
	"time"
)

// eventRounds is how often the daemon's time for an event is measured, of so many events each.
const (
	eventRounds = 6
	execsEach   = 150
	connectEach = 400
)

// serving measures what the daemon does while nothing is guarded, and for each event.
func serving(b *bed) error {
	if _, err := b.start(""); err != nil {
		return err
	}
	time.Sleep(settled)
	b.idle("idle_cpu_percent", "idle_cpu_daemon_percent")
	for _, of := range []struct {
		session       string
		flags         []string
		exec, connect string // the results
	}{
		{"clean", nil, "exec_daemon_us", "connect_daemon_us"},
		{"tainted", []string{"--taint", "secret"}, "exec_tainted_daemon_us", "connect_tainted_daemon_us"},
	} {
		w, err := b.guarded(of.session, of.flags...)
		if err != nil {
			return err
		}
		for range eventRounds {
			for _, each := range []struct {
				name, what string
				n          int
			}{{of.exec, "exec", execsEach}, {of.connect, "connect", connectEach}} {
				ns, err := b.perEvent(w, each.what, each.n)
				if err != nil {
					return fmt.Errorf("measure %s: %w", each.name, err)
				}
				b.add(each.name, ns/1e3)
			}
		}
		if err := w.end(); err != nil {
			return fmt.Errorf("end the worker: %w", err)
		}
	}
	return nil
}

// perEvent is the processor time in ns that the daemon spends on each of n operations, less what it spends anyhow.
func (b *bed) perEvent(w *worker, what string, n int) (float64, error) {
	spent := func(do func() error) (ran, took float64, err error) {
		before, start := processorTime(b.daemon), monotonic()
		err = do()
		time.Sleep(300 * time.Millisecond)
		return float64(processorTime(b.daemon) - before), float64(monotonic() - start), err
	}
	idle, idleTime, err := spent(func() error { time.Sleep(time.Second); return nil })
	if err != nil {
		return 0, err
	}
	busy, busyTime, err := spent(func() error { _, err := w.do(what, n); return err })
	return (busy - idle*busyTime/idleTime) / float64(n), err
}
