package sensor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"weir/internal/cgroup"
	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/netegress"
	"weir/internal/policy"
	"weir/internal/sensor/store"
)

// Mode implements control.Operator. What opens something is logged and stored
// before it happens; a change that fails halfway is taken back.
func (d *daemon) Mode(_ context.Context, mode, by, why string) error {
	m, err := policy.ParseMode(mode)
	if err != nil {
		return control.Errorf(control.Usage, "%v", err)
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	opens := strict(m) < strict(d.policies.Mode())
	if opens {
		if err := d.noteMode(m, by, why); err != nil {
			return fmt.Errorf("the mode stays %s: %w", d.policies.Mode(), err)
		}
	}
	before := d.policies.Say(m)
	if err := d.applyPolicies(); err != nil {
		d.policies.Say(before)
		return errors.Join(err, d.applyPolicies(), d.memory.Put(store.Mode, before))
	}
	if err := errors.Join(d.egress.Forgive(), d.withdraw(0)); err != nil {
		return err
	}
	if opens {
		return nil
	}
	if err := d.noteMode(m, by, why); err != nil {
		return fmt.Errorf("the mode is %s from now on, but it could not be noted: %w", m, err)
	}
	return nil
}

// strict orders the modes.
func strict(m policy.Mode) int {
	return slices.Index([]policy.Mode{policy.Observe, policy.Enforce, policy.Seal}, m)
}

// noteMode logs and stores a mode that a person set.
func (d *daemon) noteMode(m policy.Mode, by, why string) error {
	return errors.Join(
		d.log.Write(event.Event{Kind: event.Mode, Mode: string(m), Message: fmt.Sprintf("mode set by %s: %s", by, why)}),
		d.memory.Put(store.Mode, m))
}

// Reload implements control.Operator.
func (d *daemon) Reload(context.Context) error {
	d.changing.Lock()
	defer d.changing.Unlock()
	d.agents.LoadRules()
	d.loaded = newestPolicy(d.opts.PolicyPath)
	p, err := loadPolicy(d.opts.PolicyPath)
	if err == nil {
		err = d.replacePolicy(p)
	}
	if err != nil {
		d.refused(err)
		return err
	}
	return d.log.Write(event.Event{Kind: event.Mode, Mode: string(d.policies.Mode()), Message: "policy loaded: " + d.opts.PolicyPath})
}

func (d *daemon) refused(err error) {
	d.write(event.Event{Kind: event.Error, Message: "policy refused, the old one stays: " + strings.ReplaceAll(err.Error(), "\n", "; ")})
}

func (d *daemon) replacePolicy(p policy.Policy) error {
	if old := d.policies.Base(); p.Events != old.Events {
		return errors.New("events: changed: restart the sensor for that")
	}
	if old := d.policies.Base(); !reflect.DeepEqual(p.Announce, old.Announce) {
		return errors.New("announce: changed: restart the sensor for that")
	}
	if p.Metrics != d.policies.Base().Metrics {
		return errors.New("metrics: changed: restart the sensor for that")
	}
	reviewer, err := newReviewer(p.Cop)
	if err != nil {
		return err
	}
	if err := d.applyPolicy(p); err != nil {
		reviewer.Close()
		return errors.Join(err, d.files.Set(netegress.BaseSlot, d.policies.Base().Taint.SecretFiles), d.applyPolicies())
	}
	d.policies.SetBase(p)
	defer d.reviewer.Close()
	d.reviewer = reviewer
	d.reviewing.Store(reviewer)
	d.gate.Configure(reviewer, p.Approver == policy.Person, seconds(p.AskSeconds), seconds(p.ClaimSeconds))
	return nil
}

// hangups reloads the policy on SIGHUP.
func (d *daemon) hangups(ctx context.Context) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGHUP)
	defer signal.Stop(signals)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-signals:
			if err := d.Reload(ctx); err != nil {
				d.opts.Logger.WithError(err).Error("reload policy")
			}
		}
	}
}

const (
	settled     = 300 * time.Millisecond // after the first change of the policy's directory
	lookAgain   = 100 * time.Millisecond // at a file that is open for writing
	tellWriting = 20                     // times that it was
)

// watch reloads the policy when its file changes, and guards parents as soon as
// they are made again. It watches directories: editors put a new file in the place
// of the old one.
func (d *daemon) watch(ctx context.Context) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch the policy: %w", err)
	}
	defer w.Close()
	file := d.opts.PolicyPath
	if file != "" {
		if err := w.Add(filepath.Dir(file)); err != nil {
			d.fail("watch the policy: it is loaded again on SIGHUP only", nil, err)
		}
	}
	var reload <-chan time.Time
	writing := 0 // how often it was found so
	for {
		d.watchParents(w)
		select {
		case <-ctx.Done():
			return nil
		case err := <-w.Errors:
			d.fail("watch files", nil, err) // what was missed is found by housekeeping
			reload = time.After(settled)
		case e := <-w.Events:
			if cgroup.Below(e.Name, cgroup.Root) {
				if e.Has(fsnotify.Create) {
					d.watchParents(w)
					d.parents.MadeAgain(strings.TrimPrefix(e.Name, cgroup.Root))
				}
			} else if reload == nil && d.changed(file) {
				reload = time.After(settled)
			}
		case <-reload:
			reload = nil
			switch {
			case !d.changed(file):
			case beingWritten(file):
				reload = time.After(lookAgain)
				if writing++; writing == tellWriting {
					d.refused(fmt.Errorf("%s: somebody has it open for writing: close it", file))
				}
				continue
			default:
				if err := d.Reload(ctx); err != nil {
					d.opts.Logger.WithError(err).Error("reload policy")
				}
			}
			writing = 0
		}
	}
}

// version is what tells one state of a file from another.
type version struct {
	inode, size uint64
	changed     unix.Timespec
}

// changed says whether the file is not what was loaded last.
func (d *daemon) changed(file string) bool {
	d.changing.Lock()
	defer d.changing.Unlock()
	return newestPolicy(file) != d.loaded
}

func newestPolicy(file string) version {
	var st unix.Stat_t
	if file == "" || unix.Stat(file, &st) != nil {
		return version{}
	}
	return version{st.Ino, uint64(st.Size), st.Mtim}
}

// beingWritten says whether somebody has a file open for writing: then a read lease
// is refused. Where there are no leases, only the time tells.
func beingWritten(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	if err != nil {
		return errors.Is(err, unix.EAGAIN)
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	return err != nil
}

// watchParents watches the cgroups above guarded parents, as many as there are: it
// is in them that a parent is made again.
func (d *daemon) watchParents(w *fsnotify.Watcher) {
	watched := w.WatchList()
	for _, parent := range d.parents.List() {
		for path := filepath.Dir(parent); ; path = filepath.Dir(path) {
			if dir := filepath.Clean(cgroup.Dir(path)); !slices.Contains(watched, dir) {
				_ = w.Add(dir) // what is not there is watched when it is made
			}
			if path == "/" {
				break
			}
		}
	}
}
