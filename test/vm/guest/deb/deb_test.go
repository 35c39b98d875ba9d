//go:build vmguest

// Package deb installs, upgrades, removes and purges the package as a user does, under a systemd that is process 1, while a tainted
// command tries to get out twenty times a second. /debs has old.deb, new.deb and, of another ABI, abi.deb.
package deb

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"weir/internal/control"
	"weir/internal/event"
	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) { inside.Main(m) }

const policy = "/etc/weir/policy.yaml"

// dpkg runs it, and returns what it and its scripts printed.
func dpkg(t *testing.T, works bool, args ...string) string {
	t.Helper()
	out, err := exec.Command("dpkg", args...).CombinedOutput()
	t.Logf("# dpkg %s\n%s", strings.Join(args, " "), out)
	if (err == nil) != works {
		t.Fatalf("dpkg %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

func installed(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(rig.Must(t, "dpkg-query -W -f '${Version} ${db:Status-Status}' weir"))
}

func said(t *testing.T, out string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(out, w) {
			t.Errorf("nothing says %q:\n%s", w, out)
		}
	}
}

// active waits until both units run, and the sensor enforces.
func active(t *testing.T, sensor *rig.Sensor) {
	t.Helper()
	rig.Eventually(t, "both units are active, and weir health says so", func() bool {
		if _, exit := sensor.Weir(t, "health"); exit != 0 {
			return false
		}
		return rig.Must(t, "systemctl show --value -p ActiveState weir weir-watch") == "active\n\nactive\n"
	})
}

func tainted(t *testing.T, sensor *rig.Sensor, name string, bits ...string) {
	t.Helper()
	rig.Eventually(t, name+" is tainted", func() bool {
		return slices.ContainsFunc(sensor.Containers(t), func(c control.Container) bool { return c.Name == name && c.Live && slices.Equal(c.Taint, bits) })
	})
}

func mainPID(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(rig.Must(t, "systemctl show --value -p MainPID weir"))
}

// TestDeb goes through the life of the package.
func TestDeb(t *testing.T) {
	t.Setenv("PATH", "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/weir:/opt/weir/attack") // the package's programs first
	rig.Must(t, "rm -f /usr/sbin/policy-rc.d")                                                   // of an image, where nothing starts; a user's machine has none
	world, sensor := rig.NewOutside(t), &rig.Sensor{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(rig.Must(t, "journalctl --no-pager -o short-monotonic -u weir -u weir-watch | tail -80"))
		}
	})

	// Installed: it enforces, without another command.
	said(t, dpkg(t, true, "-i", "/debs/old.deb"), "weir: guards what /etc/weir/policy.yaml lists", "weir doctor")
	active(t, sensor)
	rig.Must(t, "systemctl is-enabled weir weir-watch && test -s /usr/share/man/man1/weir-guard.1.gz && bash -n /usr/share/bash-completion/completions/weir")
	if at := strings.TrimSpace(rig.Must(t, "command -v weir")); at != "/usr/bin/weir" {
		t.Fatalf("weir is %s", at)
	}

	// What the user changes stays; the sensor reads it.
	rig.Must(t, "sed -i 's,/log/weir/events.jsonl,/log/weir/rig-events.jsonl,; s,reviewer: static,reviewer: none,; s,/weir.slice,agents.slice,' "+policy+" && systemctl restart weir")
	active(t, sensor)
	own := rig.Must(t, "cat "+policy)

	session := sensor.Guard(t, "agent", "--taint", "secret")
	probe := sensor.Probe(t, world)
	probe.Steady(t)
	asks := func() (p *rig.Proc, question string, to rig.Place) {
		to = world.Raw(t)
		p = session.Start(t, to.Egress("tcp")...)
		return p, sensor.Asked(t, to.About).ID, to
	}
	p, id, to := asks()
	sensor.Approve(t, id)
	if r := p.Wait(t); r.Exit != 0 {
		t.Errorf("approved: %s", r)
	}
	to.Arrived(t)

	// Upgraded: taint stays, what waits is not let out, and a person is asked as before.
	p, _, to = asks()
	before := mainPID(t)
	dpkg(t, true, "-i", "/debs/new.deb")
	active(t, sensor)
	if now := installed(t); now != "2.0.0 installed" {
		t.Errorf("the package is %s", now)
	}
	if mainPID(t) == before {
		t.Error("the upgrade did not start the sensor anew")
	}
	probe.Steady(t)
	tainted(t, sensor, "agent", "secret")
	if now := rig.Must(t, "cat "+policy); now != own {
		t.Errorf("the upgrade changed the policy:\n%s", now)
	}
	for _, q := range sensor.Pending(t) {
		if to.About(q) {
			sensor.Deny(t, q.ID)
		}
	}
	if r := p.Wait(t); r.Exit != 3 {
		t.Errorf("held over the upgrade: %s", r)
	}
	to.Nothing(t)
	p, id, to = asks()
	sensor.Approve(t, id)
	if r := p.Wait(t); r.Exit != 0 {
		t.Errorf("approved after the upgrade: %s", r)
	}
	to.Arrived(t)

	// Another ABI: refused with what to do, and everything goes on.
	before = mainPID(t)
	said(t, dpkg(t, false, "-i", "/debs/abi.deb"), "not upgraded", "weir containers", "systemctl stop weir && weir detach")
	active(t, sensor)
	if now := installed(t); now != "2.0.0 installed" || mainPID(t) != before {
		t.Errorf("after an upgrade that was refused the package is %s", now)
	}
	probe.Steady(t)

	// Removed while a tainted container lives: refused, and it is guarded as before.
	said(t, dpkg(t, false, "-r", "weir"), "not removed", "weir containers", "weir detach --force")
	active(t, sensor)
	probe.Steady(t)
	tainted(t, sensor, "agent", "secret")
	p, id, to = asks()
	sensor.Deny(t, id)
	if r := p.Wait(t); r.Exit != 3 {
		t.Errorf("denied after a removal that was refused: %s", r)
	}
	to.Nothing(t)
	if errs := sensor.Events(t, event.Error); len(errs) > 0 {
		t.Errorf("the sandbox is in the way: %+v", errs)
	}

	// Removed: nothing is in the kernel; settings and taint are kept.
	probe.Stop(t)
	session.Close()
	rig.Eventually(t, "nothing tainted is live", func() bool {
		return !slices.ContainsFunc(sensor.Containers(t), func(c control.Container) bool { return c.Live })
	})
	dpkg(t, true, "-r", "weir")
	rig.Must(t, fmt.Sprintf("test ! -e /usr/bin/weir && test ! -e /sys/fs/bpf/weir && test -s %s && test -s /var/lib/weir/state.db", policy))
	if state := rig.Must(t, "systemctl show --value -p LoadState weir weir-watch"); state != "not-found\n\nnot-found\n" {
		t.Errorf("units after the removal: %q", state)
	}

	// Purged: nothing is left. weir-vm is the unit that runs this test.
	dpkg(t, true, "-P", "weir")
	if left := rig.Must(t, "find /etc /usr /var /run /sys/fs/bpf /sys/fs/cgroup /home /root -iname '*weir*' ! -name '*weir-vm*'"); left != "" {
		t.Errorf("after a purge there are:\n%s", left)
	}
	if _, err := os.Stat("/var/lib/dpkg/info/weir.list"); err == nil {
		t.Error("dpkg still knows it")
	}
}
