//go:build vmguest

package cgroups

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"weir/internal/control"
	"weir/test/vm/guest/rig"
)

// Whoever has no program that checks packets above it counts as outside, and the hooks ask nothing else about it. These are the
// ways in which somebody could count so and be guarded.

// rawSockets tells how many of eight sockets that a tainted container may not have it got: of packets, by the kernel's hook alone.
// It does so for each line of its input: itself, or, where that names a directory, by children of which each makes a cgroup there and
// enters it.
const rawSockets = `
import os, socket, sys
def opens():
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
        return 1
    except PermissionError:
        return 0
def enter(cgroup):
    os.mkdir(cgroup)
    with open(f"{cgroup}/cgroup.procs", "w") as f:
        f.write("0")
print("ready", flush=True)
n = 0
for line in sys.stdin:
    where, text = line.split()
    got = 0
    for _ in range(8):
        n += 1
        if where == "stay":
            got += opens()
        else:
            child = os.fork()
            if child == 0:
                enter(f"{where}/{n}")
                os._exit(opens())
            got += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(text, got, flush=True)
`

func raw(t *testing.T, s *rig.Session) *rig.Proc {
	t.Helper()
	p := s.Start(t, "python3", "-c", rawSockets)
	if p.WaitLine("ready", rig.Late) == "" {
		t.Fatal(p.Wait(t))
	}
	return p
}

// gets has raw sockets asked for, and checks how many it got.
func gets(t *testing.T, p *rig.Proc, where, text string, want int) {
	t.Helper()
	p.Input(t, where+" "+text+"\n")
	if got, want := strings.TrimSpace(p.WaitLine(text+" ", rig.Late)), fmt.Sprintf("%s %d", text, want); got != want {
		t.Errorf("raw sockets: %q, want %q", got, want)
	}
}

// passing is a program of somebody else's that lets every packet go.
func passing(t *testing.T) *ebpf.Program {
	t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.CGroupSKB, AttachType: ebpf.AttachCGroupInetEgress, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// foreign: programs of others, above a container and in it, come and go, and change nothing.
func (f *fixture) foreign(t *testing.T) {
	for _, dir := range []string{"/foreign", "/foreign/in", "/foreign/in/below"} {
		mkdir(t, dir)
	}
	above, err := link.AttachCgroup(link.CgroupOptions{Path: root + "/foreign", Attach: ebpf.AttachCGroupInetEgress, Program: passing(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer above.Close()
	in := rig.BareIn(t, "in", root+"/foreign/in")
	one := raw(t, in)
	gets(t, one, "stay", "clean", 8)
	f.sensor.Must(t, "guard", "--cgroup", "/foreign/in")
	f.sensor.Taint(t, "/foreign/in", "corruption")
	gets(t, one, "stay", "tainted", 0)
	if err := above.Close(); err != nil {
		t.Fatal(err)
	}
	gets(t, one, "stay", "alone", 0)

	// as it was attached before links: it stands for itself, and gives way to what is attached below
	dir, err := os.Open(root + "/foreign/in/below")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	const override = 1
	own := passing(t)
	at := link.RawAttachProgramOptions{Target: int(dir.Fd()), Program: own, Attach: ebpf.AttachCGroupInetEgress, Flags: override}
	if err := link.RawAttachProgram(at); err != nil {
		t.Fatal(err)
	}
	below := raw(t, rig.BareIn(t, "below", root+"/foreign/in/below"))
	gets(t, below, "stay", "override", 0)
	if err := link.RawDetachProgram(link.RawDetachProgramOptions{Target: int(dir.Fd()), Program: own, Attach: ebpf.AttachCGroupInetEgress}); err != nil {
		t.Fatal(err)
	}
	gets(t, below, "stay", "detached", 0)
	denied(t, f.world, in)
}

// movedIn: who runs outside is guarded as soon as the move into a tainted container has returned.
func (f *fixture) movedIn(t *testing.T) {
	mkdir(t, "/agents/host")
	known(t, f.sensor, "/agents/host", nil)
	f.sensor.Taint(t, "/agents/host", "corruption")
	for i := range 8 {
		p := raw(t, rig.Bare(t, fmt.Sprintf("guest-%d", i)))
		gets(t, p, "stay", "outside", 8)
		if err := os.WriteFile(root+"/agents/host/cgroup.procs", []byte(fmt.Sprint(p.Pid())), 0); err != nil {
			t.Fatal(err)
		}
		gets(t, p, "stay", "inside", 0)
	}
}

// madeMeanwhile: while a parent gets its programs, its children are made, entered and used all the time. When it is guarded, so are
// those, and all that come.
func (f *fixture) madeMeanwhile(t *testing.T) {
	for i := range 4 {
		parent := fmt.Sprintf("/meanwhile-%d", i)
		mkdir(t, parent)
		done := make(chan struct{})
		p := raw(t, rig.Bare(t, fmt.Sprintf("maker-%d", i)))
		gets(t, p, root+parent, "before", 8)
		go func() {
			defer close(done)
			f.sensor.Policy(t, policy+"guard:\n  parents: ["+parent+"]\ntaint:\n  initial: [corruption]\n")
		}()
		rounds := 0
		for open := true; open; rounds++ {
			select {
			case <-done:
				open = false
			default:
				text := fmt.Sprintf("meanwhile-%d", rounds)
				p.Input(t, root+parent+" "+text+"\n")
				if p.WaitLine(text+" ", rig.Late) == "" {
					t.Fatal("the maker says nothing")
				}
			}
		}
		t.Logf("%d rounds while %s was guarded", rounds, parent)
		gets(t, p, root+parent, "after", 0)
		known(t, f.sensor, parent+"/1", func(c control.Container) bool { return slices.Equal(c.Taint, []string{"corruption"}) })
	}
	f.sensor.Policy(t, policy+parents)
}
