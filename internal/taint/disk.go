package taint

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"weir/internal/event"
	"weir/internal/linux"
)

// record is what is stored of a container.
type record struct {
	Container
	Bits  Bits      `json:"taint"`
	Since time.Time `json:"since,omitzero"`
	By    string    `json:"by,omitempty"`
	Why   string    `json:"why,omitempty"`

	Causes []event.Cause `json:"causes,omitempty"` // of each bit the first and the newest

	Tainted time.Time `json:"tainted,omitzero"` // when the first of Bits was set
	Deleted time.Time `json:"deleted,omitzero"` // by its runtime
	Gone    time.Time `json:"gone,omitzero"`    // when its cgroup was found removed

	unsaved bool // what is on disk is older, or the kernel does not know yet what it begins with
}

// over says whether a container that is gone needs to be remembered no more.
func (r *record) over(now time.Time) bool {
	if r.CgroupID != 0 {
		return false
	}
	return !r.Deleted.IsZero() && now.Sub(r.Deleted) >= kept ||
		r.Origin.ID != "" && r.Origin.Namespace == "" && !r.Gone.IsZero() && now.Sub(r.Gone) >= keptGone
}

// add sets bits, and notes when the first came.
func (r *record) add(bits Bits, now time.Time) {
	if r.Bits |= bits; r.Bits == 0 {
		r.Tainted = time.Time{}
	} else if r.Tainted.IsZero() {
		r.Tainted = now
	}
}

// clear clears bits; the next one is a first one again when none is left.
func (r *record) clear(bits Bits) {
	r.Bits &^= bits
	r.Causes = slices.DeleteFunc(slices.Clone(r.Causes), func(c event.Cause) bool { return slices.Contains(bits.Names(), c.Bit) })
	r.add(0, r.Tainted)
}

// ErrNotStored says that a change is in force, but not on disk yet: Save tries again.
var ErrNotStored = errors.New("it is in force, but not on disk yet")

var bucket = []byte("taint")

// read takes up what is on disk, and puts its taint back into the kernel: what
// either of the two knows is tainted stays tainted. What is gone untainted is forgotten, as Gone does.
func (s *State) read() error {
	return s.db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(bucket)
		if err != nil {
			return fmt.Errorf("make bucket: %w", err)
		}
		err = b.ForEach(func(id, data []byte) error {
			r := &record{}
			if err := json.Unmarshal(data, r); err != nil {
				return fmt.Errorf("read taint of %s: %w", id, err)
			}
			s.containers[r.ID] = r
			now, err := linux.CgroupID(r.Cgroup)
			if last := r.CgroupID; last != 0 && last != now { // what the kernel has of it is of this boot: it forgets at a reboot
				if err := s.inherit(r, last); err != nil {
					return err
				}
			}
			switch {
			case err == nil:
				r.CgroupID = now
				return s.merge(r)
			case errors.Is(err, fs.ErrNotExist) && r.CgroupID != 0: // after a reboot another may have that id
				r.CgroupID, r.Agent, r.Gone = 0, 0, time.Time{} // it stood later than it was gone before
			}
			return nil
		})
		if err != nil {
			return err
		}
		for id, r := range s.containers {
			if r.CgroupID != 0 || r.Bits != 0 || r.Session {
				continue
			}
			delete(s.containers, id)
			if err := b.Delete([]byte(id)); err != nil {
				return err
			}
		}
		return nil
	})
}

// merge makes the kernel and r agree on the union of their bits.
func (s *State) merge(r *record) error {
	entry, err := s.entry(r.CgroupID)
	if err != nil {
		return err
	}
	r.add(0, r.Since)
	s.found(r, Bits(entry.Taint), "found when the sensor started")
	r.Agent = cmp.Or(r.Agent, int(entry.Agent))
	r.Policy = entry.Policy
	entry.Taint = uint32(r.Bits)
	entry.Agent = uint32(r.Agent)
	return s.put(r.CgroupID, entry)
}

// store writes records to disk, all or none, and then to where the kernel looks. What of it fails, Save tries again.
func (s *State) store(records ...*record) error {
	failed := s.db.Update(func(tx *bbolt.Tx) error {
		for _, r := range records {
			data, err := json.Marshal(r)
			if err == nil {
				err = tx.Bucket(bucket).Put([]byte(r.ID), data)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", r.ID, err)
			}
		}
		return nil
	})
	var errs []error
	if failed != nil {
		errs = append(errs, fmt.Errorf("store taint: %w", failed))
	}
	for _, r := range records {
		err := s.keepStart(r, failed != nil)
		r.unsaved = failed != nil || err != nil
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Save stores what could not be stored before, with one wait for the disk.
func (s *State) Save() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var late []*record
	for _, r := range s.containers {
		if r.unsaved {
			late = append(late, r)
		}
	}
	if len(late) == 0 {
		return nil
	}
	return s.store(late...)
}

// erase forgets containers, all or none.
func (s *State) erase(ids ...string) error {
	for _, id := range ids {
		if parent, ok := s.ids[path.Dir(id)]; ok {
			if err := s.putOwn(parent, path.Base(id), 0); err != nil {
				return err
			}
		}
	}
	err := s.db.Update(func(tx *bbolt.Tx) error {
		for _, id := range ids {
			if err := tx.Bucket(bucket).Delete([]byte(id)); err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("forget containers: %w", err)
	}
	return nil
}
