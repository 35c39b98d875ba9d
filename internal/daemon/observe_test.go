package daemon

import (
	"testing"

	"weir/internal/netegress"
)

// What finds no room on its way to the log is counted, to the last one, and nobody waits for it (B31).
func TestRecordsQueue(t *testing.T) {
	const count = 5
	d := &daemon{records: make(chan netegress.Record, 2), lost: map[string]uint64{}}
	for range count {
		d.Recorded(netegress.Record{})
	}
	if lost := d.lost["queue"]; lost == 0 || lost+uint64(len(d.records)) != count {
		t.Errorf("%d wait and %d are counted as lost of %d", len(d.records), lost, count)
	}
}
