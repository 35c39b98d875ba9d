package modelproxy

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkFirstByte measures how long the first byte of an answer takes, of a request of 200 KiB, straight to the upstream and by the proxy, in turn: added-ms is
// the difference of the medians.
func BenchmarkFirstByte(b *testing.B) {
	r := newRig(b, func(o *Options) { o.Send = key }, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "x") })
	r.rate.SetLimit(1e9)
	body := talk(200 << 10)
	straight := r.upstream.Client()
	one := func(c *http.Client, base string) time.Duration {
		req, err := http.NewRequest(http.MethodPost, base+"/v1/messages", strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("X-Api-Key", mine)
		req.Header.Set("Content-Type", "application/json")
		begin := time.Now()
		resp, err := c.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil || resp.StatusCode != http.StatusOK {
			b.Fatal(resp.Status, err)
		}
		took := time.Since(begin)
		resp.Body.Close()
		return took
	}
	one(straight, r.upstream.URL)
	one(http.DefaultClient, "http://"+r.addr)
	var direct, by []time.Duration
	for b.Loop() {
		direct = append(direct, one(straight, r.upstream.URL))
		by = append(by, one(http.DefaultClient, "http://"+r.addr))
		r.mu.Lock()
		r.seen, r.body = nil, nil
		r.mu.Unlock()
	}
	slices.Sort(direct)
	slices.Sort(by)
	b.ReportMetric((by[len(by)/2]-direct[len(direct)/2]).Seconds()*1000, "added-ms")
	b.ReportMetric(by[len(by)/2].Seconds()*1000, "ms")
}
