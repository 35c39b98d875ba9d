package gate

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// G16: everything at once, in real time: each approval is used at most once, and
// everybody gets a verdict.
func TestManyAtOnceG16(t *testing.T) {
	db, err := bbolt.Open(filepath.Join(t.TempDir(), "weir.db"), 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	g, err := Open(Options{DB: db, Log: &memory{}, Approver: true, AskFor: 200 * time.Millisecond, ClaimFor: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()

	var used sync.Map
	var decided, allowed, asked atomic.Int64
	var askers, people sync.WaitGroup
	stop := make(chan struct{})
	for i := range 4 {
		people.Go(func() {
			for {
				for _, q := range g.Pending() {
					if i == 3 {
						g.Configure(nil, true, 200*time.Millisecond, 50*time.Millisecond)
						g.Counters()
						continue
					}
					_, _ = g.Answer(q.ID, Reply{Allow: rand.IntN(2) == 0, By: "alice"})
				}
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
	for i := range 16 {
		askers.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 1))
			for range 40 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+rnd.IntN(60))*time.Millisecond)
				v := g.Decide(ctx, some(rnd))
				cancel()
				decided.Add(1)
				if v.Question != "" {
					asked.Add(1)
				}
				if v.Decision != Allow {
					continue
				}
				allowed.Add(1)
				if rnd.IntN(4) == 0 {
					_ = g.Release(v.Question)
					continue
				}
				if g.Consume(v.Question) == nil {
					if _, twice := used.LoadOrStore(v.Question, true); twice {
						t.Errorf("approval %s was used twice", v.Question)
					}
				}
			}
		})
	}
	askers.Wait()
	close(stop)
	people.Wait()

	var counted uint64
	for r, n := range g.Counters() {
		if r != Unclaimed && !beside(r) {
			counted += n
		}
	}
	if decided.Load() != 16*40 || counted != 16*40 || allowed.Load() == 0 || asked.Load() == 0 {
		t.Errorf("decided %d, counted %d, allowed %d, asked %d", decided.Load(), counted, allowed.Load(), asked.Load())
	}
}

// beside says whether a code is counted beside the verdict that follows from it.
func beside(r Reason) bool {
	return slices.ContainsFunc(Failures(), func(f Failure) bool { return f.Reason == r && f.Then == Person })
}
