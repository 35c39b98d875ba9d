package daemon

import (
	"context"
	"io"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"weir/internal/dns"
	"weir/internal/event"
	"weir/internal/exec"
	"weir/internal/gate"
	"weir/internal/netegress"
	"weir/internal/policy"
	"weir/internal/taint"
)

// newServing is a daemon without a kernel, which writes its events to a file.
func newServing(b *testing.B) *daemon {
	b.Helper()
	db, err := OpenStore(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	sink, err := event.NewFileSink(filepath.Join(b.TempDir(), "events.jsonl"), 10000, 1)
	if err != nil {
		b.Fatal(err)
	}
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	d := &daemon{log: newEventLog(sink), policies: newActivePolicy(policy.Default()), ctx: context.Background(), dns: &dns.Redirect{}}
	d.processes = &processCache{Ran: seen{Process: event.Process{PID: 1 << 22, Start: 123456789012345, Comm: "x", Exe: &event.File{Path: "/usr/bin/curl", Device: 65024, Inode: 1234}, Argv: []string{"curl", "http://10.77.0.2:7000/"}}}, Books: books{taint.Status{Container: taint.Container{ID: "g-one", Name: "one", Cgroup: "/weir/g-one", CgroupID: 7}}}}
	d.spaces = newMountSpaces(fake{}, func(func(taint.Container)) {}, func(string, error) {})
	b.Cleanup(func() { // before its directory is removed
		d.log.Flush()
		sink.Close()
	})
	d.log.Summarize(&taintSummaries{})
	if d.gate, err = gate.Open(gate.Options{DB: db, Log: d.log, Logger: logger, Approver: true}); err != nil {
		b.Fatal(err)
	}
	return d
}

// BenchmarkExecuted is what is done for a program that was executed and has ended, from what the record says to the line in the log.
func BenchmarkExecuted(b *testing.B) {
	for name, bits := range map[string]taint.Bits{"clean": 0, "tainted": taint.Secret} {
		b.Run(name, func(b *testing.B) {
			d := newServing(b)
			b.ReportAllocs()
			processorTime(b)
			for i := 1; b.Loop(); i++ {
				d.executed(exec.Command{Container: 7, Cgroup: 7, Taint: uint32(bits), Process: event.Process{
					PID: 1 << 22, Start: 123456789012345, Comm: "true", Exe: &event.File{Path: "/usr/bin/true", Device: 65024, Inode: 1234},
					Argv: []string{"/bin/true"}, ArgvHash: 1 << 60, NetNS: 4026531840, PidNS: 4026531836,
					Ancestry: []event.Ancestor{{PID: 4711, Start: 123456789000000, Comm: "weir-bench"}, {PID: 4700, Start: 123456780000000, Comm: "weir"}, {PID: 1, Start: 10, Comm: "init"}},
				}})
				settle(d, i)
			}
		})
	}
}

// BenchmarkRecorded is the same for a connect.
func BenchmarkRecorded(b *testing.B) {
	d := newServing(b)
	b.ReportAllocs()
	processorTime(b)
	for i := 1; b.Loop(); i++ {
		d.recorded(netegress.Record{
			Kind: netegress.Connected, Reason: "untainted", Container: 7,
			Process: netegress.Process{PID: 1 << 22, Start: 123456789012345, Comm: "weir-bench", Cgroup: 7},
			To:      netegress.Destination{Addr: netip.MustParseAddr("10.77.0.2"), Port: 7000, Proto: 6},
		})
		settle(d, i)
	}
}

// settle empties the log's queue now and then.
func settle(d *daemon, i int) {
	if i%64 == 0 {
		d.log.Flush()
	}
}

// processorTime reports what all threads of this process ran for each event: on a machine with other work it says more than the clock.
func processorTime(b *testing.B) {
	ran := func() int64 {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	before := ran()
	b.Cleanup(func() { b.ReportMetric(float64(ran()-before)/float64(b.N), "cpu-ns/op") })
}
