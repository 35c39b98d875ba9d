package volumes

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"weir/internal/bpfobj"
	"weir/internal/event"
	"weir/internal/linux"
	"weir/internal/taint"
)

// Most is how many volumes there can be: the kernel has one bit for each.
const Most = 64

// ErrFull says that there are Most volumes already.
var ErrFull = fmt.Errorf("%d directories carry taint between containers already: clear one with `weir untaint --path`", Most)

// Volume is a directory with all that is below it.
type Volume struct {
	Path   string        `json:"path"`
	Index  int           `json:"index"`
	Inode  uint64        `json:"inode"` // with Age and FS: what it is, whatever it is called
	Age    uint32        `json:"age,omitempty"`
	FS     [2]int32      `json:"fs"`
	Bits   taint.Bits    `json:"taint"`
	Since  time.Time     `json:"since,omitzero"` // of the last change
	By     string        `json:"by,omitempty"`
	Why    string        `json:"why,omitempty"`
	Causes []event.Cause `json:"causes,omitempty"` // the first of each bit
	dry    bool          // an inode came later, and it was not soaked since
}

func (v Volume) mask() uint64 { return 1 << v.Index }

var bucket = []byte("volumes")

// adopt takes up what is on disk and in the kernel: what either knows to be tainted stays so.
func (v *Volumes) adopt() error {
	err := v.opts.DB.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(bucket)
		if err != nil {
			return fmt.Errorf("make bucket: %w", err)
		}
		return b.ForEach(func(path, data []byte) error {
			one := &Volume{}
			if err := json.Unmarshal(data, one); err != nil || one.Index < 0 || one.Index >= Most {
				return fmt.Errorf("read volume %s: it is damaged: %w", path, err)
			}
			v.known[one.Path] = one
			return nil
		})
	})
	if err != nil {
		return err
	}
	mine := uint64(0)
	for _, one := range v.known {
		mine |= one.mask()
	}
	if err := bpfobj.Each(v.objects.Volumes, func(key volumesVolumeKey, index uint32) {
		if mine>>index&1 != 0 {
			v.keys[key] = index
		}
	}); err != nil {
		return fmt.Errorf("read volumes: %w", err)
	}
	stale, err := bpfobj.Keys(v.objects.Volumes, func(_ volumesVolumeKey, index uint32) bool { return mine>>index&1 == 0 })
	errs := []error{err, bpfobj.Delete(v.objects.Volumes, stale...), v.change(^mine, 0, taint.Corruption|taint.Secret, 0)}
	for _, one := range v.known {
		if one.Bits != 0 {
			errs = append(errs, v.change(one.mask(), one.Bits, 0, 0))
		}
		if inode, err := v.elsewhere(one); err == nil {
			errs = append(errs, v.put(one, inode))
		}
	}
	return errors.Join(append(errs, v.filter())...)
}

// change has the kernel set and clear bits of volumes. What is cleared takes with it what was opened there; container: the same of one,
// in all.
func (v *Volumes) change(volumes uint64, set, clear taint.Bits, container uint64) error {
	c := volumesVolumeChange{Volumes: volumes, Container: container, Set: uint32(set), Clear: uint32(clear)}
	return v.opts.State.Change(func() error {
		failed, err := v.objects.WeirVolumeChange.Run(&ebpf.RunOptions{Context: &c})
		if err == nil && failed != 0 {
			err = unix.EINVAL
		}
		if err != nil {
			return fmt.Errorf("change volumes: %w", err)
		}
		return nil
	})
}

// filter writes which volumes there are. Their inodes are there before, and until after.
func (v *Volumes) filter() error {
	var f volumesVolumeFilter
	for _, one := range v.known {
		f.Listed |= one.mask()
	}
	for key := range v.keys {
		at := filterBit(key.Inode)
		f.Bits[at/64] |= 1 << (at % 64)
	}
	if err := v.objects.VolumeFilters.Put(uint32(0), &f); err != nil {
		return fmt.Errorf("write filter of volumes: %w", err)
	}
	return nil
}

