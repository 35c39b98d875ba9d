package cop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// reviewer is a model of the test.
type reviewer func(ctx context.Context, c Case) (Opinion, error)

func (r reviewer) Review(ctx context.Context, c Case) (Opinion, error) { return r(ctx, c) }

// TestCacheG14: one verdict for equal cases, until its time is over.
func TestCacheG14(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		cop := build(t, Options{CacheFor: time.Minute, Model: reviewer(func(context.Context, Case) (Opinion, error) {
			asked++
			return Opinion{asked%2 == 1, fmt.Sprint("answer ", asked)}, nil
		})})
		review := func(k Case) Opinion {
			t.Helper()
			o, err := cop.Review(t.Context(), k)
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
		first := review(plain("./tool   --sync"))
		time.Sleep(59 * time.Second)
		if got := review(plain("./tool --sync\n")); got != first || asked != 1 {
			t.Errorf("%+v after %d requests, want the first answer", got, asked)
		}
		time.Sleep(time.Second)
		if got := review(plain("./tool --sync")); got == first || asked != 2 {
			t.Errorf("%+v after %d requests, want a new answer when the time is over", got, asked)
		}
		s := cop.Stats()
		if s.Calls != 3 || s.Hits != 1 || s.Asked != 2 || s.Flagged != 2 || s.Passed != 1 {
			t.Errorf("counted %+v", s)
		}
	})
}

// TestKey: whatever a reviewer can see makes another verdict, the layout of the text does not.
func TestKey(t *testing.T) {
	base := func() Case {
		c := plain("./tool --sync")
		c.Argv = []string{"./tool", "--sync"}
		c.Ancestry = []Process{{"bash", []string{"bash", "-c", "x"}}, {"agent", []string{"agent"}}}
		return c
	}
	normalKey := func(c Case) cacheKey {
		c.Command = normal(c.Command)
		return keyOf(c)
	}
	first := normalKey(base())
	for name, change := range map[string]func(*Case){
		"command":        func(c *Case) { c.Command = "./tool --sync2" },
		"quoted blanks":  func(c *Case) { c.Command = "./tool '--sync '" },
		"comment":        func(c *Case) { c.Command = "./tool --sync # approved" },
		"argv":           func(c *Case) { c.Argv = []string{"./tool --sync"} },
		"argv split":     func(c *Case) { c.Argv = []string{"./tool", "--sy", "nc"} },
		"truncated":      func(c *Case) { c.Truncated = true },
		"secret":         func(c *Case) { c.Taint.Secret = true },
		"corruption":     func(c *Case) { c.Taint.Corruption = false },
		"directory":      func(c *Case) { c.Dir = "/other" },
		"container":      func(c *Case) { c.Container = "b" },
		"image":          func(c *Case) { c.Image = "i" },
		"address":        func(c *Case) { c.Destination.Address = addr("192.0.2.1") },
		"port":           func(c *Case) { c.Destination.Port = 443 },
		"protocol":       func(c *Case) { c.Destination.Protocol = "udp" },
		"name":           func(c *Case) { c.Destination.Name = "example.com" },
		"ancestor":       func(c *Case) { c.Ancestry[0].Argv[2] = "cat f | ./tool" },
		"comm":           func(c *Case) { c.Ancestry[1].Comm = "other" },
		"ancestors":      func(c *Case) { c.Ancestry = c.Ancestry[:1] },
		"class":          func(c *Case) { c.Judged.Class++ },
		"facts":          func(c *Case) { c.Judged.Facts.Upload = true },
		"facts moved":    func(c *Case) { c.Judged.Facts.Hosts, c.Judged.Facts.URLs = []string{"a"}, nil },
		"rules":          func(c *Case) { c.Judged.Reasons = nil },
		"policy version": func(c *Case) { c.Policy = "p2" },
	} {
		c := base()
		change(&c)
		if normalKey(c) == first {
			t.Errorf("another %s has the same key", name)
		}
	}
	for _, text := range []string{"./tool   --sync", "./tool --sync\n", "\t./tool --sync", "./tool --sync ;"} {
		c := base()
		c.Command = text
		if normalKey(c) != first {
			t.Errorf("%q has another key", text)
		}
	}
}

// TestCacheSize: old verdicts make room.
func TestCacheSize(t *testing.T) {
	asked := 0
	cop := build(t, Options{CacheFor: time.Hour, CacheSize: 10, Model: reviewer(func(context.Context, Case) (Opinion, error) {
		asked++
		return Opinion{false, "r"}, nil
	})})
	for i := range 100 {
		if _, err := cop.Review(t.Context(), plain(fmt.Sprint("./tool ", i))); err != nil {
			t.Fatal(err)
		}
	}
	if n := cop.cache.Len(); n != 10 {
		t.Errorf("%d verdicts are kept, want 10", n)
	}
	for _, i := range []int{99, 0} {
		if _, err := cop.Review(t.Context(), plain(fmt.Sprint("./tool ", i))); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 101 {
		t.Errorf("asked %d times, want 101: the newest is kept, the oldest is not", asked)
	}
}

// TestSingleFlight: equal cases at the same time are one review; who leaves disturbs nobody.
func TestSingleFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		go1 := make(chan struct{})
		cop := build(t, Options{CacheFor: time.Minute, Model: reviewer(func(context.Context, Case) (Opinion, error) {
			asked.Add(1)
			<-go1
			return Opinion{false, "r"}, nil
		})})
		impatient, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var codes [20]Code
		for i := range codes {
			ctx := t.Context()
			if i == 0 {
				ctx = impatient
			}
			wg.Go(func() {
				if _, err := cop.Review(ctx, plain("./tool")); err != nil {
					codes[i] = CodeOf(err)
				}
			})
			synctest.Wait()
		}
		cancel()
		synctest.Wait()
		close(go1)
		wg.Wait()
		want := [20]Code{0: Cancelled}
		if diff := cmp.Diff(want, codes); diff != "" {
			t.Errorf("want - got +\n%s", diff)
		}
		if s := cop.Stats(); asked.Load() != 1 || s.Shared < 19 || s.Passed != 19 {
			t.Errorf("asked %d times, counted %+v", asked.Load(), s)
		}
	})
}

