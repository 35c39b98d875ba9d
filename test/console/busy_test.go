package console

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/gate"
)

// busy is a sensor with 50 containers and 100 questions, that writes 5,000 events a second until the test ends; whatever it is asked has changed.
func busy(t testing.TB) (s *sensor, written func() int) {
	t.Helper()
	s = usual()
	s.keeps(t, "web-1")
	s.containers, s.questions = nil, nil
	for i := range 50 {
		s.containers = append(s.containers, control.Container{ID: fmt.Sprintf("c%d", i), Name: fmt.Sprintf("web-%d", i), Taint: []string{"secret"}, Since: cause().At, Live: true, Grants: []event.GrantInfo{{ID: 4}}})
		s.approvals = append(s.approvals, gate.StandingApproval{ID: fmt.Sprintf("sss%d", i), Adds: "what it adds", By: "alice", Bytes: 1 << 30})
	}
	for i := range 100 {
		s.questions = append(s.questions, asks(fmt.Sprintf("aaa%d", i), "example.org", "curl", fmt.Sprintf("https://example.org/%d", i)))
	}
	f, err := os.OpenFile(s.log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	sink, ends, n := event.NewJSONSink(f), make(chan struct{}), 0
	var writes sync.WaitGroup
	writes.Go(func() {
		defer f.Close()
		for tick := time.Tick(10 * time.Millisecond); ; {
			select {
			case <-tick:
			case <-ends:
				return
			}
			e := event.Event{Time: time.Now(), Kind: event.Exec, Container: &event.Container{ID: "c1", Name: "web-1"}}
			for i := range 50 {
				e.Process = &event.Process{PID: 281, UID: 1000, Comm: "gcc", Argv: []string{"gcc", "-c", fmt.Sprintf("more%d.c", i)}}
				if err := sink.Write(e); err != nil {
					t.Error(err)
				}
			}
			s.change(func() {
				n += 50
				for i := range s.containers {
					s.containers[i].By = fmt.Sprintf("cat (process %d)", n+i)
					s.approvals[i].Uses++
				}
			})
		}
	})
	t.Cleanup(func() { close(ends); writes.Wait() })
	return s, func() (all int) { s.change(func() { all = n }); return all }
}

// While 5,000 events come each second, each view is shown, the newest are found, and questions are answered by keys.
func TestBusy(t *testing.T) {
	s, written := busy(t)
	b := open(t, s)
	for i := range 10 {
		b.selects(fmt.Sprintf("aaa%d", i))
		b.key("a")
		b.sees(isOpen + `'confirm'`)
		b.key("y")
		b.sees(fmt.Sprintf(`!document.getElementById('q-aaa%d')`, i))
	}
	b.key("2")
	b.says("web-49")
	for written() < 201*50 { // one of fifty is searched for, and 200 are shown
		time.Sleep(10 * time.Millisecond)
	}
	b.key("4", "m", "o", "r", "e", "7", ".", "c", kb.Enter)
	b.says("200 events, newest first")
	b.key("5", "c", "1", kb.Enter)
	b.says("let through or done")
	b.key("1")
	b.selects("aaa10")
	if got := s.taken(); len(got) != 10 {
		t.Errorf("%+v", got)
	}
}

// BenchmarkBusy: how long the page takes to show what a key does, and how long no frame is drawn, while 5,000 events come each second and the
// page is sent all that it shows 20 times a second, 20 times as often as weir console sends it.
func BenchmarkBusy(b *testing.B) {
	s, written := busy(b)
	page := open(b, s)
	page.selects("aaa0")
	get[bool](page, `(() => {
		window.keys = [], window.gap = 0;
		new PerformanceObserver((l) => l.getEntries().forEach((e) => e.name === 'keydown' && keys.push(e.duration))).observe({ type: 'event', durationThreshold: 16 });
		let last = performance.now();
		const frame = (now) => { gap = Math.max(gap, now - last); last = now; requestAnimationFrame(frame); };
		requestAnimationFrame(frame);
		return true;
	})()`)
	began, first := time.Now(), written()
	for b.Loop() {
		for range 20 {
			page.key("j", "k")
			time.Sleep(50 * time.Millisecond)
		}
		page.key("4", kb.Escape)
		get[bool](page, `document.getElementById('search-text').value = 'more7', document.querySelector('#search form').requestSubmit(), true`)
		page.says("newest first")
		page.key("1")
	}
	events := float64(written()-first) / time.Since(began).Seconds()
	b.ReportMetric(events, "events/s")
	b.ReportMetric(get[float64](page, `Math.max(0, ...keys)`), "slowest-key-ms")
	b.ReportMetric(get[float64](page, `keys.sort((a, b) => a - b)[keys.length >> 1] ?? 0`), "median-key-ms") // of those above 16 ms
	b.ReportMetric(get[float64](page, `gap`), "longest-frame-ms")
}
