package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"weir/internal/bpfobj"
	"weir/internal/container"
	"weir/internal/control"
	"weir/internal/cop"
	"weir/internal/dns"
	"weir/internal/event"
	"weir/internal/exec"
	"weir/internal/gate"
	"weir/internal/linux"
	"weir/internal/metrics"
	"weir/internal/netegress"
	"weir/internal/policy"
	"weir/internal/secretfiles"
	"weir/internal/taint"
	"weir/internal/volumes"
)

// leanEvery is how often memory is given back that a burst has left.
const leanEvery = time.Minute

// firstLook is how long a start waits for a runtime to list its containers.
const firstLook = 5 * time.Second

// Options are what the daemon needs. Paths must be absolute.
type Options struct {
	PolicyPath string // empty: policy.Default
	StateDir   string // what must outlive a reboot
	PinDir     string // on a bpf file system
	RunDir     string // the control socket's
	RulesPath  string // the operator's rules for the guard; need not be there
	Server     string // host that updates of agents may come from besides GitHub; empty: none
	KillSwitch string // file that turns tools off while it is there
	AgentPath  string // file that agent_update replaces; empty: the tool is off
	Degraded   bool   // go on where a mechanism is missing, and say so in every event
	Version    string
	Types      *taint.Types // only for the start
	Logger     *logrus.Logger
	Stdout     io.Writer // events, where the policy names no file
	Alive      func()    // called with each turn of the loop that beats, also when there is no beat
}

// daemon is what Run puts together.
type daemon struct {
	opts        Options
	started     time.Time
	state       *taint.State
	egress      *netegress.Egress
	execs       *exec.Probe
	files       *secretfiles.Files
	volumes     *volumes.Volumes
	dns         *dns.Redirect
	parts       []io.Closer // these six, as far as they are loaded
	gate        *gate.Gate
	reviewer    *cop.Cop                // the gate's; guarded by changing after the start
	reviewing   atomic.Pointer[cop.Cop] // the same, for who only reads its figures
	approvals   *notifier
	metrics     []*metrics.Server
	begun       atomic.Bool // all is in force
	agents      *bridgeHost
	models      *modelRefusals
	policies    *activePolicy
	parents     *guardParents
	processes   *processCache
	runtime     *container.Keeper
	replaced    chan struct{} // the policy was
	spaces      *mountSpaces
	pins        *pinSet
	summaries   *taintSummaries
	server      *control.Server
	log         *eventLog
	records     chan netegress.Record
	lostRecords atomic.Uint64 // for which that had no room
	broken      tally         // invariants
	memory      stateMemory
	probing     chan struct{}   // closed when the gate has answered
	progress    uint64          // of the gate, when it last took long
	ctx         context.Context // of the running daemon, for what it starts

	mu       sync.Mutex
	asking   map[asking]*context.CancelFunc
	asks     map[uint64]int   // by container
	drawn    map[uint64]drawn // by grant
	degraded []string

	clearing  sync.Mutex                // of taint, and ending approvals for what taint there is
	changing  sync.Mutex                // of mode and policy
	replace   func(policy.Policy) error // puts a policy in force, or leaves all as it was
	halves    halves
	inquiries inquiries
	sharing   sharing
	loaded    fileVersion                           // of the policy file, also if it was refused
	refusal   atomic.Pointer[control.PolicyRefusal] // of the policy file that would be in force; nil: it is
}

// daemonGC lets the heap, of which about 3 MiB live, double until garbage is collected: with half of that a third of what the daemon does
// for an event is collecting garbage.
const daemonGC = 100

// ahead puts the daemon before the calls that go round until it has frozen them, if it may: else it is one of many.
func ahead() {
	tids, _ := linux.Threads(os.Getpid())
	for _, tid := range tids { // further ones inherit it
		_ = unix.Setpriority(unix.PRIO_PROCESS, tid, niceness)
	}
}

// niceness is that of weir.service, too.
const niceness = -15

