package container

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/sirupsen/logrus"
	"go.etcd.io/bbolt"

	"weir/internal/event"
	"weir/internal/policy"
	"weir/internal/taint"
)

// TestWaits: nothing waits for other machines where a container has no process yet, and it has what is known of it.
func TestWaits(t *testing.T) {
	db, err := bbolt.Open(filepath.Join(t.TempDir(), "db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	state, err := taint.NewMemory(map[string]uint64{"/none": 1}).Open(db, logger)
	if err != nil {
		t.Fatal(err)
	}
	k := New(Options{
		Policy: policy.Default, Parents: func() []string { return []string{"/none"} }, State: state, Log: func(event.Event) {}, Show: func(uint64, taint.Bits) event.Container { return event.Container{} },
		Elsewhere: func(_ taint.Origin, begins, wait bool) (taint.Bits, string) {
			if !begins || wait {
				t.Errorf("begins %t, wait %t", begins, wait)
			}
			return taint.Secret, "nobody tells"
		},
	})
	c := Container{Namespace: "default", ID: "c1", Spec: &specs.Spec{Linux: &specs.Linux{CgroupsPath: "/none/c1"}}}
	if _, err := k.take(c); err != nil {
		t.Fatal(err)
	}
	if bits := state.Stored(origin(c)); bits != taint.Secret {
		t.Errorf("it begins with %v", bits)
	}
}
