//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"weir/test/vm/bench"
)

// How much is measured of containers.
const (
	startCycles  = 3
	startWindows = 2 // of each state in a cycle
	plenty       = 500
	atOnce       = 4 // are started at the same time
	idleFor      = 60 * time.Second
)

// follow is a policy that guards what has a label.
const follow = "containers:\n  containerd: " + containerdSocket + "\n  match:\n" +
	"    - labels: {weir.taint: secret}\n      taint: [secret]\n    - labels: {weir.guard: \"*\"}\n"

// labelsOf a container, by the state that it is measured in.
var labelsOf = map[string]map[string]string{
	bench.Before: nil, bench.After: nil, bench.Outside: nil,
	bench.Guarded: {"weir.guard": "1"}, bench.Tainted: {"weir.taint": "secret"},
}

// containing measures what the start of a container costs more.
func containing(b *bed) error {
	c, err := startContainerd()
	if err != nil {
		return err
	}
	return errors.Join(b.starts(c), c.close())
}

// crowding measures 500 containers.
func crowding(b *bed) error {
	c, err := startContainerd()
	if err != nil {
		return err
	}
	return errors.Join(b.fiveHundred(c), c.close())
}

func (b *bed) starts(c *containerd) error {
	if _, err := c.startOne(nil); err != nil { // what only the first time costs
		return err
	}
	for i := range startCycles {
		cycle, err := b.startCycle(c)
		if err != nil {
			return err
		}
		b.samples.Cycles = append(b.samples.Cycles, cycle)
		m := cycle[bench.ContainerCase]
		without := (m[bench.Before] + m[bench.After]) / 2
		for name, state := range map[string]string{
			"container_start_added_ms": bench.Guarded, "container_start_outside_added_ms": bench.Outside, "container_start_tainted_added_ms": bench.Tainted,
		} {
			b.add(name, (m[state]-without)/1e6)
		}
		b.add("container_start_ms", without/1e6)
		fmt.Printf("cycle %d of %d: a container starts in %.1f ms\n", i+1, startCycles, without/1e6)
	}
	return nil
}

// idling measures what 500 guarded cgroups cost while nothing happens.
func idling(b *bed) error {
	if err := os.MkdirAll("/sys/fs/cgroup"+crowd, 0o755); err != nil {
		return fmt.Errorf("make cgroup: %w", err)
	}
	if _, err := b.start("guard:\n  parents: [" + crowd + "]\n"); err != nil {
		return err
	}
	if out, err := exec.Command("bash", "-ec", filled, "/sys/fs/cgroup"+crowd, fmt.Sprint(plenty)).CombinedOutput(); err != nil {
		return fmt.Errorf("fill cgroups: %w: %s", err, out)
	}
	if err := b.live(plenty); err != nil {
		return err
	}
	time.Sleep(settled)
	both, _, _, err := b.memory()
	if err != nil {
		return err
	}
	b.add("rss_500_cgroups_mib", both)
	b.idle("idle_cpu_500_percent", "idle_cpu_500_daemon_percent")
	return nil
}

// filled makes guarded cgroups with a process each, that sleeps in namespaces of its own.
const filled = `
for i in $(seq "$1"); do
	mkdir "$0/c$i"
	busybox unshare -m -i -u busybox sleep 100000 </dev/null >/dev/null 2>&1 &
	echo $! >"$0/c$i/cgroup.procs"
done
`

// idle measures the processor time of daemon and watcher together, and of the daemon, while nothing happens.
func (b *bed) idle(both, alone string) {
	start, daemon, watcher := monotonic(), processorTime(b.daemon), processorTime(b.sensor.Process.Pid)
	time.Sleep(idleFor)
	took := float64(monotonic() - start)
	daemon, watcher = processorTime(b.daemon)-daemon, processorTime(b.sensor.Process.Pid)-watcher
	b.add(both, 100*float64(daemon+watcher)/took)
	b.add(alone, 100*float64(daemon)/took)
}

