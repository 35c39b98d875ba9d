package gate

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"weir/internal/cop"
	"weir/internal/event"
)

// quiet is a log that keeps nothing.
type quiet struct{}

func (quiet) Write(event.Event) error { return nil }

func benchGate(b *testing.B, reviewer Reviewer) *Gate {
	b.Helper()
	db, err := bbolt.Open(filepath.Join(b.TempDir(), "weir.db"), 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	g, err := Open(Options{DB: db, Log: quiet{}, Approver: true, Reviewer: reviewer})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { g.Close(); db.Close() })
	return g
}

func static(b *testing.B) Reviewer {
	b.Helper()
	c, err := cop.New(cop.Options{CacheFor: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	return c
}

// benchRequests are decisions that need nobody, with the reason that each must have.
func benchRequests() map[string]struct {
	r    Request
	want Reason
} {
	seen := func(argv ...string) Request {
		return curl(func(r *Request) {
			r.Ask, r.Held = Run, false
			r.Process.Argv, r.Process.Exe = argv, &event.File{Path: "/usr/bin/" + argv[0], Device: 8, Inode: 42}
		})
	}
	clean := curl(func(r *Request) { r.Container.Taint = nil })
	return map[string]struct {
		r    Request
		want Reason
	}{
		"untainted": {clean, Untainted},
		"local":     {seen("grep", "-rn", "--include=*.go", "func main", "."), LocalRun},
		"sealed":    {seen("bash", "-c", "cd /work && go build ./... && go test ./... 2>&1 | tail -20"), SealedRun},
		"cached":    {curl(), Passed},
	}
}

// BenchmarkDecide: wanted are at most 2 µs untainted, 30 µs local, 50 µs with a cached review.
func BenchmarkDecide(b *testing.B) {
	for name, c := range benchRequests() {
		b.Run(name, func(b *testing.B) {
			g := benchGate(b, static(b))
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				if v := g.Decide(ctx, c.r); v.Reason != c.want {
					b.Fatalf("%+v, want %s", v, c.want)
				}
			}
		})
	}
}

// BenchmarkBusy decides a mixture while 50 questions wait, and reports the rate on one processor and the 99th percentile.
func BenchmarkBusy(b *testing.B) {
	g := benchGate(b, static(b))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for i := range 50 {
		r := curl(both, func(r *Request) { r.Container.ID, r.Destination.Port = fmt.Sprint("w", i), uint16(1000+i) })
		go g.Decide(ctx, r)
	}
	for len(g.Pending()) < 50 {
		time.Sleep(time.Millisecond)
	}
	var list []Request
	for _, c := range benchRequests() {
		list = append(list, c.r)
	}
	took := make([]time.Duration, 0, 1<<16)
	for i := 0; b.Loop(); i++ {
		begun := time.Now()
		g.Decide(ctx, list[i%len(list)])
		took = append(took, time.Since(begun))
	}
	if len(g.Pending()) != 50 {
		b.Fatalf("%d questions wait", len(g.Pending()))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "decisions/s")
}