// filterBit is filtered of bpf/volumes.bpf.c.
func filterBit(inode uint64) uint64 { return inode * 0x9e3779b97f4a7c15 >> 55 }

// put gives a volume one more inode.
func (v *Volumes) put(one *Volume, key volumesVolumeKey) error {
	if index, ok := v.keys[key]; ok && int(index) == one.Index {
		return nil
	}
	if err := v.objects.Volumes.Put(&key, uint32(one.Index)); err != nil {
		return fmt.Errorf("write volume %s: %w", one.Path, err)
	}
	v.keys[key] = uint32(one.Index)
	return nil
}

// at opens a directory, or a file, and gives what the kernel calls it.
func (v *Volumes) at(path string) (key volumesVolumeKey, fs [2]int32, err error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return key, fs, fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(fd)
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return key, fs, fmt.Errorf("look at %s: %w", path, err)
	}
	key.Device, key.Inode, key.Generation, err = v.opts.Inode(fd)
	return key, st.Fsid.Val, err
}

// elsewhere finds what a volume is though its path leads to something else: where its file system is mounted now.
func (v *Volumes) elsewhere(one *Volume) (volumesVolumeKey, error) {
	if key, fs, err := v.at(one.Path); err == nil && key.Inode == one.Inode && key.Generation == one.Age && fs == one.FS {
		return key, nil
	}
	mounted, err := mounts()
	if err != nil {
		return volumesVolumeKey{}, err
	}
	for _, dir := range append([]string{"/"}, linux.MountsBelow(mounted, "/")...) {
		if key, fs, err := v.at(dir); err == nil && fs == one.FS {
			key.Inode, key.Generation = one.Inode, one.Age
			return key, nil
		}
	}
	return volumesVolumeKey{}, fmt.Errorf("find volume %s: its file system is not mounted", one.Path)
}

// mounts is what is mounted now, for linux.MountsBelow.
func mounts() (string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("read mounts: %w", err)
	}
	return string(data), nil
}

// look gives a volume the inode that its path leads to now, and the roots of what is mounted below it.
func (v *Volumes) look(one *Volume, mounted string) error {
	key, _, err := v.at(one.Path)
	if err != nil {
		return nil // it is gone, or cannot be looked at: what it was stays listed
	}
	errs := []error{v.put(one, key)}
	for _, dir := range linux.MountsBelow(mounted, one.Path) {
		if key, _, err := v.at(dir); err == nil { // else it is no directory, or gone
			errs = append(errs, v.put(one, key))
		}
	}
	return errors.Join(errs...)
}

// Written says what may have been written in a directory before it was a volume: with what those are tainted that can write there, and run.
type Written func(dir string) (taint.Bits, error)

// list makes a directory a volume; it is one already if it is known. What is tainted from then on is seen, so the past is asked for last.
func (v *Volumes) list(path string, written Written) (*Volume, error) {
	if one := v.known[path]; one != nil {
		return one, nil
	}
	free := ^uint64(0)
	for _, one := range v.known {
		free &^= one.mask()
	}
	if free == 0 {
		return nil, ErrFull
	}
	one := &Volume{Path: path, Index: bits.TrailingZeros64(free), Since: time.Now().UTC()}
	key, fs, err := v.at(path)
	if err != nil {
		return nil, err
	}
	one.Inode, one.Age, one.FS = key.Inode, key.Generation, fs
	mounted, err := mounts()
	err = errors.Join(err, v.attach(), v.look(one, mounted))
	v.known[path] = one
	// on disk last: what is not there is asked for again
	if err = errors.Join(err, v.filter(), v.soak(one, written), v.store(one)); err != nil {
		return nil, errors.Join(err, v.unlist(one))
	}
	return one, v.scan()
}

// soak gives a volume what was written in it when that could not be seen.
func (v *Volumes) soak(one *Volume, written Written) error {
	bits, err := written(one.Path)
	if err != nil || bits == 0 {
		return err
	}
	return v.change(one.mask(), bits, 0, 0)
}