// TestStubbornG14: a reviewer that ignores its context costs its slot and nobody's time.
func TestStubbornG14(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		cop := build(t, Options{Concurrency: 1, Queue: 1, Timeout: time.Second, Model: reviewer(func(context.Context, Case) (Opinion, error) {
			<-end
			return Opinion{false, "late"}, nil
		})})
		for i := range 3 {
			if o, err := cop.Review(t.Context(), plain(fmt.Sprint("./tool ", i))); CodeOf(err) != Timeout || o != (Opinion{}) {
				t.Errorf("%+v, %v, want a timeout", o, err)
			}
		}
		close(end)
		synctest.Wait()
		if o, err := cop.Review(t.Context(), plain("./tool 0")); err != nil || o.Flagged {
			t.Errorf("afterwards %+v, %v", o, err)
		}
	})
}

// One container does not take the reviewer from the others.
func TestShareB155(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		var now, peak atomic.Int64
		cop := build(t, Options{Concurrency: 8, Timeout: time.Hour, Model: reviewer(func(_ context.Context, k Case) (Opinion, error) {
			if k.ID == "greedy" {
				defer now.Add(-1)
				peak.Store(max(peak.Load(), now.Add(1)))
				<-end
			}
			return Opinion{false, "fine"}, nil
		})})
		of := func(id string, i int) Case {
			k := plain(fmt.Sprint("./tool ", i))
			k.ID, k.Container = id, id
			return k
		}
		var wg sync.WaitGroup
		var refused atomic.Int64
		for i := range 200 {
			wg.Go(func() {
				if _, err := cop.Review(t.Context(), of("greedy", i)); CodeOf(err) == QueueFull {
					refused.Add(1)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if peak.Load() != 4 || refused.Load() != 200-4-32 {
			t.Errorf("%d ran at once, %d were refused", peak.Load(), refused.Load())
		}
		for i := range 20 {
			start := time.Now()
			if _, err := cop.Review(t.Context(), of("calm", i)); err != nil || time.Since(start) > 0 {
				t.Fatalf("another container: %v, after %v", err, time.Since(start))
			}
		}
		close(end)
		wg.Wait()
		synctest.Wait()
		if len(cop.shares) != 0 || cop.waiting.Load() != 0 {
			t.Errorf("left in the books: %d, %d wait", len(cop.shares), cop.waiting.Load())
		}
	})
}

// TestClose ends what runs and what waits.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cop := build(t, Options{Concurrency: 1, Model: reviewer(func(ctx context.Context, _ Case) (Opinion, error) {
			<-ctx.Done()
			return Opinion{}, ctx.Err()
		})})
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				if o, err := cop.Review(t.Context(), plain(fmt.Sprint("./tool ", i))); CodeOf(err) != Closed || o != (Opinion{}) {
					t.Errorf("%+v, %v, want closed", o, err)
				}
			})
		}
		synctest.Wait()
		cop.Close()
		wg.Wait()
	})
}

// TestForeignErrors: what a reviewer returns beside an opinion or an *Error is a failure as well.
func TestForeignErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Opinion
		err  error
		want Code
	}{
		{"an error of its own", Opinion{false, "r"}, errors.New("x"), Failed},
		{"its own deadline", Opinion{false, "r"}, context.DeadlineExceeded, Failed},
		{"no reason", Opinion{}, nil, Malformed},
		{"a blank reason", Opinion{false, "\n "}, nil, Malformed},
		{"an endless reason", Opinion{false, fmt.Sprintf("%2000d", 1)}, nil, Malformed},
	} {
		cop := build(t, Options{Model: reviewer(func(context.Context, Case) (Opinion, error) { return c.o, c.err })})
		if o, err := cop.Review(t.Context(), plain("./tool")); CodeOf(err) != c.want || err == nil || o != (Opinion{}) {
			t.Errorf("%s: %+v, %v, want %s", c.name, o, err, c.want)
		}
	}
}

func TestCodes(t *testing.T) {
	seen := map[Code]bool{}
	for _, code := range Codes {
		if seen[code] {
			t.Errorf("%s twice", code)
		}
		seen[code] = true
		cop := build(t, Options{Model: reviewer(func(context.Context, Case) (Opinion, error) { return Opinion{}, Fail(code, "x") })})
		if _, err := cop.Review(t.Context(), plain("./tool")); CodeOf(err) != code || cop.Stats().Failures[code] != 1 {
			t.Errorf("%s: %v, counted %v", code, err, cop.Stats().Failures)
		}
	}
}
