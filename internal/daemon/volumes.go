package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"weir/internal/container"
	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/linux"
	"weir/internal/policy"
	"weir/internal/show"
	"weir/internal/taint"
	"weir/internal/volumes"
)

// volumeOf is the directory that two places have in common, if who has them shares it; empty: none. The root is all there is, and no
// volume.
func volumeOf(a, b container.Place) string {
	switch {
	case a.Who == b.Who || !a.Writes && !b.Writes || a.Dir == "/" || b.Dir == "/" || a.Dir == "" || b.Dir == "":
		return ""
	case linux.PathWithin(a.Dir, b.Dir):
		return a.Dir
	case linux.PathWithin(b.Dir, a.Dir):
		return b.Dir
	}
	return ""
}

// becomes says what becomes of taint in a shared directory.
func becomes(p policy.Volumes, dir string) string {
	below := func(of string) bool { return linux.PathWithin(dir, of) }
	switch {
	case slices.ContainsFunc(p.Ignore, below):
		return policy.Ignore
	case slices.ContainsFunc(p.Report, below):
		return policy.Report
	}
	return p.Shared
}

// carries says whether what two containers share of these directories carries taint.
func (d *daemon) carries(a, b string) bool {
	dir := volumeOf(container.Place{Who: "a", Dir: a, Writes: true}, container.Place{Who: "b", Dir: b})
	return dir != "" && becomes(d.policies.Base().Volumes, dir) == policy.Propagate
}

// places are what containers have of the host's files: mounts, and the directories in which sessions work.
func (d *daemon) places() []container.Place {
	all := d.runtime.Places()
	for _, st := range d.state.Sessions() {
		all = append(all, container.Place{Who: st.Cgroup, Dir: st.Dir, Writes: true})
	}
	slices.SortFunc(all, func(a, b container.Place) int { return cmp.Or(cmp.Compare(a.Who, b.Who), cmp.Compare(a.Dir, b.Dir)) })
	return all
}

// sharing is what places have in common. Each is compared with each, so it is kept until a place or the policy is another.
type sharing struct {
	mu       sync.Mutex
	places   []container.Place
	policy   policy.Volumes
	dirs     []string        // that carry taint, as the places have them
	reported map[string]bool // directories that carry none, which was told
}

// shareVolumes has the directories that containers share carry taint. fresh is the cgroup of one that has not run yet.
func (d *daemon) shareVolumes(fresh string) error {
	s := &d.sharing
	s.mu.Lock()
	defer s.mu.Unlock()
	if all, p := d.places(), d.policies.Base().Volumes; !slices.Equal(all, s.places) || !reflect.DeepEqual(p, s.policy) {
		s.places, s.policy, s.dirs = all, p, nil
		d.compare()
	}
	found := map[string]bool{}
	for _, dir := range s.dirs {
		if real, err := volumes.Path(dir); err == nil { // else it has been removed
			found[real] = true
		}
	}
	return d.volumes.Share(slices.Sorted(maps.Keys(found)), d.written(fresh))
}

// written says with what those are tainted that may have written in a directory, but for one that has not run yet.
func (d *daemon) written(fresh string) volumes.Written {
	return func(dir string) (taint.Bits, error) {
		all, err := d.writers(dir)
		bits := taint.Bits(0)
		for _, st := range all {
			if st.Cgroup != fresh {
				bits |= st.Taint
			}
		}
		return bits, err
	}
}

// writers are the containers that can write in a directory, with the cgroups within them, and with what the kernel has tainted them.
func (d *daemon) writers(dir string) (all []taint.Status, err error) {
	unknown, err := d.state.Unknown()
	places := slices.DeleteFunc(d.places(), func(p container.Place) bool {
		at, err := volumes.Path(p.Dir)
		return !p.Writes || err != nil || !linux.PathWithin(dir, at) && !linux.PathWithin(at, dir)
	})
	for _, st := range d.state.List() {
		if !slices.ContainsFunc(places, func(p container.Place) bool { return linux.PathWithin(st.Cgroup, p.Who) }) {
			continue
		}
		for _, u := range unknown {
			if u.Cgroup == st.CgroupID {
				st.Own |= u.Bits
				st.Taint |= u.Bits
			}
		}
		all = append(all, st)
	}
	return all, err
}

// compare finds what places have in common. Its callers hold d.sharing.mu.
func (d *daemon) compare() {
	s := &d.sharing
	if s.reported == nil {
		s.reported = map[string]bool{}
	}
	for i, a := range s.places {
		for _, b := range s.places[i+1:] {
			dir := volumeOf(a, b)
			if dir == "" || slices.Contains(s.dirs, dir) {
				continue
			}
			switch becomes(s.policy, dir) {
			case policy.Report:
				d.reportVolume(dir, a, b)
			case policy.Ignore:
			default:
				s.dirs = append(s.dirs, dir)
			}
		}
	}
}

