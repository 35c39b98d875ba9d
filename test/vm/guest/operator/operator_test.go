//go:build vmguest

// Package operator gives the sensor what people get wrong: it says so in one
// line, and no window opens.
package operator

import (
	"context"
	"encoding/binary"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"weir/internal/control"
	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) { inside.Main(m) }

const policy = `
hold: false
approver: none
`

const pins = "/sys/fs/bpf/weir"

// weir runs the command line and returns all it printed, and its exit code.
func weir(t *testing.T, args ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*rig.Late)
	defer cancel()
	cmd := exec.CommandContext(ctx, "weir", args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("weir %v: %v", args, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// refused checks that a command failed with the code, in one line that says want.
func refused(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	out, exit := weir(t, args...)
	if exit != code {
		t.Errorf("weir %v: exit %d, want %d: %s", args, exit, code, out)
	}
	if !strings.Contains(out, want) {
		t.Errorf("weir %v: want %q in: %s", args, want, out)
	}
	if first, rest, more := strings.Cut(out, "\n"); more && strings.HasPrefix(first, "weir run: getting ready: ") {
		out = rest // what was refused after a while
	}
	if lines := strings.Count(strings.TrimSpace(out), "\n"); lines > 0 {
		t.Errorf("weir %v: %d lines more than one: %s", args, lines, out)
	}
}

// denied checks that the tainted session is.
func denied(t *testing.T, world *rig.Outside, s *rig.Session, when string) {
	t.Helper()
	port := world.Port()
	at := world.World.Listen(t, "tcp", net.JoinHostPort("10.77.0.2", strconv.Itoa(port)))
	mark := world.Mark(t)
	if r := s.Run(t, "egress", "tcp", "-to", at, "-say", when); r.Exit == 0 {
		t.Errorf("%s: not refused: %s", when, r)
	}
	world.Nothing(t, mark, when, port)
}

func TestBadInput(t *testing.T) {
	world := rig.NewOutside(t)
	sensor := rig.StartSensor(t, policy)
	session := sensor.Guard(t, "bad", "--taint", "corruption")

	t.Run("words", func(t *testing.T) {
		refused(t, 1, `unknown container "nobody"`, "taint", "nobody", "corruption")
		refused(t, 2, `unknown taint bit "sticky"`, "taint", "bad", "sticky")
		refused(t, 2, "why", "untaint", "bad", "corruption")
		refused(t, 1, "zzzzzz", "approve", "zzzzzz")
		refused(t, 1, "zzzzzz", "deny", "zzzzzz")
		refused(t, 1, "no cgroup /init.scope.not", "taint", "/init.scope.not", "secret")
		refused(t, 2, "unknown flag", "run", "--polcy", "x")
		refused(t, 2, "nonsense", "mode", "nonsense", "--why", "test")
		refused(t, 1, "it does not exist: check the path", "run", "--policy", "/nonexistent.yaml")
		denied(t, world, session, "after-words")
	})

	t.Run("two daemons", func(t *testing.T) {
		refused(t, 1, "another", "run")
		denied(t, world, session, "after-second")
	})

	t.Run("bad policy", func(t *testing.T) {
		good, err := os.ReadFile("/run/rig-policy.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("/run/rig-policy.yaml", []byte("mode: observe\nalow: []\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		err = control.NewClient("/run/weir").Reload(context.Background())
		if err == nil || !strings.Contains(err.Error(), `rig-policy.yaml:2:1: unknown key "alow"`) {
			t.Errorf("a bad policy was answered with %v", err)
		}
		if st, err := control.NewClient("/run/weir").Status(context.Background()); err != nil || st.Refused == nil || !strings.Contains(strings.Join(st.Refused.Why, ""), "alow") { // F40
			t.Errorf("the refusal is not in the status: %+v, %v", st.Refused, err)
		}
		if err := os.WriteFile("/run/rig-policy.yaml", good, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := control.NewClient("/run/weir").Reload(context.Background()); err != nil {
			t.Error(err)
		}
		if st, err := control.NewClient("/run/weir").Status(context.Background()); err != nil || st.Refused != nil {
			t.Errorf("the refusal is still in the status: %+v, %v", st.Refused, err)
		}
		denied(t, world, session, "after-policy")
	})

	t.Run("doctor tries everything beside it", func(t *testing.T) {
		out, exit := weir(t, "doctor", "--load")
		if exit != 0 || !strings.Contains(out, "refused, it gets EPERM") {
			t.Errorf("exit %d: %s", exit, out)
		}
		if left, err := filepath.Glob(pins + "-doctor-*"); err != nil || left != nil {
			t.Errorf("left behind: %v, %v", left, err)
		}
		denied(t, world, session, "after-doctor")
	})

	t.Run("cgroup gone", func(t *testing.T) {
		gone := sensor.Guard(t, "gone")
		gone.Close()
		out, exit := weir(t, "taint", "gone", "secret")
		if exit != 0 && strings.Count(strings.TrimSpace(out), "\n") > 0 {
			t.Errorf("exit %d with more than one line: %s", exit, out)
		}
		denied(t, world, session, "after-gone")
	})

	t.Run("pins of another version", func(t *testing.T) {
		sensor.Stop(t)
		ours := abi(t, 99)
		refused(t, 1, "they have 99", "run")
		if out, exit := weir(t, "doctor"); exit != 1 || !strings.Contains(out, "another version's are in force") {
			t.Errorf("doctor: exit %d: %s", exit, out)
		}
		denied(t, world, session, "foreign-pins")
		abi(t, ours)
		sensor.Restart(t)
		denied(t, world, session, "after-pins")
	})
}

// abiAt is where bpf/types.h has the version in struct settings.
const abiAt = 36

// abi writes the version of the pinned maps, and returns what it was.
func abi(t *testing.T, version uint32) uint32 {
	t.Helper()
	m, err := ebpf.LoadPinnedMap(filepath.Join(pins, "config"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	raw, err := m.LookupBytes(uint32(0))
	if err != nil {
		t.Fatal(err)
	}
	at := raw[abiAt : abiAt+4]
	old := binary.NativeEndian.Uint32(at)
	binary.NativeEndian.PutUint32(at, version)
	if err := m.Put(uint32(0), raw); err != nil {
		t.Fatal(err)
	}
	return old
}
