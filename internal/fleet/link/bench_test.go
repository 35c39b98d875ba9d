package link

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/sys/unix"

	"weir/internal/event"
	"weir/internal/policy"
)

// hub is a server of NATS on loopback, with the stream.
func hub(b testing.TB) (*Servers, string) { return hubOf(b, server.MAX_PAYLOAD_SIZE) }

// hubOf is one that takes messages of so many bytes.
func hubOf(b testing.TB, most int32) (*Servers, string) {
	b.Helper()
	dir := b.TempDir()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: dir, MaxPayload: most, NoSigs: true, NoLog: true})
	if err != nil {
		b.Fatal(err)
	}
	go s.Start()
	b.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		b.Fatal("the server does not start")
	}
	p := policy.Fleet{Prefix: "weir", Servers: []string{fmt.Sprintf("nats://127.0.0.1:%d", s.Addr().(*net.TCPAddr).Port)}}
	servers, err := Connect(p, "bench", false, func(string) {})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(servers.Close)
	if err := servers.Init(b.Context(), Limits{Age: time.Hour, Bytes: 4 << 30, Replicas: 1}); err != nil {
		b.Fatal(err)
	}
	return servers, dir
}

// node is the publisher of a log, and what writes events to it.
func node(b testing.TB, s *Servers, name string) (*publisher, func(count int)) {
	b.Helper()
	file := filepath.Join(b.TempDir(), "events.jsonl")
	sink, err := event.NewFileSink(file, 10000, 5)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { sink.Close() })
	p, err := newPublisher(s, name, b.TempDir(), func(context.Context) (*event.Stored, error) { return event.OpenStored(file) })
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	return p, func(count int) {
		for range count {
			n++
			argv := []string{"/usr/bin/python3", "-m", "pytest", "-q", fmt.Sprintf("tests/test_%d.py", n%97), "--maxfail=1"}
			if err := sink.Write(event.Event{
				Time: time.Now().UTC(), Kind: event.Exec, Container: &event.Container{ID: "g-k3xqa5", Name: name, Cgroup: "/weir/g-k3xqa5", CgroupID: 81234, Taint: []string{"secret"}},
				Process: &event.Process{
					PID: 1000 + n%30000, Start: uint64(1234567890123 + n*7919), UID: 1000, Comm: "python3", Exe: &event.File{Path: "/usr/bin/python3.11", Device: 65024, Inode: 1311}, Argv: argv, ArgvHash: uint64(n) * 0x9e3779b97f4a7c15,
					Cgroup: "/weir/g-k3xqa5", Ancestry: []event.Ancestor{{PID: 90, Start: 1234, Comm: "bash", Argv: []string{"bash", "-c", "make test"}, Exe: "/usr/bin/bash", Inside: true}}, NetNS: 4026531840, PidNS: 4026531836,
				},
			}); err != nil {
				b.Error(err)
			}
		}
	}
}

func processor() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // it cannot fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func size(b *testing.B, dir string) (total int64) {
	b.Helper()
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if info, err := e.Info(); err == nil && e.Type().IsRegular() {
			total += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return total
}

// BenchmarkSecond is what a second of 100 nodes with 100 events each costs: all links and the server, on loopback.
func BenchmarkSecond(b *testing.B) {
	const nodes, events = 100, 100
	s, dir := hub(b)
	var all []*publisher
	var writes []func(int)
	for i := range nodes {
		p, write := node(b, s, fmt.Sprintf("build-%02d", i))
		all, writes = append(all, p), append(writes, write)
	}
	round := func() {
		var links sync.WaitGroup
		for _, p := range all {
			links.Go(func() {
				if err := p.publish(b.Context()); err != nil {
					b.Error(err)
				}
			})
		}
		links.Wait()
	}
	var took time.Duration
	for b.Loop() {
		b.StopTimer()
		for _, write := range writes {
			write(events)
		}
		before := processor()
		b.StartTimer()
		round()
		took += processor() - before
	}
	total := float64(b.N * nodes * events)
	stream, err := s.js.Stream(b.Context(), s.events())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(took.Seconds()*1e3/float64(b.N), "cpu-ms/op")
	b.ReportMetric(total/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(stream.CachedInfo().State.Msgs)/b.Elapsed().Seconds(), "messages/s")
	b.ReportMetric(float64(stream.CachedInfo().State.Bytes)/total, "sent-B/event")
	b.ReportMetric(float64(size(b, dir))/total, "stored-B/event")
}

// BenchmarkCatchUp is what a link sends after an hour without a server, at 100 events a second.
func BenchmarkCatchUp(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		s, _ := hub(b)
		p, write := node(b, s, "build-07")
		write(3600 * 100)
		b.StartTimer()
		if err := p.publish(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
