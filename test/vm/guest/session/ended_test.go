//go:build vmguest

package session

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/control"
	"weir/internal/event"
	"weir/test/vm/guest/rig"
)

// leftInMessage: what a tainted session left in a message stays refused when a newer session has a policy of its own, and over a restart
// with nothing guarded (B96).
func (f *fixture) leftInMessage(t *testing.T) {
	for _, c := range []struct {
		name      string
		meanwhile func(*testing.T)
	}{
		{"newer_policy", func(t *testing.T) { f.own(t, "mode: observe\n", "secret") }},
		{"restart", func(t *testing.T) { f.sensor.Stop(t); f.sensor.Restart(t) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			to, socket := f.world.Place(), filepath.Join(t.TempDir(), "s")
			f.world.Here.Listen(t, "unix", socket)
			carrier := f.world.Agent.Start(t, "egress", "carry", "-listen", "-path", socket+".carrier", "-to", socket)
			if carrier.WaitLine("listening", rig.Late) == "" {
				t.Fatal(carrier.Wait(t))
			}
			s := f.own(t, "")
			p := s.Start(t, "egress", "unix-leave", "-n", "0", "-to", socket+".carrier", "-say", to.Text, "-wait", "connect", "-then", "stream")
			if p.WaitLine("opened", rig.Late) == "" {
				t.Fatal(p.Wait(t))
			}
			f.sensor.Taint(t, s.Name, "secret")
			p.Input(t, "\n")
			succeeded(t, p, "ok")
			s.Close()
			rig.Eventually(t, "the session is over", func() bool {
				return !slices.ContainsFunc(f.sensor.Containers(t), func(o control.Container) bool { return o.Name == s.Name })
			})
			c.meanwhile(t)
			carrier.Input(t, "\n")
			r := carrier.Wait(t)
			if f.world.Got(to.Text) || r.Exit == 0 {
				t.Errorf("it was carried out: %s", r)
			}
		})
	}
}

// own starts a session with a policy of its own.
func (f *fixture) own(t *testing.T, policy string, bits ...string) *rig.Session {
	t.Helper()
	file := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(file, []byte("version: 1\n"+policy), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"--policy", file}
	for _, b := range bits {
		args = append(args, "--taint", b)
	}
	return f.sensor.Guard(t, "own"+itoa(f.world.Port()), args...)
}

// listedNoMore: a connection to a listed Unix socket sends no more once that is listed no more, or the mode is seal (B97).
func (f *fixture) listedNoMore(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	f.world.Here.Listen(t, "unix", socket)
	listed := "allow_unix_sockets: [" + socket + "]\n"
	defer f.sensor.Policy(t, "")
	for _, c := range []struct {
		name, then string // another policy
		sends      bool
	}{
		{"listed", listed, true},
		{"loaded_again", listed + "hold: false\n", true},
		{"line_removed", "", false},
		{"sealed", listed + "mode: seal\n", false},
	} {
		for _, clean := range []bool{true, false} { // when it connects
			t.Run(c.name+map[bool]string{true: "_clean", false: ""}[clean], func(t *testing.T) {
				f.sensor.Policy(t, listed)
				to, s := f.world.Place(), f.guard(t)
				if !clean {
					f.sensor.Taint(t, s.Name, "secret")
				}
				p := s.Start(t, "egress", "unix", "-to", socket, "-say", to.Text, "-wait", "connect")
				if p.WaitLine("opened", rig.Late) == "" {
					t.Fatal(p.Wait(t))
				}
				if clean {
					f.sensor.Taint(t, s.Name, "secret")
				}
				f.sensor.Policy(t, c.then)
				p.Input(t, "\n")
				if c.sends {
					succeeded(t, p, "ok")
					if !f.world.WaitGot(to.Text, rig.Late) {
						t.Error("nothing arrived")
					}
					return
				}
				refused(t, p)
				if f.world.Got(to.Text) {
					t.Error("it arrived")
				}
			})
		}
	}
}

// sharesTable has a child that shares its descriptors and moves to another cgroup. What one of them opens later, the other one has.
const sharesTable = `
import ctypes, os, socket, sys
outside, host, port = sys.argv[1:]
CLONE_FILES, SIGCHLD = 0x400, 17
ask, answer = os.pipe(), os.pipe()
pid = ctypes.CDLL(None).syscall(56, CLONE_FILES | SIGCHLD, 0, 0, 0, 0)
if pid == 0:
    open(outside + "/cgroup.procs", "w").write(str(os.getpid()))
    os.write(answer[1], b"x")
    fd = int(os.read(ask[0], 10))
    socket.create_connection((host, int(port))).sendall(os.read(fd, 100))
    os._exit(0)
os.read(answer[0], 1)
print("opened", flush=True)
text = sys.stdin.readline().strip().encode()
read, write = os.pipe()
os.write(write, text)
os.write(ask[1], str(read).encode())
os.waitpid(pid, 0)
`

// tiedFromBefore: who traces somebody outside, or shares descriptors with him, since before it was guarded is named when it is tainted: what
// goes out so passes no hook. It stays open, and docs/limits.md says so (B98).
func (f *fixture) tiedFromBefore(t *testing.T) {
	for _, c := range []struct {
		name, told string
		start      func(*testing.T, *rig.Session, rig.Place) (*rig.Proc, func())
	}{
		{"traces", "traces process ", func(t *testing.T, s *rig.Session, to rig.Place) (*rig.Proc, func()) {
			f.world.World.Listen(t, "udp", "[::]:"+itoa(to.Port))
			victim := f.world.Agent.Start(t, "egress", "victim", "-say", "untouched", "-to", to.To)
			at := strings.Fields(victim.WaitLine("victim ", rig.Late))
			if len(at) != 3 {
				t.Fatal(victim.Wait(t))
			}
			return s.Start(t, "egress", "ptrace-seize", "-wait", "open", "-pid", at[1], "-mem", at[2], "-say", to.Text), func() { victim.Input(t, "\n") }
		}},
		{"shares", "shares its descriptors with process ", func(t *testing.T, s *rig.Session, to rig.Place) (*rig.Proc, func()) {
			return s.Start(t, "python3", "-c", sharesTable, f.world.Agent.Cgroup, rig.World4, itoa(to.Port)), func() {}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			to, s := f.raw(t).Place, rig.Bare(t, "tied-"+c.name)
			p, goes := c.start(t, s, to)
			if p.WaitLine("opened", rig.Late) == "" {
				t.Fatal(p.Wait(t))
			}
			path := strings.TrimPrefix(s.Cgroup, "/sys/fs/cgroup")
			f.sensor.Must(t, "guard", "--cgroup", path)
			f.sensor.Taint(t, path, "secret")
			f.sensor.Event(t, func(e event.Event) bool {
				return e.Kind == event.Error && e.Container != nil && e.Container.Cgroup == path && strings.Contains(e.Message, c.told) && strings.HasSuffix(e.Message, " outside")
			})
			p.Input(t, to.Text+"\n")
			p.Wait(t)
			goes()
			to.Arrived(t)
		})
	}
}
