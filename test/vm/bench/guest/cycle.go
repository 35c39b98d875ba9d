//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/test/vm/bench"
)

// plan says how much is measured. A window is n operations in a row.
type plan struct {
	cycles  int
	windows int            // of each case and state in a cycle
	n       map[string]int // operations in a window, by case
	frozen  bool           // the daemon stands still in a window
}

// workers of a cycle, by state.
type workers map[string]*worker

func (w workers) end() error {
	var errs []error
	for _, each := range w {
		errs = append(errs, each.end())
	}
	return errors.Join(errs...)
}

// cycle measures without the sensor, starts it, measures the other states in turn, takes it out, and measures without it again:
// what drifts evenly weighs on both sides.
func (b *bed) cycle(p plan) (bench.Cycle, time.Duration, error) {
	windows := map[string]map[string][]float64{}
	for _, c := range bench.Cases() {
		windows[c] = map[string][]float64{}
	}
	plain, err := b.plain()
	if err != nil {
		return nil, 0, err
	}
	defer plain.end()
	if err := p.measure(windows, workers{bench.Before: plain}, bench.Cases()); err != nil {
		return nil, 0, err
	}
	ready, err := b.start("")
	if err != nil {
		return nil, 0, err
	}
	if err := b.with(p, windows, plain); err != nil {
		return nil, 0, errors.Join(err, b.stop())
	}
	if err := b.stop(); err != nil {
		return nil, 0, err
	}
	if err := p.measure(windows, workers{bench.After: plain}, bench.Cases()); err != nil {
		return nil, 0, err
	}
	cycle := bench.Cycle{}
	for name, states := range windows {
		cycle[name] = map[string]float64{}
		for state, all := range states {
			cycle[name][state] = bench.Median(all)
		}
	}
	return cycle, ready, nil
}

// with measures all states that have a sensor.
func (b *bed) with(p plan, windows map[string]map[string][]float64, plain *worker) error {
	b.settle()
	if err := b.still(p, windows, workers{bench.Idle: plain}, bench.Cases()); err != nil {
		return err
	}
	all := workers{}
	defer all.end()
	var err error
	if all[bench.Guarded], err = b.guarded("clean"); err != nil {
		return err
	}
	if all[bench.Tainted], err = b.guarded("tainted", "--taint", "secret"); err != nil {
		return err
	}
	if all[bench.Terminal], err = b.onTerminal("terminal"); err != nil {
		return err
	}
	if p.frozen {
		if err := b.counted(p, windows, all[bench.Guarded]); err != nil {
			return err
		}
	}
	states := workers{bench.Outside: plain, bench.Guarded: all[bench.Guarded], bench.Tainted: all[bench.Tainted], bench.Terminal: all[bench.Terminal]}
	if err := b.still(p, windows, states, bench.Cases()); err != nil {
		return err
	}
	if err := b.write(""); err != nil {
		return err
	}
	if err := b.client.Reload(context.Background()); err != nil {
		return fmt.Errorf("load a policy without secret files: %w", err)
	}
	unlisted := workers{}
	for state, w := range states {
		unlisted[bench.NoList+state] = w
	}
	return b.still(p, windows, unlisted, []string{"open"})
}

// settle waits until the daemon has done what it does after it is ready.
func (b *bed) settle() {
	for before, end := int64(-1), time.Now().Add(patience); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		now := processorTime(b.daemon)
		if before >= 0 && now-before < int64(5*time.Millisecond) {
			return
		}
		before = now
	}
}

// still measures while the daemon stands still, if it is to.
func (b *bed) still(p plan, windows map[string]map[string][]float64, who workers, cases []string) error {
	if !p.frozen {
		return p.measure(windows, who, cases)
	}
	if err := b.freeze(); err != nil {
		return err
	}
	return errors.Join(p.measure(windows, who, cases), b.thaw())
}

// measure makes all windows; the states take turns, and each is first as often as the others.
func (p plan) measure(windows map[string]map[string][]float64, who workers, cases []string) error {
	states := slices.Sorted(maps.Keys(who))
	for round := range p.windows {
		for _, name := range cases {
			for i := range states {
				state := states[(i+round)%len(states)]
				if name == "connect" {
					if err := forgetConnections(); err != nil {
						return err
					}
				}
				ns, err := who[state].do(name, p.n[name])
				if err != nil {
					return fmt.Errorf("measure %s, %s: %w", name, state, err)
				}
				windows[name][state] = append(windows[name][state], float64(ns)/float64(p.n[name]))
			}
		}
	}
	return nil
}

// forgetConnections ends those that wait for the last packets of ended ones, at both ends: each takes a port for a minute, and to find
// a free one takes the longer the more are taken. Connects varied by a fifth within a boot.
func forgetConnections() error {
	const end = "ss -K -t state time-wait >/dev/null; ip netns exec world ss -K -t state time-wait >/dev/null"
	if out, err := exec.Command("bash", "-ec", end).CombinedOutput(); err != nil {
		return fmt.Errorf("forget connections: %w: %s", err, out)
	}
	return nil
}

// counted adds the processor time that the daemon spends on each execution, less what it spends anyhow.
func (b *bed) counted(p plan, windows map[string]map[string][]float64, w *worker) error {
	ns, err := b.perEvent(w, "exec", 5*p.n["exec"])
	windows["exec"][bench.Observed] = append(windows["exec"][bench.Observed], ns)
	return err
}

// processorTime sums what the threads of a process ran, in ns.
func processorTime(pid int) int64 {
	var sum int64
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue // a thread that ended
		}
		ns, err := strconv.ParseInt(strings.Fields(string(data))[0], 10, 64)
		if err == nil {
			sum += ns
		}
	}
	return sum
}

// counting is for a clock that counts instructions.
func counting(b *bed) error {
	p := plan{
		cycles: 6, windows: 3, frozen: true,
		n: map[string]int{"exec": 15, "connect": 300, "udp": 600, "bulk": 6, "open": 400},
	}
	if err := b.cycles(p); err != nil {
		return err
	}
	if _, err := b.start(""); err != nil {
		return err
	}
	return b.singles([]single{{"taint", b.taints}, {"hold", b.holds}, {"events", b.events}})
}

func (b *bed) cycles(p plan) error {
	for i := range p.cycles {
		c, ready, err := b.cycle(p)
		if err != nil {
			return err
		}
		b.samples.Cycles = append(b.samples.Cycles, c)
		b.add("ready_ms", float64(ready)/1e6)
		fmt.Printf("cycle %d of %d, ready after %.1f s\n", i+1, p.cycles, ready.Seconds())
	}
	return nil
}

func (b *bed) add(name string, value float64) {
	b.samples.Values[name] = append(b.samples.Values[name], value)
}
