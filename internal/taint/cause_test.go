package taint

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/event"
)

// F11: of each bit the first cause and the newest are kept, over a restart, until the bit is cleared; what an ancestor has counts too.
func TestF11Causes(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0).UTC() }
	set := func(r *record, bits Bits, s int64, why string, argv ...string) {
		c := Change{Bits: bits, Source: "file", By: "cat (process 7)", Why: why, Argv: argv}
		r.add(bits, at(s))
		r.because(bits, c.cause(at(s)))
	}
	cause := func(bit string, s int64, why string, argv ...string) event.Cause {
		return event.Cause{Bit: bit, At: at(s), Source: "file", By: "cat (process 7)", Why: why, Argv: argv}
	}
	r := &record{Container: Container{ID: "c1", Cgroup: "/weir/pod/c1", CgroupID: 3}}
	set(r, Secret, 10, "opened /a", "cat", "/a")
	set(r, Secret, 20, "opened /b", "cat", "/b")
	set(r, Corruption|Secret, 30, "opened /c", "cat", "/c")
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	r = &record{}
	if err := json.Unmarshal(data, r); err != nil {
		t.Fatal(err)
	}
	pod := &record{Container: Container{ID: "pod", Cgroup: "/weir/pod", CgroupID: 2}}
	set(pod, Corruption, 5, "opened /pod")
	other := &record{Container: Container{ID: "c2", Cgroup: "/weir/pod/c11", CgroupID: 4}}
	set(other, Secret, 1, "opened /other")
	removed := &record{Container: Container{ID: "old", Cgroup: "/weir"}}
	set(removed, Secret, 1, "opened /old")
	s := &State{containers: map[string]*record{"c1": r, "pod": pod, "c2": other, "old": removed}}
	check := func(when string, want ...event.Cause) {
		t.Helper()
		if diff := cmp.Diff(want, s.Causes("c1")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	check("tainted",
		cause("corruption", 5, "opened /pod"), cause("corruption", 30, "opened /c", "cat", "/c"),
		cause("secret", 10, "opened /a", "cat", "/a"), cause("secret", 30, "opened /c", "cat", "/c"))
	before := *r
	r.clear(Secret)
	check("a bit cleared", cause("corruption", 5, "opened /pod"), cause("corruption", 30, "opened /c", "cat", "/c"))
	if len(before.Causes) != 3 {
		t.Error("a copy has lost its causes")
	}
	set(r, Secret, 50, "opened /d")
	check("tainted again", cause("corruption", 5, "opened /pod"), cause("corruption", 30, "opened /c", "cat", "/c"), cause("secret", 50, "opened /d"))
	if got := s.Causes("nobody"); got != nil {
		t.Errorf("of an unknown container: %v", got)
	}
}
