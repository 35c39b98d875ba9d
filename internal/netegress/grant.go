package netegress

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/cilium/ebpf"

	"weir/internal/event"
	"weir/internal/linux"

	"weir/internal/taint"
)

// Terms are what a verdict opens.
type Terms struct {
	For           time.Duration            // how long it is open
	Bytes         int64                    // upstream
	Root          Process                  // who is let out with all that it starts; PID 0: the asker itself
	ClaimFor      time.Duration            // how long it can be claimed, when the call has failed already
	Resolvers     []netip.Addr             // what a DNS question opens besides the server that was asked
	Real          netip.Addr               // where the asker's destination, which stands for a name, leads; else invalid
	ResolveTarget func(grant uint64) error // nil, or called before a grant, or more of it, is opened
	Granted       func(Grant)              // nil, or called before the grant that was made or extended can end or change
}

// resolveTarget is ResolveTarget's.
func (t Terms) resolveTarget(grant uint64) error {
	if t.ResolveTarget == nil {
		return nil
	}
	return t.ResolveTarget(grant)
}

// Grant is egress that is open, or can be claimed.
type Grant struct {
	ID        uint64
	State     string  // made, extended, claimed, spent, expired, revoked, ended
	Kind      string  // cgroup, mark or claim
	Container uint64  // cgroup id
	Root      Process // who is let out with what it starts; zero for claims
	To        []Destination
	Expires   time.Time
	Bytes     int64
	Before    int64 // that were left when Bytes was set anew
	Cgroup    string
	PIDs      []int
}

// Event is the grant as the log tells it.
func (g Grant) Event() *event.GrantInfo {
	info := &event.GrantInfo{ID: g.ID, State: g.State, Kind: g.Kind, Bytes: g.Bytes, Cgroup: g.Cgroup, PIDs: g.PIDs, Expires: g.Expires}
	for _, d := range g.To {
		info.To = append(info.To, d.Event())
	}
	return info
}

// live is a grant that this daemon keeps. The cgroup of one is made when its command is held: State is empty until there is a
// verdict that opens something.
type live struct {
	Grant
	cgroupID uint64
	root     Process // the process that was let out, or is held
	pidfd    *os.File
	frozen   bool                   // its cgroup is to be
	late     bool                   // it is not to be any more, but could not be thawed yet
	calls    []egressHoldKey        // of its process, which wait while it is frozen
	expires  uint64                 // ns since boot
	until    map[Destination]uint64 // when a cgroup's destinations close, each with its own approval: ns since boot
	bits     taint.Bits             // that it was given under: under more it opens nothing
	cleared  taint.Bits             // of its container's, since it was given
	claims   []egressClaimKey
	unused   []unusedGrant
	over     bool // nothing is open any more; the cgroup waits to be empty
}

// is says whether the cgroup is p's. Starts of either may be as /proc has them, of parents and of what an earlier daemon let out.
func (g *live) is(p Process) bool {
	return g.cgroupID != 0 && g.root.PID == p.PID && same(g.root.Start, p.Start)
}

func same(a, b uint64) bool { return a == b || linux.SameStart(a, b) || linux.SameStart(b, a) }

// waits notes a call that its process is frozen for.
func (g *live) waits(key egressHoldKey) {
	if !slices.Contains(g.calls, key) {
		g.calls = append(g.calls, key)
	}
}

func (g *live) thaw() error {
	if !g.frozen {
		return nil
	}
	g.calls = nil
	err := linux.FreezeCgroup(g.Cgroup, false)
	g.frozen, g.late = err != nil, err != nil
	return err
}

// command names what a claim by command is bound to (G16).
type command struct {
	container, inode, hash uint64
	device                 uint32
}

// opened is what a command was granted, and until when that may be claimed again.
type opened struct {
	to            []Destination
	until         uint64
	resolveTarget func(grant uint64) error
}

// Grant carries out a verdict that allows: the asker is let out, with what it starts itself; or, where a person chose so, the
// process that t names. When the asker's call has failed already, the next try of the same process or command can claim it. A held
// asker goes on with Wake.
func (e *Egress) Grant(a Ask, t Terms) (Grant, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g, err := e.grant(a, t)
	if err == nil && t.Granted != nil {
		t.Granted(g)
	}
	return g, err
}

