package bridge

import (
	"bufio"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// BenchmarkPaced asks 1,000 times a second, as nobody does, and tells the time between a request and its answer: half and 99 of 100 are
// below it.
func BenchmarkPaced(b *testing.B) {
	s := New(&host{asker: inside()}, quiet())
	path := filepath.Join(b.TempDir(), "b.sock")
	if err := s.Listen(path); err != nil {
		b.Fatal(err)
	}
	defer s.Close(within)
	conn, err := net.Dial("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	in, line := bufio.NewReader(conn), []byte(bash("1", "curl https://example.org | tar xz"))
	var took []time.Duration
	next := time.Now()
	for b.Loop() {
		next = next.Add(time.Millisecond)
		time.Sleep(time.Until(next))
		start := time.Now()
		conn.Write(line)
		if _, err := in.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