// Run is the daemon: it returns when ctx ends or a part fails. ready is called
// once all is in force. What is pinned stays in force afterwards.
func Run(ctx context.Context, o Options, ready func()) error {
	// reading the kernel's types leaves much garbage at once: collecting it only
	// when all is in force halves the time until then
	debug.SetGCPercent(-1)
	begun, logger := ready, o.Logger // not o: it has the types
	ready = func() {
		debug.SetGCPercent(daemonGC)
		begun()
		if err := linux.TrimMemory(); err != nil {
			logger.WithError(err).Warn("give memory back")
		}
	}
	ahead()
	loaded := newestVersion(o.PolicyPath)
	p, digest, err := loadPolicy(o.PolicyPath)
	if err != nil {
		return err
	}
	d := &daemon{
		opts: o, started: time.Now(), policies: newActivePolicy(p), records: make(chan netegress.Record, 8192),
		asking: map[asking]*context.CancelFunc{}, asks: map[uint64]int{}, drawn: map[uint64]drawn{},
		models: newModelRefusals(), loaded: loaded, replaced: make(chan struct{}, 1),
	}
	d.replace = d.replacePolicy
	if d.reviewer, err = newReviewer(p.Cop); err != nil {
		return err
	}
	defer func() { d.reviewer.Close() }()
	d.reviewing.Store(d.reviewer)
	if err := linux.CheckCgroups(); err != nil {
		return err
	}
	if err := os.MkdirAll(o.StateDir, 0o700); err != nil {
		return fmt.Errorf("make state directory: %w", err)
	}
	roles, err := rolesOf(d.policies.Base().Control)
	if err != nil {
		return err
	}
	server, err := control.Listen(o.RunDir)
	if err != nil {
		return err
	}
	defer server.Close()
	d.server = server
	db, err := OpenStore(o.StateDir)
	if err != nil {
		return err
	}
	defer db.Close()
	if d.memory, err = openMemory(db); err != nil {
		return err
	}
	if err := d.stampPolicy(digest); err != nil {
		return err
	}
	closeLog, err := d.openLog()
	if err != nil {
		return err
	}
	defer within(closeTime, closeLog)
	defer d.unload()
	if err := d.load(db); err != nil {
		return err
	}
	if d.agents, err = newBridgeHost(d); err != nil { // nobody is listened to yet
		return err
	}
	defer d.agents.Close(closeTime)
	if d.approvals, err = openNotifier(d.policies.Base().Notify, d); err != nil {
		return err
	}
	defer func() {
		for _, s := range d.metrics {
			s.Close()
		}
	}()
	if err := d.openMetrics(); err != nil {
		return err
	}
	if err := d.attach(server); err != nil {
		return err
	}
	if err := server.SetRoles(roles); err != nil { // now the kernel keeps guarded members of these groups away
		return err
	}
	return d.run(ctx, server, ready)
}

func (d *daemon) openLog() (func() error, error) {
	p := d.policies.Base().Events
	var also event.Sink
	switch p.Also {
	case policy.AlsoStdout:
		also = event.NewJSONSink(d.opts.Stdout)
	case policy.AlsoJournal:
		journal, err := event.NewJournalSink()
		if err != nil {
			return nil, err
		}
		also = journal
	}
	end, err := d.openMain(p)
	if err == nil && also != nil {
		var without []event.Kind
		for _, k := range p.AlsoWithout {
			without = append(without, event.Kind(k))
		}
		d.log.Also(also, without...)
	}
	return end, err
}