func (v *Volumes) unlist(one *Volume) error {
	delete(v.known, one.Path)
	errs := []error{v.opts.DB.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Delete([]byte(one.Path)) })}
	var gone []volumesVolumeKey
	for key, index := range v.keys {
		if int(index) == one.Index {
			gone = append(gone, key)
			delete(v.keys, key)
		}
	}
	errs = append(errs, v.filter(), bpfobj.Delete(v.objects.Volumes, gone...))
	bpfobj.WaitRCU() // who has seen it listed notes no use any more
	return errors.Join(append(errs, v.change(one.mask(), 0, taint.Corruption|taint.Secret, 0))...)
}

func (v *Volumes) store(one *Volume) error {
	data, err := json.Marshal(one)
	if err == nil {
		err = v.opts.DB.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put([]byte(one.Path), data) })
	}
	if err != nil {
		return fmt.Errorf("store volume %s: %w", one.Path, err)
	}
	return nil
}

// Share makes these directories volumes, and those others none any more that carry nothing. Those that cannot be are in the error.
func (v *Volumes) Share(dirs []string, written Written) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known)+len(dirs) == 0 {
		return nil
	}
	carried, err := v.kernel()
	mounted, failed := mounts()
	errs := []error{err, failed}
	for path, one := range v.known {
		switch {
		case !slices.Contains(dirs, path) && one.Bits == 0 && of(carried, one) == 0 && err == nil:
			errs = append(errs, v.unlist(one))
		default:
			before := len(v.keys)
			errs = append(errs, v.look(one, mounted))
			if one.dry = one.dry || len(v.keys) != before; one.dry {
				err := errors.Join(v.filter(), v.soak(one, written), v.scan())
				one.dry = err != nil
				errs = append(errs, err)
			}
		}
	}
	for _, dir := range dirs {
		_, err := v.list(dir, written)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// List gives all, by path, with what they carry in the kernel.
func (v *Volumes) List() ([]Volume, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	carried, err := v.kernel()
	var all []Volume
	for _, path := range slices.Sorted(maps.Keys(v.known)) {
		one := *v.known[path]
		one.Bits |= of(carried, &one)
		all = append(all, one)
	}
	return all, err
}

// Unknown are those that carry what was not taken down yet, with that alone.
func (v *Volumes) Unknown() ([]Volume, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	carried, err := v.kernel()
	var all []Volume
	for _, path := range slices.Sorted(maps.Keys(v.known)) {
		one := *v.known[path]
		if one.Bits = of(carried, &one) &^ one.Bits; one.Bits != 0 {
			all = append(all, one)
		}
	}
	return all, err
}

// kernel is what volumes carry there.
func (v *Volumes) kernel() (volumesVolumeBits, error) {
	var b volumesVolumeBits
	if err := v.objects.VolumeTaint.Lookup(uint32(0), &b); err != nil {
		return b, fmt.Errorf("read taint of volumes: %w", err)
	}
	return b, nil
}

func of(b volumesVolumeBits, one *Volume) taint.Bits { return through(b, one.mask()) }

func through(b volumesVolumeBits, volumes uint64) (t taint.Bits) {
	for i, mask := range b.Carried {
		if mask&volumes != 0 {
			t |= 1 << i
		}
	}
	return t
}

// Use is what a container has opened in volumes, and the taint that this gives it.
type Use struct {
	Container uint64
	Taint     taint.Bits
	reads     uint64
	writes    uint64
}

// Reads says whether it has read from a volume.
func (u Use) Reads(v Volume) bool { return u.reads>>v.Index&1 != 0 }

// Writes says whether it has written there.
func (u Use) Writes(v Volume) bool { return u.writes>>v.Index&1 != 0 }

// Uses gives those of all containers.
func (v *Volumes) Uses() ([]Use, error) {
	b, err := v.kernel()
	if err != nil {
		return nil, err
	}
	var all []Use
	err = bpfobj.Each(v.objects.VolumeUses, func(id uint64, u volumesVolumeUse) {
		all = append(all, Use{Container: id, Taint: through(b, u.Reads), reads: u.Reads, writes: u.Writes})
	})
	if err != nil {
		return nil, fmt.Errorf("read uses of volumes: %w", err)
	}
	return all, nil
}

// carried is the taint that a container has through volumes.
func (v *Volumes) carried(container uint64) taint.Bits {
	b, err := v.kernel()
	if err != nil || b == (volumesVolumeBits{}) {
		return 0
	}
	var u volumesVolumeUse
	if err := v.objects.VolumeUses.Lookup(container, &u); err != nil {
		return 0
	}
	return through(b, u.Reads)
}

// Taint sets bits of a directory, which is a volume from then on: first in the kernel, then on disk.
func (v *Volumes) Taint(path string, set taint.Bits, c event.Cause, written Written) (Volume, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	one, err := v.list(path, written)
	if err != nil {
		return Volume{}, err
	}
	if err := v.change(one.mask(), set, 0, 0); err != nil {
		return Volume{}, err
	}
	defer v.Wake()
	err = v.add(one, set, c)
	return *one, err
}

// Note takes down bits that a volume has in the kernel; noted: it still has them, and they were new.
func (v *Volumes) Note(path string, bits taint.Bits, c event.Cause) (noted bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	one := v.known[path]
	carried, err := v.kernel()
	if one == nil || err != nil {
		return false, err
	}
	if bits &= of(carried, one) &^ one.Bits; bits == 0 {
		return false, nil
	}
	return true, v.add(one, bits, c)
}

// add takes down why bits are set. What cannot be stored is found again.
func (v *Volumes) add(one *Volume, set taint.Bits, c event.Cause) error {
	next := *one
	next.Causes = slices.Clone(one.Causes)
	for _, c.Bit = range (set &^ one.Bits).Names() {
		next.Causes = append(next.Causes, c)
	}
	next.Bits |= set
	next.Since, next.By, next.Why = c.At, c.By, c.Why
	if err := v.store(&next); err != nil {
		return err
	}
	*one = next
	return nil
}

// Clear clears bits: first on disk, then in the kernel. What was opened there counts no more but for what is still open.
func (v *Volumes) Clear(path string, clear taint.Bits, by, why string) (Volume, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	one := v.known[path]
	if one == nil {
		return Volume{}, fmt.Errorf("%s carries no taint: see `weir status`", path)
	}
	cleared := *one
	cleared.Bits &^= clear
	cleared.Since, cleared.By, cleared.Why = time.Now().UTC(), by, why
	cleared.Causes = slices.DeleteFunc(slices.Clone(one.Causes), func(c event.Cause) bool { return slices.Contains(clear.Names(), c.Bit) })
	if err := v.store(&cleared); err != nil {
		return Volume{}, err
	}
	if err := v.change(one.mask(), 0, clear, 0); err != nil {
		return Volume{}, err
	}
	*one = cleared
	err := v.scan()
	carried, failed := v.kernel()
	cleared.Bits |= of(carried, one)
	return cleared, errors.Join(err, failed)
}

// Forget has a container begin anew: what it has opened counts no more, but for what is still open when Scan is called.
func (v *Volumes) Forget(container uint64) error { return v.change(0, 0, 0, container) }

// Drop forgets a container that is gone for good.
func (v *Volumes) Drop(container uint64) error {
	return bpfobj.Delete(v.objects.VolumeUses, container)
}

// Path is where a directory is that a person or a runtime names.
func Path(name string) (string, error) {
	if !filepath.IsAbs(name) {
		return "", fmt.Errorf("%s is not an absolute path", name)
	}
	path, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return "", errors.Join(fmt.Errorf("%s is neither a directory nor a file", name), err)
	}
	if path == "/" {
		return "", errors.New("/ is all there is: name the directory that containers share")
	}
	return path, nil
}