func (e *Egress) grant(a Ask, t Terms) (Grant, error) {
	a.Taint &^= e.clearedSince(a.Container, a.Time)
	to := destinations(a.To, t.Resolvers)
	if t.Real.IsValid() {
		to = append(to, Destination{Addr: t.Real.Unmap(), Port: a.To.Port, Proto: a.To.Proto})
	}
	root := t.Root
	if root.PID == 0 || !linux.Alive(root.PID, root.Start) {
		root = a.Process
	}
	alone := root.PID == a.Process.PID
	if alone && (!a.Held || !linux.Alive(root.PID, root.Start)) {
		return e.claim(a, to, t)
	}
	g, err := e.seat(a.Container, root)
	if err == nil && g.State != "" && a.Taint&^g.bits != 0 { // what it is open to was approved under less
		if err = e.end(g, "revoked"); err == nil {
			g, err = e.seat(a.Container, root)
		}
	}
	if err != nil {
		return Grant{}, err
	}
	if alone && !e.runs(a.Process, g.pidfd) {
		return Grant{}, errors.New("the process runs something else than what was asked about")
	}
	if err := e.let(g, a, to, t, !alone); err != nil {
		return Grant{}, errors.Join(err, e.end(g, "revoked"))
	}
	return g.Grant, nil
}

// destinations is what a verdict on d opens: a DNS question opens the name servers.
func destinations(d Destination, resolvers []netip.Addr) []Destination {
	to := []Destination{d}
	if !d.dns() {
		return to
	}
	for _, addr := range append([]netip.Addr{d.Addr}, resolvers...) {
		for _, proto := range []uint8{protoUDP, protoTCP} {
			if more := (Destination{Addr: addr.Unmap(), Port: portDNS, Proto: proto}); !slices.Contains(to, more) {
				to = append(to, more)
			}
		}
	}
	return to
}

// containerDir is the path of a container's cgroup, and its agent.
func (e *Egress) containerDir(id uint64) (path string, agent int, err error) {
	if st, ok := e.opts.State.ByCgroup(id); ok {
		return st.Cgroup, st.Agent, nil
	}
	path, err = linux.CgroupPath(id)
	return path, 0, err
}

// seatOf is the cgroup of a process that asked, or was let out.
func (e *Egress) seatOf(p Process) *live {
	for _, g := range e.grants {
		if g.is(p) {
			return g
		}
	}
	return nil
}

// seatName begins the name of the cgroup of a command; its grant's id follows.
const seatName = "weir-grant-"

// How many processes may have a cgroup of their own at a time. The kernel's map of cgroups is one for all.
const (
	maxSeats = 4096
	maxOwn   = 1024 // of one container
)

// full fails if there are as many as there may be.
func (e *Egress) full(container uint64) error {
	all, own := 0, 0
	for _, g := range e.grants {
		if g.cgroupID == 0 {
			continue
		}
		if all++; g.Container == container {
			own++
		}
	}
	if all >= maxSeats || own >= maxOwn {
		return fmt.Errorf("%d processes, %d of this container, have a cgroup of their own already", all, own)
	}
	return nil
}

// seat gives a process its cgroup: the one that it has, or a new one below its own. A process has one at a time, whatever it asks. One
// whose grant is over is not used again: nobody has watched who came in.
func (e *Egress) seat(container uint64, p Process) (*live, error) {
	leaf, err := linux.CgroupOf(p.PID)
	if err != nil {
		return nil, err
	}
	g := &live{Grant: Grant{ID: e.newID(), Kind: "cgroup", Container: container, PIDs: []int{p.PID}, Root: p}, root: p}
	if old := e.seatOf(p); old != nil {
		if !old.over && old.Cgroup == leaf && !e.entered(old) {
			if old.pidfd == nil { // an earlier daemon made it
				old.pidfd, err = linux.OpenProcess(p.PID, p.Start)
			}
			return old, err
		}
		if !old.over { // somebody moved it, or others in
			if err := e.end(old, "revoked"); err != nil {
				return nil, err
			}
		}
		if old.root = (Process{}); old.Cgroup == leaf {
			leaf = path.Dir(leaf)
		}
	}
	if err := e.full(container); err != nil {
		return nil, err
	}
	if g.pidfd, err = linux.OpenProcess(p.PID, p.Start); err != nil {
		return nil, err
	}
	g.Cgroup = leaf + "/" + seatName + strconv.FormatUint(g.ID, 10)
	if err = os.Mkdir(linux.CgroupDir(g.Cgroup), 0o755); err == nil { // not its parents, which end with a container
		g.cgroupID, err = linux.CgroupID(g.Cgroup)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make cgroup: %w", err), g.pidfd.Close())
	}
	e.keep(g.ID, g)
	if err = e.opts.State.PutGrant(g.cgroupID, g.ID); err == nil {
		err = unentered(g.Cgroup)
	}
	if err != nil {
		err = errors.Join(err, e.end(g, ""))
	}
	return g, err
}

