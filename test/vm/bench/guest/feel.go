//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"weir/internal/event"
	"weir/internal/gate"
)

// How often the single figures are measured.
const (
	taints   = 20
	holds    = 15
	executed = 400
	bursts   = 5000
	many     = 200
)

// feeling measures what a user feels, where processors take turns or are real ones.
func feeling(b *bed) error {
	p := plan{
		cycles: 5, windows: 3,
		n: map[string]int{"exec": 20, "connect": 100, "udp": 1000, "bulk": 8, "open": 1000},
	}
	if err := b.cycles(p); err != nil {
		return err
	}
	if _, err := b.start(""); err != nil {
		return err
	}
	return b.singles([]single{{"taint", b.taints}, {"hold", b.holds}, {"events", b.events}, {"burst", b.burst}})
}

// remembering measures memory, after as many executions as feeling has.
func remembering(b *bed) error {
	if err := os.MkdirAll("/sys/fs/cgroup"+crowd, 0o755); err != nil {
		return fmt.Errorf("make cgroup: %w", err)
	}
	if _, err := b.start("guard:\n  parents: [" + crowd + "]\n"); err != nil {
		return err
	}
	if err := b.singles([]single{{"burst", b.burst}}); err != nil {
		return err
	}
	return b.crowd()
}

// single is something that is measured in one guarded session.
type single struct {
	name    string
	measure func(*worker) error
}

// singles measures one after the other in the same session, under a sensor that runs.
func (b *bed) singles(all []single) error {
	w, err := b.guarded("single")
	if err != nil {
		return err
	}
	for _, one := range all {
		start := time.Now()
		if err := one.measure(w); err != nil {
			return fmt.Errorf("measure %s: %w", one.name, errors.Join(err, w.end()))
		}
		fmt.Printf("%s: %.0f s\n", one.name, time.Since(start).Seconds())
	}
	if err := w.end(); err != nil {
		return fmt.Errorf("end the worker: %w", err)
	}
	return nil
}

// taints measures from the order, on the control socket, to the first packet that is refused.
func (b *bed) taints(w *worker) error {
	for range taints {
		if err := w.order("flood", dropAt); err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
		start := monotonic()
		if _, err := b.client.Taint(context.Background(), "single", []string{"secret"}, "bench", ""); err != nil {
			return err
		}
		done := monotonic()
		end, err := w.answer()
		if err != nil {
			return err
		}
		b.add("taint_to_deny_ms", float64(end-start)/1e6)
		b.add("taint_answered_ms", float64(done-start)/1e6)
		if _, err := b.client.Untaint(context.Background(), "single", []string{"secret"}, "bench", "the next round"); err != nil {
			return err
		}
	}
	return nil
}

// holds measures a connect that is held and approved as soon as it is told.
func (b *bed) holds(w *worker) error {
	if _, err := b.client.Taint(context.Background(), "single", []string{"secret"}, "bench", ""); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	approved := make(chan error, 1)
	var answered atomic.Int32
	var approvedAt atomic.Int64
	go func() {
		approved <- b.client.Events(ctx, event.Filter{Kinds: []event.Kind{event.Hold}, Since: time.Now()}, true, func(e event.Event) error {
			answered.Add(1)
			approvedAt.Store(monotonic())
			_, err := b.client.Answer(ctx, e.Question, gate.Reply{Allow: true, By: "bench"})
			return err
		})
	}()
	time.Sleep(300 * time.Millisecond) // until it follows
	for i := range holds {
		var took, ran, end int64
		err := w.order("hold", acceptAt)
		if err == nil {
			var line string
			if line, err = w.line(); err == nil {
				_, err = fmt.Sscan(line, &took, &ran, &end)
			}
		}
		if n := int(answered.Load()); err == nil && n != i+1 {
			err = fmt.Errorf("%d connects were held %d times", i+1, n)
		}
		if err != nil {
			cancel()
			return errors.Join(err, <-approved)
		}
		b.add("hold_grant_ms", float64(took)/1e6)
		b.add("hold_cpu_ms", float64(ran)/1e6)
		b.add("approval_to_connect_ms", float64(end-approvedAt.Load())/1e6)
	}
	cancel()
	if err := <-approved; err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	_, err := b.client.Untaint(context.Background(), "single", []string{"secret"}, "bench", "measured")
	return err
}

// seen is an execution in the event log.
type seen struct {
	start uint64 // of the process, ns since boot
	at    uint64 // when its line could be read
}