// openMain opens what is waited for.
func (d *daemon) openMain(p policy.Events) (func() error, error) {
	if p.File == "" {
		d.log = newEventLog(event.NewJSONSink(d.opts.Stdout))
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(filepath.Dir(p.File), 0o700); err != nil {
		return nil, fmt.Errorf("make directory of the event log: %w", err)
	}
	sink, err := event.NewFileSink(p.File, p.MaxMiB, p.Backups)
	if err != nil {
		return nil, err
	}
	d.log = newEventLog(sink)
	return sink.Close, nil
}

// load makes or adopts the kernel's maps, and opens the gate.
func (d *daemon) load(db *bbolt.DB) error {
	var err error
	logger := logrus.FieldLogger(d.opts.Logger)
	if d.state, err = taint.Load(taint.Options{Types: d.opts.Types, PinDir: d.opts.PinDir, DB: db, Logger: logger}); err != nil {
		if errors.Is(err, bpfobj.ErrPins) {
			return fmt.Errorf("%w: run the build that made them, or `weir detach` when nothing guarded is left", err)
		}
		return err
	}
	d.parts = append(d.parts, d.state)
	if d.egress, err = netegress.Load(netegress.Options{
		Types: d.opts.Types, PinDir: d.opts.PinDir, State: d.state, Logger: logger, Handle: d,
		Directory: func(fd int) (uint32, uint64, error) { return d.files.Directory(fd) },
	}); err != nil {
		return err
	}
	d.parts = append(d.parts, d.egress)
	if d.execs, err = exec.Load(exec.Options{Types: d.opts.Types, PinDir: d.opts.PinDir, Logger: logger}); err != nil {
		return err
	}
	d.parts = append(d.parts, d.execs)
	if d.files, err = secretfiles.Load(secretfiles.Options{Types: d.opts.Types, PinDir: d.opts.PinDir, Links: d.state.Links, Logger: logger}); err != nil {
		return err
	}
	d.parts = append(d.parts, d.files)
	if d.volumes, err = volumes.Load(volumes.Options{Types: d.opts.Types, PinDir: d.opts.PinDir, State: d.state, DB: db, Inode: d.files.Identify}); err != nil {
		return err
	}
	d.parts = append(d.parts, d.volumes)
	if d.dns, err = dns.Load(dns.RedirectOptions{Types: d.opts.Types, PinDir: d.opts.PinDir, Links: d.state.Links, Logger: logger, Host: dnsHost{d}}); err != nil {
		return err
	}
	d.parts = append(d.parts, d.dns)
	d.opts.Types = nil // they are large
	d.processes = &processCache{Books: d.state, Ran: d.execs, Parents: func() []string { return allParents(d.policies.Base()) }}
	d.parents = newParents(d)
	d.runtime = container.New(container.Options{
		Policy: d.policies.Base, Parents: d.parents.List, State: d.state, Elsewhere: d.elsewhere, Taint: d.taint, Sockets: netegress.SocketFindings, Log: d.write,
		Guard: func(path string) error {
			if err := d.attachHooks(); err != nil {
				return err
			}
			return d.egress.GuardAlone(path, netegress.BaseSlot)
		},
		Fail: d.failed, Show: d.processes.Container,
		Shared: func() error { return d.newcomer("") }, Carried: d.carries,
		Bridge: bridgeSockets(d.opts.RunDir),
	})
	d.pins = newPins(d.opts.PinDir, func(text string) { d.write(event.Event{Kind: event.Error, Message: text}) }, d.state, d.egress, d.execs, d.files, d.volumes, d.dns)
	d.spaces = newMountSpaces(d.files, d.state.Each, d.failed)
	p := d.policies.Base()
	d.gate, err = gate.Open(gate.Options{
		DB: db, Log: d.log, Logger: logger, Reviewer: d.reviewer, Resolve: d.lookUp, Approver: p.Approver == policy.Person,
		AskFor: seconds(p.ApprovalTimeout), ClaimFor: seconds(p.ApprovalTTL), Boot: boot,
		Mode: func(container string) string { return string(d.policies.ModeOf(container)) }, Causes: d.state.Causes, Broken: d.breaks, Two: d.wantsTwo,
	})
	return err
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// unload closes what load has opened.
func (d *daemon) unload() {
	if d.gate != nil {
		d.gate.Close()
	}
	for _, part := range slices.Backward(d.parts) {
		if err := part.Close(); err != nil {
			d.opts.Logger.WithError(err).Error("close")
		}
	}
}

// attach puts everything in force, policy first.
func (d *daemon) attach(server *control.Server) error {
	if err := netegress.LoadDiag(); err != nil {
		if !d.opts.Degraded {
			return fmt.Errorf("%w: or run with --degraded", err)
		}
		d.degraded = append(d.degraded, err.Error())
		d.log.Note("degraded: " + strings.Join(d.degraded, "; "))
	}
	if err := linux.UseUpWarnings(); err != nil { // or a container could be the first (B125, B139)
		d.opts.Logger.WithError(err).Warn("use up lines of the kernel's log")
	}
	cookie, err := server.Cookie()
	if err != nil {
		return err
	}
	if err := d.state.SetControl(cookie); err != nil {
		return err
	}
	if err := d.recall(); err != nil {
		return err
	}
	d.log.Summarize(d.summaries)
	if err := d.applyPolicy(d.policies.Base()); err != nil {
		return err
	}
	d.gate.ModeChanged() // questions of an earlier daemon may be about containers that are sealed now
	return errors.Join(d.files.Settled(), d.attachOrRelease())
}

func (d *daemon) run(ctx context.Context, server *control.Server, ready func()) error {
	group, ctx := errgroup.WithContext(ctx)
	d.ctx = ctx
	up := make(chan struct{}, 2)
	attached := func() { up <- struct{}{} }
	d.serveMetrics(ctx, group)
	group.Go(func() error { return d.state.Run(ctx, attached, d.moved) })
	group.Go(func() error { return d.execs.Run(ctx, attached, d.executed) })
	group.Go(func() error { return d.egress.Run(ctx) })
	group.Go(func() error { return d.files.Watch(ctx, d.taint) })
	group.Go(func() error { return d.spaces.Run(ctx) })
	group.Go(func() error { return d.volumes.Watch(ctx) })
	group.Go(func() error { return d.pass(ctx) })
	group.Go(func() error { return d.housekeep(ctx) })
	group.Go(func() error {
		for range cap(up) {
			select {
			case <-up:
			case <-ctx.Done():
				return nil
			}
		}
		return d.begin(ctx, server, group, ready)
	})
	err := group.Wait()
	d.log.Flush()
	defer d.log.Flush()
	if err == nil || errors.Is(err, context.Canceled) {
		return d.log.Write(event.Event{Kind: event.Stop, Message: "stopped; what is tainted stays denied"})
	}
	return errors.Join(err, d.log.Write(event.Event{Kind: event.Stop, Message: "failed: " + err.Error()}))
}

// begin opens for business once the programs are attached.
func (d *daemon) begin(ctx context.Context, server *control.Server, group *errgroup.Group, ready func()) error {
	if ctx.Err() != nil {
		return nil
	}
	d.resumeResolvers()
	if err := d.endOver(); err != nil { // before anybody can clear what came while no sensor ran
		d.fail("end approvals", nil, err)
	}
	if err := d.adopt(); err != nil {
		return err
	}
	if err := d.agents.Open(); err != nil {
		return err
	}
	group.Go(func() error {
		return d.state.KeepBeating(ctx, func() bool {
			d.opts.Alive()
			return d.able()
		})
	})
	group.Go(func() error { return server.Serve(ctx, d, d.refusePeer) })
	d.approvals.Run(ctx, group)
	group.Go(func() error { return d.hangups(ctx) })
	group.Go(func() error { return d.watch(ctx) })
	group.Go(func() error { return d.runtime.Run(ctx, d.replaced) })
	group.Go(func() error { return d.watchVolumes(ctx) })
	select {
	case <-d.runtime.Ready():
	case <-time.After(firstLook):
	case <-ctx.Done():
	}
	group.Go(func() error {
		linux.TrimEvery(ctx, leanEvery, func(err error) { d.opts.Logger.WithError(err).Warn("give memory back") })
		return nil
	})
	message := fmt.Sprintf("weir %s in mode %s", d.opts.Version, d.policies.Mode())
	if err := d.log.Write(event.Event{Kind: event.Start, Mode: string(d.policies.Mode()), Message: message}); err != nil {
		return fmt.Errorf("write the first event: %w", err)
	}
	d.begun.Store(true)
	ready()
	group.Go(d.prepareHooks)
	return nil
}

// closeTime is how long a log that is stuck may hold up the end.
const closeTime = 2 * time.Second

func within(limit time.Duration, do func() error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = do() // what was written is written
	}()
	select {
	case <-done:
	case <-time.After(limit):
	}
}