// startCycle is as cycle, of containers: without the sensor, with it in all states in turn, and without it again.
func (b *bed) startCycle(c *containerd) (bench.Cycle, error) {
	windows := map[string][]float64{}
	measure := func(states ...string) error {
		for round := range startWindows {
			for i := range states {
				state := states[(i+round)%len(states)]
				ns, err := c.startOne(labelsOf[state])
				if err != nil {
					return fmt.Errorf("measure the start of a container, %s: %w", state, err)
				}
				windows[state] = append(windows[state], float64(ns))
			}
		}
		return nil
	}
	if err := measure(bench.Before); err != nil {
		return nil, err
	}
	if _, err := b.start(follow); err != nil {
		return nil, err
	}
	if _, err := c.startOne(nil); err != nil { // the first after the sensor's start
		return nil, errors.Join(err, b.stop())
	}
	if err := errors.Join(measure(bench.Outside, bench.Guarded, bench.Tainted), b.stop()); err != nil {
		return nil, err
	}
	if err := measure(bench.After); err != nil {
		return nil, err
	}
	medians := map[string]float64{}
	for state, all := range windows {
		medians[state] = bench.Median(all)
	}
	return bench.Cycle{bench.ContainerCase: medians}, nil
}

// lightRuntime is a runtime that containerd calls in place of runc, which starts itself three times for each container: 500 of those
// are too many for an emulated processor.
const lightRuntime = "/usr/local/bin/bench-runc"

// light makes what a container's one process is in, and runs it: namespaces, root and cgroup. It takes what containerd says to runc.
const light = `#!/bin/busybox sh
case " $* " in *" create "*) ;; *) exit 0 ;; esac
while [ $# -gt 1 ]; do
	[ "$1" != --pid-file ] || file=$2
	shift
done
mkdir -p "/sys/fs/cgroup/default/$1"
busybox unshare -m -n -i -u busybox chroot ` + rootfs + ` /bin/busybox sleep 100000 </dev/null >/dev/null 2>&1 &
echo $! >"/sys/fs/cgroup/default/$1/cgroup.procs"
printf %s $! >"$file"
`

// fiveHundred measures memory, and what is done while nothing happens.
func (b *bed) fiveHundred(c *containerd) error {
	if err := os.WriteFile(lightRuntime, []byte(light), 0o755); err != nil {
		return fmt.Errorf("write the light runtime: %w", err)
	}
	if _, err := b.start(follow); err != nil {
		return err
	}
	var err error
	begun := time.Now()
	ids, failed := make(chan int), make(chan error, atOnce)
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for i := range ids {
				if err := c.create(wanted{
					id: fmt.Sprintf("idle-%d", i), labels: labelsOf[bench.Guarded], argv: []string{"/bin/busybox", "sleep", "100000"},
					binary: lightRuntime, group: fmt.Sprintf("bench-%d", i%atOnce),
				}); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	for i := range plenty {
		select {
		case ids <- i:
			continue
		case err = <-failed:
		}
		break
	}
	close(ids)
	all.Wait()
	close(failed)
	for one := range failed {
		err = errors.Join(err, one)
	}
	if err != nil {
		return err
	}
	if err := b.live(plenty); err != nil {
		return err
	}
	fmt.Printf("%d containers run after %.0f s\n", plenty, time.Since(begun).Seconds())
	time.Sleep(3 * time.Second)
	busy, _, _, err := b.memory()
	if err != nil {
		return err
	}
	time.Sleep(settled)
	both, daemon, share, err := b.memory()
	if err != nil {
		return err
	}
	b.add("rss_500_busy_mib", busy)
	b.add("rss_500_mib", both)
	b.add("rss_500_daemon_mib", daemon)
	b.add("pss_500_mib", share)
	b.idle("idle_cpu_500_percent", "idle_cpu_500_daemon_percent")
	return nil
}

// live waits until the sensor knows that many containers that run.
func (b *bed) live(n int) error {
	for end := time.Now().Add(patience); ; time.Sleep(500 * time.Millisecond) {
		list, err := b.client.Containers(context.Background())
		if err != nil {
			return err
		}
		live := 0
		for _, c := range list {
			if c.Live {
				live++
			}
		}
		if live >= n {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the sensor knows %d of %d containers", live, n)
		}
	}
}
