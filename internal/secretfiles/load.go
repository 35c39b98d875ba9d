package secretfiles

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/sirupsen/logrus"

	"weir/internal/bpfobj"
	"weir/internal/linux"
	"weir/internal/taint"
)

// Options are what Load needs. All but Types and Ring must be set.
type Options struct {
	Types  *taint.Types // for Load and Prepare
	PinDir string       // the same as State's
	Links  *bpfobj.Links
	Logger logrus.FieldLogger
	Ring   uint32 // bytes of the ring, see bpfobj.Options
}

// Files is the kernel side of secret files. Its methods may be called at the same time.
type Files struct {
	objects filesObjects // without its hooks
	hooks   hooks
	pins    bpfobj.Maps
	reader  *ringbuf.Reader
	opts    Options
	close   sync.Once
	hooking sync.Mutex // taken before all others
	asking  sync.Mutex // of the kernel's number for a descriptor
	setting sync.Mutex // taken before mu: one change at a time, though some wait

	mu      sync.Mutex
	lists   map[uint32]*list  // by policy slot
	roots   map[uint64]*root  // by mount namespace
	stale   bool              // the kernel has not all that was found
	untold  error             // of looks in other mount namespaces than this process's
	adopted filesSecretFilter // of an earlier sensor, until all its lists are set anew
}

// Load makes or adopts the pinned maps and loads what tells which inode a descriptor is. It attaches nothing.
func Load(o Options) (*Files, error) {
	f := &Files{opts: o, lists: map[uint32]*list{}, roots: map[uint64]*root{}}
	var first struct {
		filesMaps
		WeirInode *ebpf.Program `ebpf:"weir_inode"`
	}
	var err error
	if f.pins, err = bpfobj.Load("secret files", &first, loadFiles, bpfobj.Options{PinDir: o.PinDir, Ring: o.Ring, Types: o.Types}); err != nil {
		return nil, err
	}
	f.objects.filesMaps, f.objects.WeirInode = first.filesMaps, first.WeirInode
	if f.reader, err = ringbuf.NewReader(f.objects.SecretOpens); err != nil {
		return nil, errors.Join(fmt.Errorf("open ring of secret files: %w", err), f.Close())
	}
	if err := f.objects.SecretFilters.Lookup(uint32(0), &f.adopted); err != nil {
		return nil, errors.Join(fmt.Errorf("read filter of secret files: %w", err), f.Close())
	}
	return f, nil
}

// hooks are the programs that see files opened and handed over.
type hooks struct {
	WeirOpen        *ebpf.Program `ebpf:"weir_open"`
	WeirReceiveFile *ebpf.Program `ebpf:"weir_receive_file"`
	WeirLink        *ebpf.Program `ebpf:"weir_link"`
	WeirRename      *ebpf.Program `ebpf:"weir_rename"`
	WeirUnlink      *ebpf.Program `ebpf:"weir_unlink"`
	WeirFollowLink  *ebpf.Program `ebpf:"weir_follow_link"`
}

// names are those of their links.
func (h hooks) names() map[string]*ebpf.Program {
	return map[string]*ebpf.Program{"weir_open": h.WeirOpen, "weir_receive_file": h.WeirReceiveFile, "weir_link": h.WeirLink, "weir_rename": h.WeirRename,
		"weir_unlink": h.WeirUnlink, "weir_follow_link": h.WeirFollowLink}
}

// Prepare loads the programs of Attach.
func (f *Files) Prepare() error {
	f.hooking.Lock()
	defer f.hooking.Unlock()
	return f.prepare()
}

func (f *Files) prepare() error {
	if f.hooks.WeirOpen != nil {
		return nil
	}
	o := bpfobj.Options{Ring: f.opts.Ring, Types: f.opts.Types, With: &f.objects.filesMaps}
	if _, err := bpfobj.Load("secret files", &f.hooks, loadFiles, o); err != nil {
		return err
	}
	f.opts.Types = nil
	return nil
}

// Attach puts the programs in force, as netegress.Egress.Attach does. It may be called again.
func (f *Files) Attach() error {
	f.hooking.Lock()
	defer f.hooking.Unlock()
	if err := f.prepare(); err != nil {
		return err
	}
	for name, prog := range f.hooks.names() {
		if err := f.opts.Links.Trace(name, prog); err != nil {
			return err
		}
	}
	return nil
}

// Release lets go of what an earlier sensor has attached so. Nothing may be guarded.
func (f *Files) Release() error {
	return f.opts.Links.Release(slices.Collect(maps.Keys(hooks{}.names()))...)
}

// Settled is to be called once all lists have been set: what an earlier sensor has listed is over.
func (f *Files) Settled() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.adopted, f.stale = filesSecretFilter{}, true
	return f.filter()
}

// Watch tells of every secret file that taints. The kernel's bit is in force already. A reader that
// fails ends it with an error.
func (f *Files) Watch(ctx context.Context, set func(taint.Change) (taint.Status, error)) error {
	stop := context.AfterFunc(ctx, func() { f.reader.Close() })
	defer stop()
	err := bpfobj.ReadRing(ctx, f.reader, nil, func(raw *filesSecretOpen) {
		c, err := changeOf(raw)
		if err == nil {
			_, err = set(c)
		}
		if err != nil {
			f.opts.Logger.WithError(err).Error("tell of a secret file: what was tainted stays so")
		}
	})
	if err != nil {
		return fmt.Errorf("secret files: %w", err)
	}
	return nil
}

// verbs say how a file was had.
var verbs = map[filesSecretHow]string{
	filesSecretHowSECRET_OPENED: "opened", filesSecretHowSECRET_RECEIVED: "was handed", filesSecretHowSECRET_LINKED: "gave another name to",
	filesSecretHowSECRET_FOLLOWED: "followed the link", filesSecretHowSECRET_REMOVED: "removed a link to a secret file,",
	filesSecretHowSECRET_HANDLE: "opened by its handle, with no path that could be looked up,", filesSecretHowSECRET_DEEP: "opened, deeper than paths are looked up,",
}

// changeOf names the file as its file system does; … stands for more directories.
func changeOf(raw *filesSecretOpen) (taint.Change, error) {
	box, err := linux.CgroupPath(raw.Container)
	if err != nil {
		return taint.Change{}, err
	}
	var parts []string
	for _, name := range raw.Name[:min(int(raw.Shown), len(raw.Name))] {
		parts = append(parts, bpfobj.Text(name[:]))
	}
	slices.Reverse(parts)
	path := "/" + strings.Join(parts, "/")
	if raw.Cut != 0 {
		path = "…" + path
	}
	return taint.Change{
		Container: box, Bits: taint.Secret, Source: "file", By: fmt.Sprintf("%s (process %d)", bpfobj.Text(raw.Comm[:]), raw.Tgid),
		Why: verbs[raw.How] + " " + path, PID: int(raw.Tgid), Start: raw.Start,
	}, nil
}

// Pins gives the names of its pinned maps.
func (f *Files) Pins() []string { return f.pins.Names() }

// Restore pins again what is not pinned any more.
func (f *Files) Restore() error { return f.pins.Restore(f.opts.PinDir) }

// Close ends Run and lets go of maps and programs; what is pinned stays in force.
func (f *Files) Close() error {
	var errs []error
	f.close.Do(func() {
		if f.reader != nil {
			errs = append(errs, f.reader.Close())
		}
		for _, prog := range f.hooks.names() {
			errs = append(errs, prog.Close())
		}
		errs = append(errs, f.objects.Close())
	})
	return errors.Join(errs...)
}
