package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf/ringbuf"
	"github.com/sirupsen/logrus"

	"weir/internal/bpfobj"
	"weir/internal/event"
	"weir/internal/taint"
)

const (
	pollEvery = 5 * time.Millisecond // waking the reader for each record would cost every exec 6 to 14 %
	drainMost = time.Second
	linkName  = "weir_exec"
)

// Options are what Probe needs. All but Types and Ring must be set.
type Options struct {
	Types  *taint.Types
	PinDir string // directory on a bpf file system, shared with the other probes
	Logger logrus.FieldLogger
	Ring   uint32 // bytes of each ring, see bpfobj.Options
}

// Probe is the loaded exec probe. Its methods may be called at the same time.
type Probe struct {
	objects   execObjects
	pins      bpfobj.Maps
	dir       string
	links     *bpfobj.Links
	logger    logrus.FieldLogger
	names     *names
	cache     *cache
	lost      func() (uint64, error) // executions that the ring had no room for, since its counters were made
	malformed atomic.Uint64

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	close  sync.Once
	closed error

	mu      sync.Mutex
	running chan struct{} // closed when Run has ended; nil: it never ran
	waiters []*waiter
	wake    func() // the reader
}

// Load loads the probe and makes or adopts the pinned maps. It attaches nothing.
func Load(o Options) (*Probe, error) {
	if err := os.MkdirAll(filepath.Join(o.PinDir, "links"), 0o700); err != nil {
		return nil, fmt.Errorf("make pin directory: %w", err)
	}
	p := &Probe{dir: o.PinDir, links: bpfobj.New(o.PinDir), logger: o.Logger, names: newNames(), cache: newCache()}
	var err error
	if p.pins, err = bpfobj.Load("exec", &p.objects, loadExec, bpfobj.Options{PinDir: o.PinDir, Ring: o.Ring, Types: o.Types}); err != nil {
		return nil, err
	}
	p.lost = p.countLost
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

// Run attaches the probe, calls ready, and calls handle with each command, in the order of execution on each CPU, until ctx ends
// or Close is called; then it returns nil. handle must not call Close or Drain. The link stays pinned when Run ends, so that a
// later Run has what was executed between the two. Run can be called once.
func (p *Probe) Run(ctx context.Context, ready func(), handle func(Command)) error {
	done, err := p.begin()
	if err != nil {
		return err
	}
	defer close(done)
	reader, err := ringbuf.NewReader(p.objects.Execs)
	if err != nil {
		return fmt.Errorf("open ring of execs: %w", err)
	}
	err = p.attach()
	if err == nil {
		ready()
		err = p.read(ctx, reader, handle)
	}
	return errors.Join(err, reader.Close())
}

func (p *Probe) begin() (chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running != nil {
		return nil, errors.New("run exec probe: it ran already")
	}
	if p.ctx.Err() != nil {
		return nil, errors.New("run exec probe: it is closed")
	}
	p.running = make(chan struct{})
	return p.running, nil
}

// attach puts the new link in place of an earlier sensor's in one step. For that moment both are attached, and an exec can be
// told twice: better than not at all.
func (p *Probe) attach() error {
	return p.links.Trace(linkName, p.objects.WeirExec)
}

// Pins gives the names of its pinned maps.
func (p *Probe) Pins() []string { return p.pins.Names() }

// Restore pins again what is not pinned any more.
func (p *Probe) Restore() error { return errors.Join(p.pins.Restore(p.dir), p.links.Restore()) }

// read empties the ring again and again. Records come without a wakeup unless the ring fills, or nothing came for long.
func (p *Probe) read(ctx context.Context, reader *ringbuf.Reader, handle func(Command)) error {
	wake := func() { _ = reader.Flush() } // one that is closed needs none
	p.mu.Lock()
	p.wake = wake
	p.mu.Unlock()
	defer context.AfterFunc(ctx, wake)()
	defer context.AfterFunc(p.ctx, wake)()
	var record ringbuf.Record
	var handled uint64 // bytes
	pace := bpfobj.NewAdaptivePoll(pollEvery, p.setAsleep)
	defer func() { _ = pace.End() }() // to wake nobody is only slower
	for ctx.Err() == nil && p.ctx.Err() == nil {
		waiting := p.serve(handled, reader.AvailableBytes)
		if waiting {
			pace.Busy()
		}
		next, err := pace.Until()
		if err != nil {
			return err
		}
		if waiting {
			next = time.Now()
		}
		reader.SetDeadline(next)
		err = reader.ReadInto(&record)
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, ringbuf.ErrFlushed) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read ring of execs: %w", err)
		}
		pace.Busy()
		p.take(record.RawSample, handle)
		handled += ringSize(len(record.RawSample))
	}
	return nil
}

// setAsleep says to the programs whether a record has to wake the reader.
func (p *Probe) setAsleep(asleep bool) error {
	var value uint32
	if asleep {
		value = 1
	}
	if err := p.objects.Asleep.Set(value); err != nil {
		return fmt.Errorf("tell the exec probe who waits: %w", err)
	}
	return nil
}

func (p *Probe) take(record []byte, handle func(Command)) {
	c, err := p.names.decode(record)
	if err != nil {
		p.cache.doubt()
		if p.malformed.Add(1) == 1 {
			p.logger.WithError(err).Error("cannot read an exec record; further ones are only counted")
		}
		return
	}
	p.cache.put(c.Process)
	handle(c)
}

// Close ends Run, waits for it and releases the probe; what is pinned stays, and stays attached. It may be called again.
func (p *Probe) Close() error {
	p.close.Do(func() {
		p.cancel()
		p.mu.Lock()
		running := p.running
		p.mu.Unlock()
		if running != nil {
			<-running
		}
		if err := errors.Join(p.links.Close(), p.objects.Close()); err != nil {
			p.closed = fmt.Errorf("close exec probe: %w", err)
		}
	})
	return p.closed
}

// Find returns what a process executed last; start may be exact or from /proc. It is not ok for a process that has only forked,
// that executed before the probe ran, or that was forgotten: see FromProc. It is sure where no execution was lost since, which could
// be this process's (B150).
func (p *Probe) Find(pid int, start uint64) (found event.Process, sure, ok bool) {
	return p.cache.get(pid, start)
}

func (p *Probe) countLost() (uint64, error) {
	sum, err := bpfobj.Sum(p.objects.Counters, uint32(execCounterCOUNT_LOST_EXEC))
	if err != nil {
		return 0, fmt.Errorf("count lost executions: %w", err)
	}
	return sum, nil
}

// Malformed returns how many records could not be decoded; each is one lost execution.
func (p *Probe) Malformed() uint64 {
	return p.malformed.Load()
}
