package gate

import (
	"testing"

	"weir/internal/event"
)

// G16: approving A never lets B run: what differs asks its own question.
func TestBoundToWhatWasAskedG16(t *testing.T) {
	tests := []struct {
		name string
		f    func(*Request)
	}{
		{"another container", func(r *Request) { r.Container.ID = "c2" }},
		{"another program", func(r *Request) { r.Process.Exe.Inode = 43 }},
		{"the same inode elsewhere", func(r *Request) { r.Process.Exe.Device = 9 }},
		{"other arguments", func(r *Request) { r.Process.Argv[1], r.Process.ArgvHash = "https://evil.example", 8 }},
		{"other arguments with the same hash", func(r *Request) { r.Process.Argv[1] = "https://evil.example" }},
		{"arguments cut otherwise", func(r *Request) { r.Process.Argv = []string{"curlhttps://", "example.org"} }},
		{"a dangerous variable", func(r *Request) { r.Process.Env = []string{"LD_PRELOAD"} }},
		{"another user", func(r *Request) { r.Process.UID = 0 }},
		{"another address", func(r *Request) { r.Destination.Address = "203.0.113.10" }},
		{"another port", func(r *Request) { r.Destination.Port = 80 }},
		{"another protocol", func(r *Request) { r.Destination.Protocol = "udp"; r.Destination.Port = 444 }},
		{"names", func(r *Request) { r.Destination.DNS = true }},
		{"no arguments known", func(r *Request) { r.Process.Argv = nil }},
		{"no hash", func(r *Request) { r.Process.ArgvHash = 0 }},
		{"no program known", func(r *Request) { r.Process.Exe = nil }},
		{"in memory only", func(r *Request) { r.Process.Exe.Memfd = true }},
		{"a file without a name", func(r *Request) { r.Process.Exe.Deleted = true }},
		{"incomplete arguments", func(r *Request) { r.Process.Truncated = true }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				a := r.ask(curl())
				b := r.ask(curl(retry, tt.f))
				p := r.Pending()
				if len(p) != 2 {
					t.Fatalf("%d questions; want 2", len(p))
				}
				a.leaves()
				r.answer(p[0].ID, true)
				b.blocks()
				b.leaves()
				r.ask(curl(retry, retry, tt.f)).blocks() // it cannot claim either
				if v := r.ask(curl(retry)).gives(Allow, Approved); v.Question != p[0].ID {
					t.Errorf("verdict: %+v", v)
				}
			})
		})
		// The other way round: the odd one was approved.
		t.Run(tt.name+", approved", func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.ask(curl(tt.f)).leaves()
				r.answer(r.one(), true)
				r.ask(curl(retry)).blocks()
				if v := r.ask(curl(tt.f)).gives(Allow, Approved); v.Question == "" {
					t.Errorf("verdict: %+v", v)
				}
			})
		})
	}
}

// One destination in several spellings is one question.
func TestDestinationSpelling(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ask(curl()).blocks()
		r.ask(curl(func(r *Request) { r.Destination.Address = "::ffff:203.0.113.9" })).blocks()
		r.ask(curl(func(r *Request) { r.Destination.Protocol = "6" })).blocks()
		if got := r.Pending()[0].Destination; got != (event.Destination{Address: "203.0.113.9", Port: 443, Protocol: "tcp"}) {
			t.Errorf("destination: %+v", got)
		}
		r.one()
		r.ask(curl(func(r *Request) { r.Destination = event.Destination{Address: "@bus", Protocol: "unix"} })).blocks()
		r.ask(curl(func(r *Request) { r.Destination = event.Destination{Address: "203.0.113.9", Protocol: "icmp"} })).blocks()
		if p := r.Pending(); len(p) != 3 {
			t.Errorf("%d questions; want 3", len(p))
		}
	})
}

// The same process is known again though its arguments were lost on the way.
func TestSameProcessWithoutArguments(t *testing.T) {
	lost := func(r *Request) { r.Process.Argv = nil }
	bubble(t, func(r *rig) {
		known, unknown := r.ask(curl()), r.ask(curl(lost))
		r.ask(curl(lost, retry)).blocks()
		p := r.Pending()
		if len(p) != 2 {
			t.Fatalf("%d questions; want 2", len(p))
		}
		r.answer(p[0].ID, true)
		known.gives(Allow, Approved)
		unknown.gives(Allow, Approved)
		// A reused pid is another process, and another image is another command.
		r.ask(curl(lost, func(r *Request) { r.Process.Start++ })).blocks()
		r.ask(curl(lost, func(r *Request) { r.Process.Exe.Inode++ })).blocks()
	})
}

// G9: arguments over the limit are asked about, counted, stored within bounds and
// bound to the one process.
func TestArgvLimitG9(t *testing.T) {
	const maxArgv = 32 << 10
	long := func(r *Request) { r.Process.Argv = append([]string{"curl"}, repeat("x", maxArgv)...) }
	bubble(t, func(r *rig) {
		c := r.ask(curl(long))
		r.ask(curl(long)).blocks()
		q := r.Pending()[0]
		if !q.Process.Truncated || q.Process.Claimed || len(q.Process.Argv) > maxArgv/2 {
			t.Errorf("stored %d arguments, truncated %v", len(q.Process.Argv), q.Process.Truncated)
		}
		r.wantCount(ArgvLimit, 2)
		c.leaves()
		r.ask(curl(long, retry)).blocks()
		if len(r.Pending()) != 2 {
			t.Error("another process joined")
		}
		// The part that is not stored counts too.
		r.ask(curl(long, func(r *Request) { r.Process.Argv[len(r.Process.Argv)-1] = "y" })).blocks()
		if len(r.Pending()) != 3 {
			t.Error("other arguments past the limit joined")
		}
	})
}

// A hash alone can be collided: two processes whose arguments are unknown share nothing.
func TestHashAloneBindsNothing(t *testing.T) {
	lost := func(r *Request) { r.Process.Argv = nil }
	bubble(t, func(r *rig) {
		r.ask(curl(lost)).leaves()
		r.answer(r.one(), true)
		r.ask(curl(lost, retry)).blocks()
		r.ask(curl(lost)).gives(Allow, Approved)
	})
}
