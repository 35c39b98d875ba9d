package secretfiles

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/sirupsen/logrus"

	"weir/internal/bpfobj"
	"weir/internal/linux"
	"weir/internal/taint"
)

// Options are what Load needs. All but Types and Ring must be set.
type Options struct {
	Types  *taint.Types // only for Load
	PinDir string       // the same as State's
	Links  *bpfobj.Links
	Logger logrus.FieldLogger
	Ring   uint32 // bytes of the ring, see bpfobj.Options
}

// Files is the kernel side of secret files. Its methods may be called at the same time.
type Files struct {
	objects filesObjects
	pins    bpfobj.Maps
	reader  *ringbuf.Reader
	opts    Options
	close   sync.Once
	asking  sync.Mutex // of the kernel's number for a descriptor
	setting sync.Mutex // taken before mu: one change at a time, though some wait

	mu      sync.Mutex
	lists   map[uint32]*list  // by policy slot
	roots   map[uint64]*root  // by mount namespace
	stale   bool              // the kernel has not all that was found
	untold  error             // of looks in other mount namespaces than this process's
	adopted filesSecretFilter // of an earlier sensor, until all its lists are set anew
}

// Load makes or adopts the pinned maps and loads the programs. It attaches nothing.
func Load(o Options) (*Files, error) {
	f := &Files{opts: o, lists: map[uint32]*list{}, roots: map[uint64]*root{}}
	var err error
	if f.pins, err = bpfobj.Load("secret files", &f.objects, loadFiles, bpfobj.Options{PinDir: o.PinDir, Ring: o.Ring, Types: o.Types}); err != nil {
		return nil, err
	}
	f.opts.Types = nil
	if f.reader, err = ringbuf.NewReader(f.objects.SecretOpens); err != nil {
		return nil, errors.Join(fmt.Errorf("open ring of secret files: %w", err), f.Close())
	}
	if err := f.objects.SecretFilters.Lookup(uint32(0), &f.adopted); err != nil {
		return nil, errors.Join(fmt.Errorf("read filter of secret files: %w", err), f.Close())
	}
	return f, nil
}

// Attach puts the programs in force. All lists have been set by then.
func (f *Files) Attach() error {
	for name, prog := range map[string]*ebpf.Program{
		"weir_open": f.objects.WeirOpen, "weir_receive_file": f.objects.WeirReceiveFile,
		"weir_link": f.objects.WeirLink, "weir_rename": f.objects.WeirRename,
	} {
		if err := f.opts.Links.Pin(name, func() (link.Link, error) {
			return link.AttachTracing(link.TracingOptions{Program: prog})
		}); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.adopted, f.stale = filesSecretFilter{}, true
	return f.filter()
}

// Watch implements taint.Source: it tells of every secret file that taints. The kernel's bit is in force already. A reader that
// fails ends it with an error.
func (f *Files) Watch(ctx context.Context, set func(taint.Change) (taint.Status, error)) error {
	stop := context.AfterFunc(ctx, func() { f.reader.Close() })
	defer stop()
	var rec ringbuf.Record
	var raw filesSecretOpen
	for {
		err := f.reader.ReadInto(&rec)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read ring of secret files: %w", err)
		}
		if err := bpfobj.Record(&raw, rec.RawSample); err != nil {
			return fmt.Errorf("decode secret file: %w", err)
		}
		c, err := changeOf(&raw)
		if err == nil {
			_, err = set(c)
		}
		if err != nil {
			f.opts.Logger.WithError(err).Error("tell of a secret file: what was tainted stays so")
		}
	}
}

// verbs say how a file was had.
var verbs = map[filesSecretHow]string{
	filesSecretHowSECRET_OPENED: "opened", filesSecretHowSECRET_RECEIVED: "was handed", filesSecretHowSECRET_LINKED: "gave another name to",
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
		errs = append(errs, f.objects.Close())
	})
	return errors.Join(errs...)
}
