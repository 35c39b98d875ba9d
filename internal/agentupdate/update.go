package agentupdate

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"weir/internal/strict"
	"weir/internal/toolguard"
)

// The limits, where Options name none.
const (
	MaxBytes = 128 << 20
	MaxTime  = 10 * time.Minute
	MaxStall = 30 * time.Second // without a byte
)

// Class says why an update was not made, for machines.
type Class string

// The classes.
const (
	Invalid   Class = "invalid"   // the arguments
	Source    Class = "source"    // an address that updates may not come from
	Transport Class = "transport" // no connection, or it broke
	Status    Class = "status"    // another than 200
	TooLarge  Class = "too_large"
	TooLate   Class = "timeout"
	Cancelled Class = "cancelled"
	Checksum  Class = "checksum"
	Disk      Class = "disk"
	Busy      Class = "busy"
	Off       Class = "off" // the kill switch
)

// Error is an update that was not made. Text is one line.
type Error struct {
	Class Class
	Text  string
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

func fail(c Class, format string, args ...any) error {
	return &Error{c, strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")}
}

// ClassOf is the class of an error of this package.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return Disk
}

// Options are what an Updater needs. Target must be set; zero limits are the package's.
type Options struct {
	Target    string            // absolute path of the file that is replaced
	Server    string            // host that updates may come from besides GitHub; empty: none
	Transport http.RoundTripper // nil: one of its own, which checks certificates against the system's
	Killed    func() bool       // asked again before the file is replaced; nil: never
	MaxBytes  int64
	Time      time.Duration // for all of it
	Stall     time.Duration // without a byte
}

// Updater replaces one file. Its methods may be called at the same time; one update is made at a time.
type Updater struct {
	opts   Options
	client http.Client
	create func(dir, pattern string) (file, error)
	busy   sync.Mutex
}

// New checks that the target is a file that only its owner can have changed. It must be there: nothing is installed where nothing was.
func New(o Options) (*Updater, error) {
	if !filepath.IsAbs(o.Target) {
		return nil, fmt.Errorf("agent's program %s: give an absolute path", o.Target)
	}
	if _, err := look(o.Target); err != nil {
		return nil, fmt.Errorf("agent's program %w", err)
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = MaxBytes
	}
	if o.Time <= 0 {
		o.Time = MaxTime
	}
	if o.Stall <= 0 {
		o.Stall = MaxStall
	}
	if o.Killed == nil {
		o.Killed = func() bool { return false }
	}
	if o.Transport == nil {
		o.Transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: o.Stall, MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true,
		}
	}
	u := &Updater{opts: o, create: createTemp}
	u.client = http.Client{Transport: o.Transport, CheckRedirect: u.redirect}
	return u, nil
}

// Target is the file that is replaced.
func (u *Updater) Target() string { return u.opts.Target }

// Args are what a call asks for: what of which sum. They say nothing of where it goes.
type Args struct {
	URL    string `json:"url"`
	SHA256 string `json:"sha256"` // 64 hexadecimal digits
}

// Parse reads the arguments of a call. An error is of the class Invalid.
func Parse(input json.RawMessage) (Args, error) {
	var a Args
	if err := strict.Decode(input, &a); err != nil {
		return Args{}, fail(Invalid, "agent_update: %v", err)
	}
	a.SHA256 = strings.ToLower(a.SHA256)
	switch sum, err := hex.DecodeString(a.SHA256); {
	case a.URL == "":
		return Args{}, fail(Invalid, "agent_update needs url as a text")
	case err != nil || len(sum) != sha256.Size:
		return Args{}, fail(Invalid, "agent_update needs sha256 as %d hexadecimal digits", 2*sha256.Size)
	}
	return a, nil
}

// Result is an update that was made.
type Result struct {
	Target  string `json:"target"`
	Old     string `json:"old,omitempty"` // where what was there before is now; empty if nothing was replaced
	SHA256  string `json:"sha256"`
	Bytes   int64  `json:"bytes"`   // downloaded
	Changed bool   `json:"changed"` // false: the file was that already, and nothing was downloaded
}

// Update downloads what a call asks for and puts it in the target's place. An error, which is an *Error, says why the target is as it was.
func (u *Updater) Update(ctx context.Context, a Args) (Result, error) {
	want, err := hex.DecodeString(a.SHA256)
	if err != nil || len(want) != sha256.Size {
		return Result{}, fail(Invalid, "agent_update needs sha256 as %d hexadecimal digits", 2*sha256.Size)
	}
	if err := toolguard.CheckUpdate(a.URL, u.opts.Server); err != nil {
		return Result{}, fail(Source, "update refused: %v", err)
	}
	if !u.busy.TryLock() {
		return Result{}, fail(Busy, "update refused: another one is being made; try again when it is done")
	}
	defer u.busy.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, u.opts.Time, errLong)
	defer cancel()
	old, err := look(u.opts.Target)
	if err != nil {
		return Result{}, fail(Disk, "update refused: %v", err)
	}
	r := Result{Target: u.opts.Target, SHA256: a.SHA256}
	if sum, err := sumOf(u.opts.Target); err != nil {
		return Result{}, fail(Disk, "update failed: read what is to be replaced: %v", err)
	} else if same(sum, want) {
		return r, nil
	}
	next, err := u.create(filepath.Split(u.opts.Target))
	if err != nil {
		return Result{}, fail(Disk, "update failed: make a file beside %s: %v", u.opts.Target, err)
	}
	defer next.discard()
	sum, n, err := u.download(ctx, a.URL, next)
	if err != nil {
		return Result{}, err
	}
	if r.Bytes = n; !same(sum, want) {
		return Result{}, fail(Checksum, "update refused: what was downloaded has the SHA-256 %x, not %s", sum, a.SHA256)
	}
	if err := next.finish(old); err != nil {
		return Result{}, fail(Disk, "update failed: write %s: %v", next.name(), err)
	}
	if u.opts.Killed() {
		return Result{}, fail(Off, "update refused: the operator has turned off every tool that changes something")
	}
	if err := ctx.Err(); err != nil {
		return Result{}, u.ended(ctx, err)
	}
	if r.Old, err = exchange(u.opts.Target, next.name()); err != nil {
		return Result{}, fail(Disk, "update failed: replace %s: %v", u.opts.Target, err)
	}
	r.Changed = true
	return r, nil
}

// same compares in a time that tells nothing of where sums differ.
func same(a, b []byte) bool { return subtle.ConstantTimeCompare(a, b) == 1 }