// reportVolume tells once that a directory is shared. Its callers hold d.sharing.mu.
func (d *daemon) reportVolume(dir string, a, b container.Place) {
	reported := d.sharing.reported
	if reported[dir] || len(reported) >= volumes.Most*volumes.Most {
		return
	}
	reported[dir] = true
	d.write(event.Event{Kind: event.Error, Message: fmt.Sprintf("%s is shared by %s and %s, and carries no taint: what one writes there can leave through the other", dir, a.Who, b.Who)})
}

// newcomer shares what a container that begins has in common with others, and finds what it brought with it. fresh: as in shareVolumes.
func (d *daemon) newcomer(fresh string) error {
	return errors.Join(d.shareVolumes(fresh), d.volumes.Scan())
}

// watchVolumes takes down what volumes carry, and taints containers for good that have read from them, as the kernel has it already.
func (d *daemon) watchVolumes(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	failing := false
	books := volumeBooks{map[uint64]time.Time{}, map[string]time.Time{}}
	for {
		err := errors.Join(d.shareVolumes(""), d.takeVolumes(books))
		if err != nil && !failing { // told once, until it succeeds
			d.fail("keep volumes", nil, err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-d.volumes.Changed():
		}
	}
}

// lastingUse is how long what a removed container has used counts: as long as its taint.
const lastingUse = time.Hour

// volumeBooks are what is not over with one look.
type volumeBooks struct {
	gone map[uint64]time.Time // containers that were removed
	late map[string]time.Time // since when a volume waits for why it is tainted
}

// patience is how long a volume, and who read from it, waits for why who wrote there is tainted. The kernel has had the taint all the while.
const patience = 30 * time.Second

// waits says whether a volume waits for that.
func (b volumeBooks) waits(path string) bool {
	if b.late[path].IsZero() {
		b.late[path] = time.Now()
	}
	return time.Since(b.late[path]) < patience
}

func (d *daemon) takeVolumes(books volumeBooks) error {
	records := d.volumes.Records()
	all, err := d.volumes.List()
	if err != nil || len(all) == 0 {
		return err
	}
	uses, err := d.volumes.Uses()
	errs := []error{err}
	for range all { // what a container takes goes on to what it writes
		unknown, err := d.volumes.Unknown()
		errs = append(errs, err)
		for _, v := range unknown {
			errs = append(errs, d.volumeTainted(v, uses, records, books))
		}
		more, err := d.takeFrom(uses, records, books)
		if errs = append(errs, err); !more {
			break
		}
	}
	return errors.Join(errs...)
}

// volumeTainted takes down bits that a volume carries, and from whom.
func (d *daemon) volumeTainted(v volumes.Volume, uses []volumes.Use, records []volumes.Record, books volumeBooks) error {
	var errs []error
	for _, bit := range v.Bits.Names() {
		b, err := taint.ParseBits([]string{bit})
		errs = append(errs, err)
		c := event.Cause{At: time.Now().UTC(), Source: "container", Why: "wrote to " + v.Path}
		who := uint64(0)
		for _, r := range records {
			if r.Writes && r.Of(v) && r.Bits&b != 0 {
				who, c.PID, c.Why = r.Container, r.PID, fmt.Sprintf("%s (process %d) wrote to %s", r.Comm, r.PID, v.Path)
			}
		}
		for _, u := range uses {
			if st, ok := d.state.ByCgroup(u.Container); who == 0 && ok && u.Writes(v) && st.Taint&b != 0 {
				who = u.Container
			}
		}
		if who == 0 { // before it was a volume (B127)
			writers, err := d.writers(v.Path)
			errs = append(errs, err)
			if i := slices.IndexFunc(writers, func(st taint.Status) bool { return st.Own&b != 0 }); i >= 0 {
				who = writers[i].CgroupID
			}
		}
		if st, ok := d.state.ByCgroup(who); ok {
			if st.Own&b == 0 && books.waits(v.Path) { // its own is told first
				continue
			}
			c.By = nameOf(st)
			c.From = because(d.state.Causes(st.ID), bit, c.By)
		}
		delete(books.late, v.Path)
		noted, err := d.volumes.Note(v.Path, b, c)
		if errs = append(errs, err); !noted {
			continue
		}
		errs = append(errs, d.log.Write(event.Event{
			Kind: event.Taint, Change: &event.TaintChange{Set: []string{bit}, Source: "container", By: c.By, Why: c.Why, Volume: v.Path},
		}))
	}
	return errors.Join(errs...)
}

func nameOf(st taint.Status) string {
	if st.Name == "" || st.Name == st.ID {
		return st.ID
	}
	return fmt.Sprintf("%s (%s)", st.Name, st.ID)
}

// most is how many steps of a way from container to container are told.
const most = 16

// because is the way by which somebody came to a bit, nearest first.
func because(all []event.Cause, bit, who string) []string {
	for _, c := range all {
		if c.Bit == bit {
			from := c.From
			c.From = nil
			return append([]string{who + ": " + show.Cause(c)}, from[:min(len(from), most)]...)
		}
	}
	return nil
}

// takeFrom taints containers for good that have read from volumes; more: there were any.
func (d *daemon) takeFrom(uses []volumes.Use, records []volumes.Record, books volumeBooks) (more bool, err error) {
	all, err := d.volumes.List()
	errs := []error{err}
	for _, u := range uses {
		path := cgroupPath(u.Container)
		if path == "" {
			if books.gone[u.Container].IsZero() {
				books.gone[u.Container] = time.Now()
			} else if time.Since(books.gone[u.Container]) > lastingUse {
				delete(books.gone, u.Container)
				errs = append(errs, d.volumes.Drop(u.Container))
			}
			continue
		}
		if u.Taint == 0 {
			continue
		}
		st, err := d.state.Find(path)
		errs = append(errs, err)
		for _, v := range all {
			if !u.Reads(v) || err != nil {
				continue
			}
			for _, bit := range (v.Bits & st.Taint &^ st.Own).Names() { // it may have been cleared meanwhile
				from := because(v.Causes, bit, v.Path)
				if from == nil && books.waits(v.Path) {
					continue
				}
				b, err := taint.ParseBits([]string{bit})
				errs = append(errs, err)
				c := taint.Change{Container: path, Bits: b, Source: "volume", Volume: v.Path, Why: "has read from " + v.Path, From: from}
				for _, r := range records {
					if !r.Writes && r.Container == u.Container && r.Of(v) {
						c.PID, c.Start, c.By = r.PID, r.Start, fmt.Sprintf("%s (process %d)", r.Comm, r.PID)
					}
				}
				st, err = d.taint(c)
				errs = append(errs, err)
				more = more || err == nil
			}
		}
	}
	return more, errors.Join(errs...)
}

// TaintPath implements control.Tainter.
func (d *daemon) TaintPath(_ context.Context, path string, bits []string, by, why string) (control.Volume, error) {
	b, path, err := bitsAndPath(bits, path)
	if err != nil {
		return control.Volume{}, err
	}
	v, err := d.volumes.Taint(path, b, event.Cause{At: time.Now().UTC(), Source: "operator", By: by, Why: why}, d.written(""))
	if err != nil {
		return control.Volume{}, err
	}
	return volumeTold(v), d.log.Write(event.Event{Kind: event.Taint, Change: &event.TaintChange{Set: b.Names(), Source: "operator", By: by, Why: why, Volume: path}})
}

// UntaintPath implements control.Tainter. What is not logged is not cleared.
func (d *daemon) UntaintPath(_ context.Context, path string, bits []string, by, why string) (control.Volume, error) {
	b, at, err := bitsAndPath(bits, path)
	if err != nil && b == 0 {
		return control.Volume{}, err
	}
	path = cmp.Or(at, path) // it may be gone
	d.clearing.Lock()
	defer d.clearing.Unlock()
	change := event.TaintChange{Cleared: b.Names(), Source: "operator", By: by, Why: why, Volume: path}
	if err := d.log.Write(event.Event{Kind: event.Taint, Change: &change}); err != nil {
		return control.Volume{}, fmt.Errorf("still tainted: %w", err)
	}
	v, err := d.volumes.Clear(path, b, by, why)
	if err != nil {
		change.Set, change.Cleared, change.Why = b.Names(), nil, "it could not be cleared: "+err.Error()
		return control.Volume{}, errors.Join(fmt.Errorf("still tainted: %w", err), d.log.Write(event.Event{Kind: event.Taint, Change: &change}))
	}
	return volumeTold(v), nil
}

func bitsAndPath(bits []string, path string) (taint.Bits, string, error) {
	b, err := taint.ParseBits(bits)
	if err != nil {
		return 0, "", control.Errorf(control.Usage, "%w", err)
	}
	at, err := volumes.Path(path)
	if err != nil {
		return b, "", control.Errorf(control.Usage, "%w", err)
	}
	return b, at, nil
}

func volumeTold(v volumes.Volume) control.Volume {
	return control.Volume{Path: v.Path, Taint: v.Bits.Names(), Since: v.Since, By: v.By, Why: v.Why, Causes: v.Causes}
}
