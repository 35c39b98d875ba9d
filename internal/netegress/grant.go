package netegress

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/cilium/ebpf"

	"weir/internal/cgroup"
	"weir/internal/event"
	"weir/internal/netegress/family"
	"weir/internal/procfs"
	"weir/internal/taint"
)

// Terms are what a verdict opens.
type Terms struct {
	For       time.Duration            // how long it is open
	Bytes     int64                    // upstream
	ClaimFor  time.Duration            // how long it can be claimed, when the call has failed already
	Resolvers []netip.Addr             // what a DNS question opens besides the server that was asked
	Real      netip.Addr               // where the asker's destination, which stands for a name, leads; else invalid
	Prepare   func(grant uint64) error // nil, or called before a grant, or more of it, is opened
}

// prepare is Prepare's.
func (t Terms) prepare(grant uint64) error {
	if t.Prepare == nil {
		return nil
	}
	return t.Prepare(grant)
}

// Grant is egress that is open, or can be claimed.
type Grant struct {
	ID        uint64
	State     string // made, extended, claimed, spent, expired, revoked, ended
	Kind      string // cgroup, mark or claim
	Container uint64 // cgroup id
	To        []Destination
	Expires   time.Time
	Bytes     int64
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

// live is a grant that this daemon keeps.
type live struct {
	Grant
	cgroupID uint64
	top      int // the command's topmost process
	start    uint64
	pidfd    *os.File
	expires  uint64     // ns since boot
	bits     taint.Bits // that it was given under: under more it opens nothing
	claims   []egressClaimKey
	owed     []owed
	over     bool // nothing is open any more; the cgroup waits to be empty
}

// command names what a claim by command is bound to (G16).
type command struct {
	container, inode, hash uint64
	device                 uint32
}

// opened is what a command was granted, and until when that may be claimed again.
type opened struct {
	to      []Destination
	until   uint64
	prepare func(grant uint64) error
}

// Grant carries out a verdict that allows: the asker's command is let out, or,
// when its call has failed already or it must not be moved, the next try of the
// same process or command can claim it. It wakes a held asker.
func (e *Egress) Grant(a Ask, t Terms) (Grant, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	to := destinations(a.To, t.Resolvers)
	if t.Real.IsValid() {
		to = append(to, Destination{Addr: t.Real.Unmap(), Port: a.To.Port, Proto: a.To.Proto})
	}
	pidfd, err := procfs.Open(a.Process.PID, a.Process.Start)
	if err != nil || !a.Held {
		if pidfd != nil {
			pidfd.Close()
		}
		g, err := e.claim(a, to, t, true)
		return g, errors.Join(err, e.release(a))
	}
	defer pidfd.Close()
	box, agent, err := e.box(a.Container)
	if err != nil {
		return Grant{}, err
	}
	top, err := family.Top(a.Process.PID, box, agent)
	if err != nil {
		return Grant{}, err
	}
	if top.PID == 0 {
		g, err := e.claim(a, to, t, false)
		return g, errors.Join(err, e.release(a))
	}
	g, err := e.let(a, top, to, t)
	if err != nil {
		return Grant{}, err
	}
	return g, e.release(a)
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

// box is the path of a container's cgroup, and its agent.
func (e *Egress) box(id uint64) (path string, agent int, err error) {
	if st, ok := e.opts.State.ByCgroup(id); ok {
		return st.Cgroup, st.Agent, nil
	}
	path, err = cgroup.Path(id)
	return path, 0, err
}

// let moves a command into a grant of its own, or widens the one it is in.
func (e *Egress) let(a Ask, top procfs.Stat, to []Destination, t Terms) (Grant, error) {
	leaf, err := cgroup.Of(top.PID)
	if err != nil {
		return Grant{}, err
	}
	expires := taint.Now() + uint64(t.For)
	debt := owed{a, to, t, taint.Now() + uint64(t.ClaimFor)}
	for _, g := range e.grants {
		if g.over || g.Kind != "cgroup" || !cgroup.Below(leaf, g.Cgroup) {
			continue
		}
		if a.Taint&^g.bits != 0 { // what it is open to was approved under less
			if err := e.end(g, "revoked"); err != nil {
				return Grant{}, err
			}
			continue
		}
		g.owed = append(g.owed, debt)
		g.bits = a.Taint
		if err := t.prepare(g.ID); err != nil {
			return Grant{}, err
		}
		return e.extend(g, to, expires, t.Bytes)
	}
	g := &live{Grant: Grant{
		ID: e.newID(), State: "made", Kind: "cgroup", Container: a.Container, To: to, Bytes: t.Bytes,
		Expires: time.Now().Add(t.For).UTC(),
	}, top: top.PID, expires: expires, bits: a.Taint, owed: []owed{debt}}
	if g.pidfd, g.start, err = openTop(top); err != nil {
		return Grant{}, err
	}
	g.Cgroup = leaf + "/weir-grant-" + strconv.FormatUint(g.ID, 10)
	if g.cgroupID, err = cgroup.Make(g.Cgroup); err != nil {
		return Grant{}, errors.Join(err, g.pidfd.Close())
	}
	if err = t.prepare(g.ID); err == nil {
		err = e.open(g)
	}
	if err == nil {
		err = e.move(g, a)
	}
	if err != nil {
		return Grant{}, errors.Join(err, e.end(g, "revoked"))
	}
	e.grants[g.ID] = g
	return g.Grant, nil
}

func openTop(top procfs.Stat) (*os.File, uint64, error) {
	pidfd, err := procfs.Open(top.PID, top.Start)
	return pidfd, top.Start, err
}

func (e *Egress) newID() uint64 {
	e.lastID = max(e.lastID+1, taint.Now())
	return e.lastID
}

// open writes a grant's entries; the cgroup's own comes last.
func (e *Egress) open(g *live) error {
	if err := e.openTo(g.ID, g.To); err != nil {
		return err
	}
	if err := e.putGrant(g); err != nil {
		return err
	}
	return e.opts.State.PutGrant(g.cgroupID, g.ID)
}

// putGrant writes a grant of a cgroup.
func (e *Egress) putGrant(g *live) error {
	k := egressGrant{Expires: g.expires, Bytes: g.Bytes, Taint: uint32(g.bits), Top: uint32(g.top)}
	if err := e.egress.Grants.Put(g.ID, &k); err != nil {
		return fmt.Errorf("write grant: %w", err)
	}
	return nil
}

func (e *Egress) openTo(id uint64, to []Destination) error {
	for _, d := range to {
		err := e.egress.GrantDests.Update(&egressGrantDest{Grant: id, Dest: d.raw()}, egressDestUseDEST_OPEN, ebpf.UpdateNoExist)
		if err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
			return fmt.Errorf("write destination of grant: %w", err)
		}
	}
	return nil
}

func (e *Egress) extend(g *live, to []Destination, expires uint64, bytes int64) (Grant, error) {
	if err := e.openTo(g.ID, to); err != nil {
		return Grant{}, err
	}
	for _, d := range to {
		if !slices.Contains(g.To, d) {
			g.To = append(g.To, d)
		}
	}
	g.expires, g.Bytes = max(g.expires, expires), bytes
	g.Expires = wall(g.expires)
	if err := e.putGrant(g); err != nil {
		return Grant{}, err
	}
	g.State = "extended"
	return g.Grant, nil
}

// move brings the command into the grant's cgroup.
func (e *Egress) move(g *live, a Ask) error {
	box, agent, err := e.box(a.Container)
	if err != nil {
		return err
	}
	inside, err := family.Move(g.Cgroup, g.top, box)
	if err != nil {
		return err
	}
	for pid := range inside {
		g.PIDs = append(g.PIDs, pid)
	}
	slices.Sort(g.PIDs)
	if inside[agent] || !inside[a.Process.PID] {
		return fmt.Errorf("move command of process %d: its parents changed", a.Process.PID)
	}
	return family.Steered(box, inside)
}

// claim makes an approval that the next try takes up. With byCommand also
// another process may, if it runs the same file with the same arguments.
func (e *Egress) claim(a Ask, to []Destination, t Terms, byCommand bool) (Grant, error) {
	g := &live{Grant: Grant{
		ID: e.newID(), State: "made", Kind: "claim", Container: a.Container, To: to, Bytes: t.Bytes,
		Expires: time.Now().Add(t.ClaimFor).UTC(), PIDs: []int{a.Process.PID},
	}, expires: taint.Now() + uint64(t.ClaimFor), bits: a.Taint}
	keys := []egressClaimKey{{
		Container: a.Container, Kind: egressClaimKindCLAIM_PROCESS, Id: a.Process.Start, Tag: uint64(a.Process.PID),
	}}
	if p := a.Process; byCommand && p.ArgvHash != 0 {
		keys = append(keys, egressClaimKey{
			Container: a.Container, Kind: egressClaimKindCLAIM_COMMAND, Id: p.Inode, Device: p.Device, Tag: p.ArgvHash,
		})
		g.To = e.remember(command{a.Container, p.Inode, p.ArgvHash, p.Device}, opened{to, g.expires, t.prepare})
	}
	for _, earlier := range append(e.commands[command{a.Container, a.Process.Inode, a.Process.ArgvHash, a.Process.Device}], opened{prepare: t.prepare}) {
		if err := earlier.prepare(g.ID); err != nil {
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
	e.grants[g.ID] = g
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
