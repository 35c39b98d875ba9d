//go:build vmguest

package systemd

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/event"
	"weir/test/vm/guest/rig"
)

// started: the unit is in force, before what starts containers, and its sandbox is what the file says.
func (f *fixture) started(t *testing.T) {
	f.healthy(t)
	if state := property(t, "weir-watch", "ActiveState"); state != "active" {
		t.Errorf("weir-watch is %s", state)
	}
	before := strings.Fields(property(t, "weir", "Before"))
	for _, unit := range []string{"containerd.service", "docker.service", "kubelet.service"} {
		if !slices.Contains(before, unit) {
			t.Errorf("weir starts before %v: want %s among them", before, unit)
		}
	}
	if seccomp := rig.Must(t, fmt.Sprintf("grep Seccomp: /proc/%d/status", daemon(t))); !strings.HasSuffix(strings.TrimSpace(seccomp), "2") {
		t.Errorf("no system call filter: %s", seccomp)
	}
	for _, c := range f.sensor.Containers(t) {
		if c.Name == "agent" && !slices.Equal(c.Taint, []string{"secret"}) {
			t.Errorf("the session: %+v", c)
		}
	}
	if errs := f.sensor.Events(t, event.Error); len(errs) > 0 {
		t.Errorf("the sandbox is in the way: %+v", errs)
	}
}

// journal: events are there with fields of their own, as those of the unit, and the kinds that are left out are not.
func (f *fixture) journal(t *testing.T) {
	p, id, to := f.held(t)
	f.sensor.Deny(t, id)
	p.Wait(t)
	to.Nothing(t)
	var lines []string
	rig.Eventually(t, "the verdict is in the journal", func() bool {
		lines = strings.Split(strings.TrimSpace(rig.Must(t, "journalctl -q --no-pager -o json -u weir WEIR_KIND=verdict WEIR_QUESTION="+id)), "\n")
		return lines[0] != ""
	})
	var entry map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &entry); err != nil || len(lines) != 1 {
		t.Fatalf("%d entries, %v: %v", len(lines), err, lines)
	}
	for field, want := range map[string]string{"PRIORITY": "5", "SYSLOG_IDENTIFIER": "weir", "WEIR_CONTAINER": "agent", "WEIR_DECISION": "deny", "WEIR_REASON": "denied", "WEIR_CONTAINER_TAINT": "secret"} {
		if entry[field] != want {
			t.Errorf("%s is %v, want %s", field, entry[field], want)
		}
	}
	var event event.Event
	if text, _ := entry["WEIR_EVENT"].(string); json.Unmarshal([]byte(text), &event) != nil || event.Question != id {
		t.Errorf("WEIR_EVENT is %v", entry["WEIR_EVENT"])
	}
	if said, _ := entry["MESSAGE"].(string); !strings.HasPrefix(said, "verdict agent[secret] ") {
		t.Errorf("MESSAGE is %v", entry["MESSAGE"])
	}
	if execs := rig.Must(t, "journalctl -q --no-pager -o cat -u weir WEIR_KIND=exec | head -3"); strings.TrimSpace(execs) != "" {
		t.Errorf("events that are left out: %s", execs)
	}
}

// gone is HEARTBEAT_GONE of bpf/types.h.
const gone = 1

