//go:build vmguest

package rig

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	each = 50 * time.Millisecond // from one try to the next
	// rarest is how long it may take instead: the VM runs in software, beside others. If that stands still, so does all in it, the test too.
	rarest = time.Second
)

// Probe is a tainted command that nobody approves, and that tries to get out twenty times a second.
type Probe struct {
	Text string // what it sends
	At   string // where to

	world *Outside
	port  int
	cmd   *exec.Cmd
	in    io.WriteCloser
	ended chan struct{}

	mu      sync.Mutex
	tries   int
	passed  []string
	longest time.Duration // from one try to the next
	stood   time.Duration // the longest that this process, which nobody guards, took beyond as long a time on any CPU
	earlier time.Duration // the same before the last look: the probe may tell of that time only now
}

// Probe makes one the agent of a session of its own: it is refused, never held.
func (s *Sensor) Probe(t testing.TB, world *Outside) *Probe {
	t.Helper()
	p := &Probe{world: world, port: world.Port(), ended: make(chan struct{})}
	p.Text = fmt.Sprintf("probe.%d.end", p.port)
	p.At = fmt.Sprintf("%s:%d", World4, p.port)
	at := fmt.Sprintf("[::]:%d", p.port)
	world.World.Listen(t, "tcp", at)
	world.World.Listen(t, "udp", at)
	p.cmd = exec.Command("weir", "guard", "-q", "--name", "probe", "--taint", "corruption", "--", "probe", p.At, p.Text)
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go p.read(out)
	for cpu := range runtime.NumCPU() {
		go p.compare(cpu)
	}
	return p
}

// compare measures how late this process is itself on a CPU, until the probe has ended: one may stand while others go on.
func (p *Probe) compare(cpu int) {
	runtime.LockOSThread() // for good: the thread ends with its affinity
	var one unix.CPUSet
	one.Set(cpu)
	_ = unix.SchedSetaffinity(0, &one) // else it measures on any
	for last := time.Now(); ; {
		select {
		case <-p.ended:
			return
		case <-time.After(each):
		}
		now := time.Now()
		p.mu.Lock()
		p.stood = max(p.stood, now.Sub(last)-each)
		p.mu.Unlock()
		last = now
	}
}

func (p *Probe) read(out io.Reader) {
	defer close(p.ended)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		p.mu.Lock()
		if fields := strings.Fields(lines.Text()); fields[0] == "tries" {
			p.tries, _ = strconv.Atoi(fields[1]) // both are as the probe writes them
			gap, _ := time.ParseDuration(fields[3])
			p.longest = max(p.longest, gap)
		} else {
			p.passed = append(p.passed, lines.Text())
		}
		p.mu.Unlock()
	}
}

func (p *Probe) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tries
}

// Stop ends it.
func (p *Probe) Stop(t testing.TB) {
	t.Helper()
	p.in.Close()
	<-p.ended // all is read
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("probe: %v", err)
	}
	t.Logf("the probe has tried %d times", p.count())
}

// Steady fails t if the probe got anything out so far, or does not try any more, or not often enough.
func (p *Probe) Steady(t testing.TB) {
	t.Helper()
	before := p.count()
	for end := time.Now().Add(Late); p.count() < before+40; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the probe does not go on")
		}
	}
	p.mu.Lock()
	for _, passed := range p.passed {
		t.Errorf("probe: %s", passed)
	}
	stood := max(p.stood, p.earlier)
	if p.longest > rarest+stood {
		t.Errorf("probe: %v from one try to the next; the machine stood for %v", p.longest, stood)
	}
	t.Logf("probe: at most %v from one try to the next; the machine stood for %v", p.longest, stood)
	p.passed, p.longest, p.stood, p.earlier = nil, 0, 0, p.stood
	p.mu.Unlock()
	p.Nothing(t)
}

// Nothing fails t if anything of the probe's has arrived.
func (p *Probe) Nothing(t testing.TB) {
	t.Helper()
	p.world.Nothing(t, Marks{}, p.Text, p.port)
}
