package agentupdate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"weir/internal/toolguard"
)

var (
	errLong  = errors.New("it took too long")
	errStall = errors.New("nothing came any more")
)

// refused is a redirect that is not followed.
type refused struct{ why error }

// Error implements error.
func (r refused) Error() string { return r.why.Error() }

// redirect holds every hop against the same rule as the first (K8).
func (u *Updater) redirect(next *http.Request, via []*http.Request) error {
	next.Header.Del("Referer") // what an address has as its query is no other host's to know
	hops := make([]string, 0, len(via)+1)
	for _, r := range append(via, next) {
		hops = append(hops, r.URL.String())
	}
	if err := toolguard.CheckHops(u.opts.Server, hops...); err != nil {
		return refused{err}
	}
	return nil
}

// download writes what is at an address, and gives its SHA-256 and length.
func (u *Updater) download(ctx context.Context, address string, to io.Writer) ([]byte, int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(u.opts.Stall, func() { cancel(errStall) })
	defer stall.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, 0, fail(Source, "update refused: the address cannot be read")
	}
	req.Header.Set("Accept-Encoding", "identity") // the sum is of what is stored
	req.Header.Set("User-Agent", "weir")
	resp, err := u.client.Do(req)
	if err != nil {
		return nil, 0, u.ended(ctx, err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode != http.StatusOK:
		return nil, 0, fail(Status, "update failed: %s answered %d", resp.Request.URL.Host, resp.StatusCode)
	case resp.ContentLength > u.opts.MaxBytes:
		return nil, 0, fail(TooLarge, "update refused: it has %d bytes, more than %d", resp.ContentLength, u.opts.MaxBytes)
	}
	hash := sha256.New()
	disk := &writer{to: io.MultiWriter(to, hash)}
	n, err := io.Copy(disk, &moving{io.LimitReader(resp.Body, u.opts.MaxBytes+1), stall, u.opts.Stall})
	switch {
	case disk.err != nil:
		return nil, 0, fail(Disk, "update failed: write: %v", disk.err)
	case err != nil:
		return nil, 0, u.ended(ctx, err)
	case n > u.opts.MaxBytes:
		return nil, 0, fail(TooLarge, "update refused: it has more than %d bytes", u.opts.MaxBytes)
	}
	return hash.Sum(nil), n, nil
}

// ended says why a download ended before it was whole.
func (u *Updater) ended(ctx context.Context, err error) error {
	var r refused
	switch cause := context.Cause(ctx); {
	case errors.As(err, &r):
		return fail(Source, "update refused: %v", r)
	case errors.Is(cause, errLong):
		return fail(TooLate, "update failed: it took longer than %v", u.opts.Time)
	case errors.Is(cause, errStall):
		return fail(TooLate, "update failed: nothing came for %v", u.opts.Stall)
	case cause != nil:
		return fail(Cancelled, "update cancelled: who asked for it is gone, or the sensor stops")
	}
	return fail(Transport, "update failed: download: %.300s", fmt.Sprintf("%q", err.Error()))
}

// writer keeps apart what the disk says from what the network says.
type writer struct {
	to  io.Writer
	err error
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.err = err
	return n, err
}

// moving puts off the stall with each byte.
type moving struct {
	io.Reader
	stall *time.Timer
	time  time.Duration
}

// Read implements io.Reader.
func (m *moving) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if n > 0 {
		m.stall.Reset(m.time)
	}
	return n, err
}
