package volumes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"go.etcd.io/bbolt"

	"weir/internal/bpfobj"
	"weir/internal/taint"
)

// Options are what Load needs. All but Types and Ring must be set.
type Options struct {
	Types  *taint.Types // for Load
	PinDir string       // the same as State's
	State  *taint.State
	DB     *bbolt.DB                                                                 // stays the caller's; bucket "volumes" is Volumes'
	Ring   uint32                                                                    // bytes of the ring, see bpfobj.Options
	Inode  func(fd int) (device uint32, number uint64, generation uint32, err error) // what the kernel calls the file of a descriptor
}

// Volumes are the directories that carry taint. Its methods may be called at the same time.
type Volumes struct {
	opts    Options
	objects struct {
		volumesMaps
		WeirVolumeChange *ebpf.Program `ebpf:"weir_volume_change"`
	}
	hooks   hooks
	pins    bpfobj.Maps
	reader  *ringbuf.Reader
	close   sync.Once
	changed chan struct{}
	hooking sync.Mutex // taken after mu

	mu      sync.Mutex
	known   map[string]*Volume // by path
	keys    map[volumesVolumeKey]uint32
	records []Record
}

// hooks are the programs that see volumes used, and find what is open already.
type hooks struct {
	WeirVolumeOpen        *ebpf.Program `ebpf:"weir_volume_open"`
	WeirVolumeFile        *ebpf.Program `ebpf:"weir_volume_file"`
	WeirVolumeCreate      *ebpf.Program `ebpf:"weir_volume_create"`
	WeirVolumeMkdir       *ebpf.Program `ebpf:"weir_volume_mkdir"`
	WeirVolumeMknod       *ebpf.Program `ebpf:"weir_volume_mknod"`
	WeirVolumeSymlink     *ebpf.Program `ebpf:"weir_volume_symlink"`
	WeirVolumeUnlink      *ebpf.Program `ebpf:"weir_volume_unlink"`
	WeirVolumeRmdir       *ebpf.Program `ebpf:"weir_volume_rmdir"`
	WeirVolumeLink        *ebpf.Program `ebpf:"weir_volume_link"`
	WeirVolumeRename      *ebpf.Program `ebpf:"weir_volume_rename"`
	WeirVolumeSetattr     *ebpf.Program `ebpf:"weir_volume_setattr"`
	WeirVolumeSetxattr    *ebpf.Program `ebpf:"weir_volume_setxattr"`
	WeirVolumeRemovexattr *ebpf.Program `ebpf:"weir_volume_removexattr"`
	WeirVolumeGetxattr    *ebpf.Program `ebpf:"weir_volume_getxattr"`
	WeirVolumeListxattr   *ebpf.Program `ebpf:"weir_volume_listxattr"`
	WeirVolumeReadlink    *ebpf.Program `ebpf:"weir_volume_readlink"`
	WeirVolumeFollow      *ebpf.Program `ebpf:"weir_volume_follow"`
	WeirVolumeWatch       *ebpf.Program `ebpf:"weir_volume_watch"`
	WeirVolumeMount       *ebpf.Program `ebpf:"weir_volume_mount"`
	WeirVolumeMoveMount   *ebpf.Program `ebpf:"weir_volume_move_mount"`
	WeirVolumesOpen       *ebpf.Program `ebpf:"weir_volumes_open"`
	WeirVolumesMapped     *ebpf.Program `ebpf:"weir_volumes_mapped"`
}

// names are those of their links.
func (h hooks) names() map[string]*ebpf.Program {
	return map[string]*ebpf.Program{
		"weir_volume_open": h.WeirVolumeOpen, "weir_volume_file": h.WeirVolumeFile, "weir_volume_create": h.WeirVolumeCreate,
		"weir_volume_mkdir": h.WeirVolumeMkdir, "weir_volume_mknod": h.WeirVolumeMknod, "weir_volume_symlink": h.WeirVolumeSymlink,
		"weir_volume_unlink": h.WeirVolumeUnlink, "weir_volume_rmdir": h.WeirVolumeRmdir, "weir_volume_link": h.WeirVolumeLink,
		"weir_volume_rename": h.WeirVolumeRename, "weir_volume_setattr": h.WeirVolumeSetattr, "weir_volume_setxattr": h.WeirVolumeSetxattr,
		"weir_volume_removexattr": h.WeirVolumeRemovexattr, "weir_volume_getxattr": h.WeirVolumeGetxattr,
		"weir_volume_listxattr": h.WeirVolumeListxattr, "weir_volume_readlink": h.WeirVolumeReadlink,
		"weir_volume_follow": h.WeirVolumeFollow, "weir_volume_watch": h.WeirVolumeWatch, "weir_volume_mount": h.WeirVolumeMount, "weir_volume_move_mount": h.WeirVolumeMoveMount,
	}
}

// Load makes or adopts the pinned maps, and puts in force what is on disk. It attaches nothing.
func Load(o Options) (*Volumes, error) {
	v := &Volumes{opts: o, known: map[string]*Volume{}, keys: map[volumesVolumeKey]uint32{}, changed: make(chan struct{}, 1)}
	var err error
	if v.pins, err = bpfobj.Load("volumes", &v.objects, loadVolumes, bpfobj.Options{PinDir: o.PinDir, Ring: o.Ring, Types: o.Types}); err != nil {
		return nil, err
	}
	if v.reader, err = ringbuf.NewReader(v.objects.VolumeRecords); err != nil {
		return nil, errors.Join(fmt.Errorf("open ring of volumes: %w", err), v.Close())
	}
	if err := v.adopt(); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	o.State.CarriedBy(v.carried)
	v.opts.Types = nil // they are large
	return v, nil
}

