//go:build vmguest

package exec

import (
	"encoding/binary"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/exec"
)

// numbered counts how often "true N" was seen, by N.
func numbered(t *testing.T, commands []exec.Command) map[int]int {
	t.Helper()
	seen := map[int]int{}
	for _, c := range commands {
		if argv := c.Process.Argv; argv[0] == "true" {
			n, err := strconv.Atoi(argv[1])
			if err != nil {
				t.Fatalf("%q: %v", argv, err)
			}
			seen[n]++
		}
	}
	return seen
}

// quickly executes a program of nine bytes, which exits at once, as often and as fast as can be.
func quickly(r *rig, count int, arg string) *osexec.Cmd {
	r.t.Helper()
	file := filepath.Join(workDir(r.t), "true")
	header := []uint64{
		0x00010102464c457f, 0, 0x00000001003e0002, 0x400078, 64, 0, 0x0038004000000000, 1, // ELF64, executable, entry, one program header
		0x0000000500000001, 0, 0x400000, 0x400000, 129, 129, 4096, // load the file, to be read and executed
	}
	image, err := binary.Append(nil, binary.LittleEndian, header)
	r.check(err)
	image = append(image, 0x31, 0xff, 0xb8, 60, 0, 0, 0, 0x0f, 0x05) // xor edi, edi; mov eax, SYS_exit; syscall
	r.check(os.WriteFile(file, image, 0o755))
	return r.inside(attack(r.t, "execs"), "many", strconv.Itoa(count), file, arg)
}

func TestB31QuickExecs(t *testing.T) {
	const count = 1000
	r := startRig(t)
	r.last(quickly(r, count, ""))
	seen := numbered(t, r.commands())
	for n := 1; n <= count; n++ {
		if seen[n] != 1 {
			t.Fatalf("execution %d was seen %d times; %d of %d seen", n, seen[n], len(seen), count)
		}
	}
	if lost, bad := r.probe.Lost(), r.probe.Malformed(); lost != 0 || bad != 0 {
		t.Errorf("%d lost, %d malformed", lost, bad)
	}
}

// A sensor that restarts, again and again, has everything that was executed meanwhile.
func TestB32Restart(t *testing.T) {
	const count = 600
	r := startRig(t)
	restarts, twice := 0, 0
	for restarts < 2 { // all may be over before one restart is
		r.mu.Lock()
		r.seen = nil
		r.mu.Unlock()
		restarts += r.restarted(quickly(r, count, ""))
		seen := numbered(t, r.commands())
		for n := 1; n <= count; n++ {
			if seen[n] == 0 {
				t.Fatalf("execution %d was not seen; %d of %d seen", n, len(seen), count)
			}
			twice += seen[n] - 1
		}
	}
	t.Logf("%d restarts, %d executions told twice", restarts, twice)
	if lost := r.probe.Lost(); lost != 0 {
		t.Errorf("%d lost in %d restarts", lost, restarts)
	}
}

// restarted restarts the sensor until a command has ended, and says how often.
func (r *rig) restarted(cmd *osexec.Cmd) (restarts int) {
	r.t.Helper()
	r.check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	within(r.t, 10*time.Minute, "commands", func() bool {
		select {
		case err := <-ended:
			r.check(err)
			return true
		default:
		}
		r.stop()
		r.load()
		time.Sleep(50 * time.Millisecond)
		r.run()
		restarts++
		return false
	})
	return restarts
}

// What a full ring has no room for is counted, to the last one.
func TestB31FullRing(t *testing.T) {
	const count = 400
	r := startRig(t)
	r.stop()
	r.load()
	out, err := quickly(r, count, strings.Repeat("x", 17000)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lost := r.probe.Lost()
	r.run()
	seen := 0
	for _, c := range r.commands() {
		if c.Process.Argv[0] == "true" {
			seen++
			if !c.Process.Truncated {
				t.Error("a cut argv is not marked")
			}
		}
	}
	if lost == 0 || uint64(seen)+lost != count {
		t.Errorf("%d seen and %d counted as lost of %d", seen, lost, count)
	}
	if _, out := r.last(r.inside(attack(t, "execs"), "report")); len(r.image(out).Argv) != 2 {
		t.Error("no records after the ring was full")
	}
}

// So it is when the ring is so small that it is full at once, while its reader is stuck and after.
func TestB31TinyRing(t *testing.T) {
	const count = 500
	r := newRigWith(t, 4096)
	r.run()
	r.mu.Lock()
	out, err := quickly(r, count, "").CombinedOutput()
	r.mu.Unlock()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	stuck := r.probe.Lost()
	r.commands()
	r.last(quickly(r, count, ""))
	seen := uint64(0)
	for _, times := range numbered(t, r.commands()) {
		seen += uint64(times)
	}
	if lost := r.probe.Lost(); stuck == 0 || seen == 0 || seen+lost != 2*count || r.probe.Malformed() != 0 {
		t.Errorf("%d seen and %d counted as lost of %d, %d while the reader was stuck; %d malformed", seen, lost, 2*count, stuck, r.probe.Malformed())
	}
}
