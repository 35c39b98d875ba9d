package taint

import (
	"encoding/json"
	"testing"
	"time"
)

// What a container may have changed since it was tainted counts from its first bit, also after a restart of the daemon (B24).
func TestFirstTaint(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0).UTC() }
	r := &record{}
	check := func(when string, bits Bits, first time.Time) {
		t.Helper()
		if r.Bits != bits || !r.Tainted.Equal(first) {
			t.Errorf("%s: %v since %v, want %v since %v", when, r.Bits, r.Tainted, bits, first)
		}
	}
	r.add(0, at(1))
	check("clean", 0, time.Time{})
	r.add(Corruption, at(2))
	check("tainted", Corruption, at(2))
	r.add(Corruption, at(3))
	r.add(Secret, at(4))
	check("tainted more", Corruption|Secret, at(2))
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	r = &record{}
	if err := json.Unmarshal(data, r); err != nil {
		t.Fatal(err)
	}
	r.add(Secret, at(5)) // what the kernel knows
	check("read again", Corruption|Secret, at(2))
	r.clear(Corruption)
	check("less", Secret, at(2))
	r.clear(Secret)
	check("clean again", 0, time.Time{})
	r.add(Secret, at(6))
	check("tainted again", Secret, at(6))

	// one that an older sensor stored
	r = &record{Bits: Secret, Since: at(7)}
	r.add(0, r.Since)
	check("without a time", Secret, at(7))
}

// What a runtime has deleted is forgotten after a day, what is called by a runtime's own id after a month, and what somebody named,
// never: it may be made again (B45).
func TestForgotten(t *testing.T) {
	now := time.Unix(1e9, 0)
	ago := func(days time.Duration) time.Time { return now.Add(-days * 24 * time.Hour) }
	id := Origin{Runtime: "docker", ID: "0123"}
	for _, c := range []struct {
		name string
		r    record
		want bool
	}{
		{"deleted", record{Deleted: ago(1)}, true},
		{"deleted just now", record{Deleted: now}, false},
		{"a runtime's", record{Container: Container{Origin: id}, Gone: ago(30)}, true},
		{"a runtime's, gone for some days", record{Container: Container{Origin: id}, Gone: ago(29)}, false},
		{"a runtime's, not known to be gone", record{Container: Container{Origin: id}}, false},
		{"with a name", record{Gone: ago(1000)}, false},
		{"there", record{Container: Container{CgroupID: 7, Origin: id}, Deleted: ago(40), Gone: ago(40)}, false},
	} {
		if got := c.r.over(now); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