// prepare loads the programs of Attach: a fifth of all that there is to load, and most machines share no directory.
func (v *Volumes) prepare() error {
	v.hooking.Lock()
	defer v.hooking.Unlock()
	if v.hooks.WeirVolumeOpen != nil {
		return nil
	}
	_, err := bpfobj.Load("volumes", &v.hooks, loadVolumes, bpfobj.Options{Ring: v.opts.Ring, With: &v.objects.volumesMaps})
	return err
}

// Attach puts the programs in force, if there is a volume. It may be called again.
func (v *Volumes) Attach() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) == 0 {
		return nil
	}
	return v.attach()
}

func (v *Volumes) attach() error {
	if err := v.prepare(); err != nil {
		return err
	}
	v.hooking.Lock()
	defer v.hooking.Unlock()
	for name, prog := range v.hooks.names() {
		if err := v.opts.State.Links.Trace(name, prog); err != nil {
			return err
		}
	}
	return nil
}

// Release lets go of what an earlier sensor has attached, if there is no volume.
func (v *Volumes) Release() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) > 0 {
		return nil
	}
	return v.opts.State.Links.Release(slices.Collect(maps.Keys(hooks{}.names()))...)
}

// Scan notes what guarded processes have open in volumes: what was opened before those were listed, or came with the process.
func (v *Volumes) Scan() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.scan()
}

func (v *Volumes) scan() error {
	if len(v.known) == 0 {
		return nil
	}
	if err := v.attach(); err != nil {
		return err
	}
	defer v.Wake()
	return errors.Join(iterate(v.hooks.WeirVolumesOpen), iterate(v.hooks.WeirVolumesMapped))
}

// iterate has a program see all that there is.
func iterate(prog *ebpf.Program) error {
	it, err := link.AttachIter(link.IterOptions{Program: prog})
	if err != nil {
		return fmt.Errorf("look for open files: %w", err)
	}
	defer it.Close()
	r, err := it.Open()
	if err == nil {
		_, err = io.Copy(io.Discard, r)
		err = errors.Join(err, r.Close())
	}
	if err != nil {
		return fmt.Errorf("look for open files: %w", err)
	}
	return nil
}

// Record is a process that was the first of its container to take taint from volumes, or to give them some.
type Record struct {
	Container uint64
	PID       int
	Start     uint64
	Comm      string
	Writes    bool
	Bits      taint.Bits
	volumes   uint64
}

// Of says whether it is about a volume.
func (r Record) Of(v Volume) bool { return r.volumes>>v.Index&1 != 0 }

// Watch gathers records until ctx ends. A reader that fails ends it with an error.
func (v *Volumes) Watch(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { v.reader.Close() })
	defer stop()
	err := bpfobj.ReadRing(ctx, v.reader, nil, func(raw *volumesVolumeRecord) {
		v.mu.Lock()
		if len(v.records) < maxRecords {
			v.records = append(v.records, Record{
				Container: raw.Container, PID: int(raw.Tgid), Start: raw.Start, Comm: bpfobj.Text(raw.Comm[:]), Writes: raw.Writes != 0,
				Bits: taint.Bits(raw.Taint), volumes: raw.Volumes,
			})
		}
		v.mu.Unlock()
		v.Wake()
	})
	if err != nil {
		return fmt.Errorf("volumes: %w", err)
	}
	return nil
}

// maxRecords bounds what waits to be told; taint is found without.
const maxRecords = 1024

// Changed tells that something may have changed.
func (v *Volumes) Changed() <-chan struct{} { return v.changed }

// Wake has Changed tell so.
func (v *Volumes) Wake() {
	select {
	case v.changed <- struct{}{}:
	default:
	}
}

// Records gives what Watch has gathered since the last time.
func (v *Volumes) Records() []Record {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := v.records
	v.records = nil
	return all
}

// Pins gives the names of its pinned maps.
func (v *Volumes) Pins() []string { return v.pins.Names() }

// Restore pins again what is not pinned any more.
func (v *Volumes) Restore() error { return v.pins.Restore(v.opts.PinDir) }

// MapStats tells how full the maps of volumes are.
func (v *Volumes) MapStats() ([]bpfobj.MapStat, error) {
	return bpfobj.MapStats(v.objects.Volumes, v.objects.VolumeUses, v.objects.VolumeRecords)
}

// Close ends Watch and lets go of maps and programs; what is pinned stays in force.
func (v *Volumes) Close() error {
	var errs []error
	v.close.Do(func() {
		if v.reader != nil {
			errs = append(errs, v.reader.Close())
		}
		for _, prog := range v.hooks.names() {
			errs = append(errs, prog.Close())
		}
		errs = append(errs, v.hooks.WeirVolumesOpen.Close(), v.hooks.WeirVolumesMapped.Close(), v.objects.WeirVolumeChange.Close(), v.objects.volumesMaps.Close())
	})
	return errors.Join(errs...)
}