// killedForGood: without another start, the watcher of its own wakes what the dead daemon holds, and it gets EPERM (B32).
func (f *fixture) killedForGood(t *testing.T) {
	const dropIn = "/run/systemd/system/weir.service.d"
	rig.Must(t, "mkdir -p "+dropIn+" && printf '[Service]\\nRestart=no\\n' >"+dropIn+"/once.conf && systemctl daemon-reload")
	p, id, to := f.held(t)
	main, pid := number(t, "weir", "MainPID"), daemon(t)
	began := time.Now()
	if err := syscall.Kill(main, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r, ended := p.WaitFor(rig.Late)
	took := r.At.Sub(began)
	if !ended || took > soon || r.Exit != 3 || !strings.Contains(r.Stdout, "EPERM") {
		t.Errorf("held when weir run was killed: after %v %v: %s", took, ended, r)
	}
	if beat := rig.Heartbeat(t); beat != gone {
		t.Errorf("the last heartbeat is %d: nobody noticed the daemon's end, and it was waited for to be old", beat)
	}
	t.Logf("EPERM %v after kill -9", took.Round(10*time.Millisecond))
	// the next one would find it running
	rig.Eventually(t, "the daemon has ended with weir run", func() bool { return syscall.Kill(pid, 0) != nil })
	f.probe.Steady(t)
	rig.Must(t, "rm -r "+dropIn+" && systemctl daemon-reload && systemctl reset-failed weir; systemctl start weir")
	f.sensor.Deny(t, id) // it is still open
	to.Nothing(t)
}

// killed: systemd starts it again at once; what was held is never let out, and can be answered as before (B33).
func (f *fixture) killed(t *testing.T) {
	p, id, to := f.held(t)
	main, began := number(t, "weir", "MainPID"), time.Now()
	if err := syscall.Kill(daemon(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f.back(t, main)
	t.Logf("kill -9 of the daemon: ready again after %v", time.Since(began).Round(10*time.Millisecond))
	f.sensor.Deny(t, id)
	if r := p.Wait(t); r.Exit != 3 {
		t.Errorf("held when the daemon was killed: %s", r)
	}
	to.Nothing(t)
}

// watchdog: a daemon that stands still is ended and started again.
func (f *fixture) watchdog(t *testing.T) {
	main, began := number(t, "weir", "MainPID"), time.Now()
	if err := syscall.Kill(daemon(t), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	f.back(t, main)
	t.Logf("SIGSTOP: ready again after %v", time.Since(began).Round(10*time.Millisecond))
	if said := rig.Must(t, "journalctl --no-pager -u weir"); !strings.Contains(said, "Watchdog timeout") || !strings.Contains(said, "KeepBeating") {
		t.Errorf("it was not the watchdog, or the daemon's stacks are not there: %s", said)
	}
}

// upgrade: another build takes the place of the file, and of the process. Tainted sessions stay as they are.
func (f *fixture) upgrade(t *testing.T) {
	p, id, to := f.held(t)
	main, began := number(t, "weir", "MainPID"), time.Now()
	rig.Must(t, "install -m 755 /opt/weir/weir-next "+binary+".new && mv "+binary+".new "+binary+" && systemctl restart weir weir-watch")
	f.back(t, main)
	t.Logf("systemctl restart: ready after %v", time.Since(began).Round(10*time.Millisecond))
	if out := f.sensor.Must(t, "status", "--json"); !strings.Contains(out, `"version":"next"`) {
		t.Errorf("not the new build: %s", out)
	}
	f.sensor.Deny(t, id) // whoever waited has been refused, or waits for this
	if r := p.Wait(t); r.Exit != 3 {
		t.Errorf("held over the upgrade: %s", r)
	}
	to.Nothing(t)
	f.tainted(t, "agent", "secret")
}

func (f *fixture) tainted(t *testing.T, name string, bits ...string) {
	t.Helper()
	rig.Eventually(t, name+" is tainted", func() bool {
		for _, c := range f.sensor.Containers(t) {
			if (c.Name == name || strings.HasSuffix(c.Cgroup, "/"+name)) && c.Live && slices.Equal(c.Taint, bits) {
				return true
			}
		}
		return false
	})
}

// tries waits until what is in a cgroup has been refused or held.
func (f *fixture) tries(t *testing.T, cgroup string) {
	t.Helper()
	f.sensor.Event(t, func(e event.Event) bool {
		refused := e.Kind == event.Connect && e.Verdict != nil && e.Verdict.Decision == "deny"
		return (e.Kind == event.Hold || refused) && e.Container != nil && e.Container.Cgroup == cgroup
	})
}

// restartedContainer: a service of a guarded slice is a container. The slice was not there when the sensor started; and a
// tainted service that is started again is tainted before it can send anything (B45).
func (f *fixture) restartedContainer(t *testing.T) {
	to := f.world.Raw(t)
	f.world.World.Listen(t, "udp", fmt.Sprintf("[::]:%d", to.Port))
	unit := "[Service]\nSlice=agents.slice\nExecStart=/bin/sh -c 'test ! -e /run/box.go || sleep infinity | exec /opt/weir/attack/probe " + to.To + " " + to.Text +
		"; exec sleep infinity'\nKillMode=control-group\nTimeoutStopSec=1\n"
	if err := os.WriteFile("/run/systemd/system/box.service", []byte(unit), 0o644); err != nil {
		t.Fatal(err)
	}
	rig.Must(t, "systemctl daemon-reload && systemctl start box")
	t.Cleanup(func() {
		rig.Must(t, "systemctl kill -s KILL box; systemctl stop box; rm /run/systemd/system/box.service")
	})
	f.tainted(t, "box.service")
	f.sensor.Must(t, "taint", "/agents.slice/box.service", "secret")
	rig.Must(t, "touch /run/box.go && systemctl restart box")
	f.tainted(t, "box.service", "secret")
	f.tries(t, "/agents.slice/box.service")
	to.Nothing(t)
}

// byName: a scope of a guarded slice, and a service outside of all, as systemd calls them. The service is guarded while it runs, and
// again when it is started again (B45).
func (f *fixture) byName(t *testing.T) {
	rig.Must(t, "systemd-run --quiet --scope --unit=agent-1 --slice=agents.slice sleep 1000 >/dev/null 2>&1 &")
	t.Cleanup(func() { rig.Must(t, "systemctl stop agent-1.scope") })
	f.tainted(t, "agent-1.scope")
	f.sensor.Must(t, "taint", "--cgroup", "agent-1.scope", "secret")
	f.tainted(t, "agent-1.scope", "secret")

	to := f.world.Raw(t)
	f.world.World.Listen(t, "udp", fmt.Sprintf("[::]:%d", to.Port))
	rig.Must(t, "systemd-run --quiet --unit=lone -p TimeoutStopSec=1  sh -c 'sleep infinity | exec /opt/weir/attack/probe "+to.To+" "+to.Text+"'")
	t.Cleanup(func() { rig.Must(t, "systemctl kill -s KILL lone; systemctl stop lone") })
	to.Arrived(t)
	f.sensor.Must(t, "guard", "--cgroup", "lone.service", "--taint", "secret")
	mark := f.world.Mark(t)
	f.tries(t, "/system.slice/lone.service")
	f.world.Quiet(t, mark, to.Port)

	rig.Must(t, "systemctl restart lone")
	f.sensor.Event(t, func(e event.Event) bool {
		return strings.Contains(e.Message, "/system.slice/lone.service was made again")
	})
	again := f.world.Raw(t)
	p := rig.BareIn(t, "lone", "/sys/fs/cgroup/system.slice/lone.service").Start(t, again.Egress("tcp")...)
	f.sensor.Deny(t, f.sensor.Asked(t, again.About).ID)
	if r := p.Wait(t); r.Exit != 3 {
		t.Errorf("in a service that was started again: %s", r)
	}
	again.Nothing(t)
}

// stopped: what is tainted stays denied, also without the unit; and the sockets' directory stays.
func (f *fixture) stopped(t *testing.T) {
	p, _, to := f.held(t)
	rig.Must(t, "systemctl stop weir")
	if r := p.Wait(t); r.Exit != 3 {
		t.Errorf("held when the unit was stopped: %s", r)
	}
	to.Nothing(t)
	f.probe.Steady(t)
	if _, err := os.Stat("/run/weir"); err != nil {
		t.Error(err)
	}
}
