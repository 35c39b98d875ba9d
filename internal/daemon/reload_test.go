package daemon

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"weir/internal/policy"
)

// What weir mode said outlives the daemon.
func TestRecall(t *testing.T) {
	db, err := bbolt.Open(filepath.Join(t.TempDir(), "state.db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	m, err := openMemory(db)
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{memory: m, policies: newActivePolicy(policy.Default())}
	if err := d.recall(); err != nil || d.policies.Mode() != policy.Default().Mode {
		t.Errorf("nothing is stored: mode %q, %v", d.policies.Mode(), err)
	}
	if err := m.Put(keyMode, policy.Seal); err != nil {
		t.Fatal(err)
	}
	if err := d.recall(); err != nil || d.policies.Mode() != policy.Seal {
		t.Errorf("mode %q, %v", d.policies.Mode(), err)
	}
	if err := m.Put(keyMode, "open"); err != nil {
		t.Fatal(err)
	}
	if err := d.recall(); err == nil {
		t.Error("a mode that is none was taken up")
	}
}

// Only what denies more comes before it is logged.
func TestStrict(t *testing.T) {
	var got []int
	for _, m := range []policy.Mode{policy.Observe, policy.Enforce, policy.Seal} {
		got = append(got, strict(m))
	}
	if diff := cmp.Diff([]int{0, 1, 2}, got); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

// A change of what is opened at the start needs a new one.
func TestReloadRefusesWhatNeedsAStart(t *testing.T) {
	for text, want := range map[string]string{
		"announce: {url: 'https://alerts.example.com/', key_env: WEIR_TEST_UNSET}": "announce: changed: restart the sensor for that",
		"metrics: {listen: off}":    "metrics: changed: restart the sensor for that",
		"events: {file: /tmp/none}": "events: changed: restart the sensor for that",
	} {
		p, err := policy.Parse("p", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		d := &daemon{policies: newActivePolicy(policy.Default())}
		if err := d.replacePolicy(p); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