// unentered fails if somebody has moved a process into a new cgroup before the kernel knew it: from then on it tells itself. A move that
// had begun before has taken place once the cgroup's freezer could be written.
func unentered(path string) error {
	if err := linux.FreezeCgroup(path, false); err != nil {
		return err
	}
	if pids, err := linux.CgroupTree(path); err != nil || len(pids) > 0 {
		return errors.Join(err, errIntruded)
	}
	return nil
}

// sit moves a process into its cgroup.
func (e *Egress) sit(g *live) error {
	if leaf, err := linux.CgroupOf(g.root.PID); err != nil || leaf == g.Cgroup {
		return err
	}
	return linux.MoveToCgroup(g.Cgroup, g.root.PID)
}

// let opens a grant, or widens it. family: all that the process has started comes in, too.
func (e *Egress) let(g *live, a Ask, to []Destination, t Terms, wide bool) error {
	container, agent, err := e.containerDir(a.Container)
	if err != nil {
		return err
	}
	held, inside := g.frozen, map[int]bool{g.root.PID: true}
	if wide {
		inside, err = e.gather(g, container)
	} else {
		err = e.sit(g)
	}
	if err != nil {
		return err
	}
	if inside[agent] || a.Held && !inside[a.Process.PID] {
		return fmt.Errorf("let process %d out: its parents changed", a.Process.PID)
	}
	if err := tracedByOutsider(container, inside); err != nil {
		return err
	}
	if err := t.resolveTarget(g.ID); err != nil {
		return err
	}
	g.unused = append(g.unused, unusedGrant{a, to, t, taint.Now() + uint64(t.ClaimFor)})
	g.bits, g.cleared = a.Taint, 0
	if err := e.open(g, to, taint.Now()+uint64(t.For), t.Bytes); err != nil || held {
		return err
	}
	return g.thaw() // not before: who waits among them would ask again
}

// gather brings a process and all that it has started into its cgroup, frozen. What waits to begin goes on waiting there, frozen by itself.
func (e *Egress) gather(g *live, container string) (map[int]bool, error) {
	if err := e.still(g); err != nil {
		return nil, err
	}
	inside, err := moveBelow(g.Cgroup, g.root.PID, container)
	for pid := range inside {
		start, waiting := e.begins(pid)
		if pid == g.root.PID || !waiting {
			continue
		}
		own, err2 := e.seat(g.Container, Process{PID: pid, Start: start})
		if err2 == nil {
			err2 = e.still(own)
		}
		if err2 != nil { // it must not begin unseen
			err = errors.Join(err, err2, killProcess(pid, start))
		}
	}
	return inside, err
}

// runs says whether a process runs what its question was about: another of its threads may have executed something while the first
// was being frozen.
func (e *Egress) runs(p Process, pidfd *os.File) bool {
	var now egressTask
	if err := e.egress.Tasks.Lookup(uint32(pidfd.Fd()), &now); err != nil {
		return p.ArgvHash == 0 && p.Inode == 0 // executed before the sensor ran
	}
	return int(now.ExecTgid) == p.ExecPID && now.ExecStart == p.ExecStart && now.Device == p.Device && now.Inode == p.Inode && now.ArgvHash == p.ArgvHash
}

func (e *Egress) newID() uint64 {
	e.lastID = max(e.lastID+1, taint.Now())
	return e.lastID
}

// open writes a grant's entries, or adds to them. What somebody moved a process into is not opened: the kernel puts something in its
// place that opens nothing.
func (e *Egress) open(g *live, to []Destination, expires uint64, bytes int64) error {
	for _, d := range to {
		err := e.egress.GrantDests.Update(&egressGrantDest{Grant: g.ID, Dest: d.raw()}, egressDestUseDEST_OPEN, ebpf.UpdateNoExist)
		if err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
			return fmt.Errorf("write destination of grant: %w", err)
		}
		if !slices.Contains(g.To, d) {
			g.To = append(g.To, d)
		}
		if g.until == nil {
			g.until = map[Destination]uint64{}
		}
		g.until[d] = max(g.until[d], expires)
	}
	g.expires, g.Bytes = max(g.expires, expires), bytes
	g.Expires = wall(g.expires)
	k := egressGrant{Expires: g.expires, Bytes: g.Bytes, Taint: uint32(g.bits), Top: uint32(g.root.PID)}
	var err error
	if g.State == "" {
		g.State = "made"
		err = e.egress.Grants.Update(g.ID, &k, ebpf.UpdateNoExist)
	} else {
		g.State = "extended"
		err = e.rewrite(g.ID, func(kernel *egressGrant) bool {
			g.Before, *kernel = max(kernel.Bytes, 0), k
			return true
		})
	}
	switch {
	case errors.Is(err, ebpf.ErrKeyExist), errors.Is(err, ebpf.ErrKeyNotExist):
		return errIntruded
	case err != nil:
		return fmt.Errorf("write grant: %w", err)
	}
	return nil
}