// executions follows the event log and gives those of the program whose first argument is mark.
func executions(ctx context.Context, mark string) (<-chan seen, error) {
	file, err := os.Open(eventFile)
	if err != nil {
		return nil, fmt.Errorf("follow events: %w", err)
	}
	if _, err := file.Seek(0, 2); err != nil {
		return nil, fmt.Errorf("follow events: %w", err)
	}
	out := make(chan seen, bursts)
	go func() {
		defer close(out)
		defer file.Close()
		lines := bufio.NewReaderSize(file, 1<<16)
		text := ""
		for ctx.Err() == nil {
			part, err := lines.ReadString('\n')
			text += part
			if err != nil {
				time.Sleep(time.Millisecond) // to the next look; it only adds to what is measured
				continue
			}
			at := boottime()
			if start, ok := execution(text, mark); ok {
				out <- seen{start, at}
			}
			text = ""
		}
	}()
	return out, nil
}

// execution picks the start from a line of the log; decoding each whole would take the sensor's processor.
func execution(line, mark string) (uint64, bool) {
	if !strings.Contains(line, `"argv":["`+program+`","`+mark+`"`) {
		return 0, false
	}
	_, rest, _ := strings.Cut(line, `"start":`)
	number, _, _ := strings.Cut(rest, ",")
	start, err := strconv.ParseUint(number, 10, 64)
	return start, err == nil
}

// events measures from the fork of a program, just before its execution, to its line in the log.
func (b *bed) events(w *worker) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lines, err := executions(ctx, "pace")
	if err != nil {
		return err
	}
	if _, err := w.do("pace", executed); err != nil {
		return err
	}
	for range executed {
		select {
		case s := <-lines:
			b.add("exec_event_p99_ms", float64(s.at-s.start)/1e6)
		case <-time.After(patience):
			return errors.New("an execution has no event")
		}
	}
	return nil
}

// burst counts executions without an event.
func (b *bed) burst(w *worker) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lines, err := executions(ctx, "burst")
	if err != nil {
		return err
	}
	start := monotonic()
	if _, err := w.do("burst", bursts); err != nil {
		return err
	}
	b.add("burst_rate", bursts/(float64(monotonic()-start)/1e9))
	found := 0
	for late := false; found < bursts && !late; {
		select {
		case <-lines:
			found++
		case <-time.After(10 * time.Second):
			late = true
		}
	}
	b.add("burst_lost", float64(bursts-found))
	return nil
}

// crowd measures memory with many guarded cgroups, each with a process that was executed in it.
func (b *bed) crowd() error {
	defer func() { _ = os.WriteFile("/sys/fs/cgroup"+crowd+"/cgroup.kill", []byte("1"), 0) }()
	for i := range many {
		dir := filepath.Join("/sys/fs/cgroup"+crowd, fmt.Sprintf("c%d", i))
		script := `mkdir "$0" && echo $$ > "$0/cgroup.procs" && exec sleep 1000`
		if err := exec.Command("sh", "-c", script, dir).Start(); err != nil {
			return fmt.Errorf("fill cgroup: %w", err)
		}
	}
	if err := b.live(many); err != nil {
		return err
	}
	time.Sleep(3 * time.Second)
	busy, _, _, err := b.memory()
	if err != nil {
		return err
	}
	time.Sleep(settled)
	all, daemon, share, err := b.memory()
	b.add("rss_200_busy_mib", busy)
	b.add("rss_200_mib", all)
	b.add("rss_200_daemon_mib", daemon)
	b.add("pss_200_mib", share)
	return err
}

// settled is when daemon and watcher have given back what the burst took: they do once a minute.
const settled = 65 * time.Second

// memory is that of daemon and watcher together, and the daemon's, in MiB.
func (b *bed) memory() (both, daemon, share float64, err error) {
	daemon, own, err := memory(b.daemon)
	if err != nil {
		return 0, 0, 0, err
	}
	watcher, other, err := memory(b.sensor.Process.Pid)
	return daemon + watcher, daemon, own + other, err
}

// memory is the resident memory of a process in MiB, and its share of it: what n processes have in common counts 1/n there.
func memory(pid int) (resident, share float64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, 0, fmt.Errorf("read memory: %w", err)
	}
	for name, to := range map[string]*float64{"\nRss:": &resident, "\nPss:": &share} {
		_, rest, _ := strings.Cut(string(text), name)
		var kib float64
		if _, err := fmt.Sscan(rest, &kib); err != nil {
			return 0, 0, fmt.Errorf("read memory: %w", err)
		}
		*to = kib / 1024
	}
	return resident, share, nil
}