// rewrite changes the kernel's entry of a grant that is open; change says whether there is something to write. It fails with errIntruded if somebody
// has moved a process into the grant's cgroup, also meanwhile: what was replaced then may be what the kernel put there for that.
func (e *Egress) rewrite(id uint64, change func(*egressGrant) bool) error {
	before, err := e.intrusions()
	if err != nil {
		return err
	}
	var k egressGrant
	if err := e.egress.Grants.Lookup(id, &k); err != nil {
		return fmt.Errorf("read grant: %w", err)
	}
	was := k.Expires
	if !change(&k) {
		return nil
	}
	if was == intruded {
		return errIntruded
	}
	if err := e.egress.Grants.Update(id, &k, ebpf.UpdateExist); err != nil {
		return fmt.Errorf("write grant: %w", err)
	}
	if after, err := e.intrusions(); err != nil || after != before {
		return errors.Join(err, errIntruded)
	}
	return nil
}

// intruded is when a grant expires that somebody else has moved a process into: intrude of bpf/cgroup.bpf.c.
const intruded = 0

// entered says whether somebody else has moved a process into a grant's cgroup.
func (e *Egress) entered(g *live) bool {
	var kernel egressGrant
	return e.egress.Grants.Lookup(g.ID, &kernel) == nil && kernel.Expires == intruded
}

var errIntruded = errors.New("somebody else moved a process into its cgroup")

// intrusions counts moves by others into the cgroups of grants.
func (e *Egress) intrusions() (uint64, error) {
	counts, err := e.Counters()
	return counts["intruded"], err
}

// claim makes an approval that the next try takes up: of the same process, or of another one that runs the same file with the
// same arguments.
func (e *Egress) claim(a Ask, to []Destination, t Terms) (Grant, error) {
	p := a.Process
	g := &live{Grant: Grant{
		ID: e.newID(), State: "made", Kind: "claim", Container: a.Container, To: to, Bytes: t.Bytes,
		Expires: time.Now().Add(t.ClaimFor).UTC(), PIDs: []int{a.Process.PID},
	}, expires: taint.Now() + uint64(t.ClaimFor), bits: a.Taint}
	keys := []egressClaimKey{{
		Container: a.Container, Kind: egressClaimKindCLAIM_PROCESS, Id: p.Start, Device: p.Device, Uid: p.UID, Tag: uint64(p.PID) | (p.Inode^p.ArgvHash)<<32,
	}}
	if p.ArgvHash != 0 {
		keys = append(keys, egressClaimKey{
			Container: a.Container, Kind: egressClaimKindCLAIM_COMMAND, Id: p.Inode, Device: p.Device, Uid: p.UID, Tag: p.ArgvHash,
		})
		g.To = e.remember(command{a.Container, p.Inode, p.ArgvHash, p.Device}, opened{to, g.expires, t.resolveTarget})
	}
	for _, earlier := range append(e.commands[command{a.Container, a.Process.Inode, a.Process.ArgvHash, a.Process.Device}], opened{resolveTarget: t.resolveTarget}) {
		if err := earlier.resolveTarget(g.ID); err != nil {
			return Grant{}, err
		}
	}
	for _, key := range keys {
		for _, d := range g.To {
			key.Dest = d.raw()
			value := egressClaim{Grant: g.ID, Expires: g.expires, Ttl: uint64(t.For), Bytes: t.Bytes, Taint: uint32(a.Taint)}
			if err := e.egress.Claims.Put(&key, &value); err != nil {
				return Grant{}, errors.Join(fmt.Errorf("write claim: %w", err), e.dropClaims(g))
			}
			g.claims = append(g.claims, key)
		}
	}
	e.keep(g.ID, g)
	return g.Grant, nil
}

// remember adds what the command was granted before: its next try has to look
// the name up again before it reaches the address that was asked about.
func (e *Egress) remember(c command, last opened) []Destination {
	all := slices.Clone(last.to)
	var kept []opened
	for _, o := range e.commands[c] {
		if o.until <= taint.Now() {
			continue
		}
		kept = append(kept, o)
		for _, d := range o.to {
			if !slices.Contains(all, d) {
				all = append(all, d)
			}
		}
	}
	e.commands[c] = append(kept, last)
	return all
}

func (e *Egress) dropClaims(g *live) error {
	var errs []error
	for _, key := range g.claims {
		if err := e.egress.Claims.Delete(&key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			errs = append(errs, fmt.Errorf("delete claim: %w", err))
		}
	}
	g.claims = nil
	return errors.Join(errs...)
}
