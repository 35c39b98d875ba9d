package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"weir/internal/event"
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
		"notify: {url: 'https://alerts.example.com/', key_env: WEIR_TEST_UNSET}": "notify: changed: restart the sensor for that",
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

// TestF40Refused: a policy file that is refused is told to people, to probes and in figures; that it ends is tried with a sensor.
func TestF40Refused(t *testing.T) {
	var log bytes.Buffer
	degraded := []string{"no udp_diag"}
	d := &daemon{log: newEventLog(event.NewJSONSink(&log)), degraded: degraded, agents: new(bridgeHost)}
	c := collector{d}
	if got := c.degraded(); !slices.Equal(got, degraded) {
		t.Errorf("before: %q", got)
	}
	_, err := policy.Parse("p", []byte("mode: sael\nhold: x\n"))
	d.refused(err)
	r := d.refusal.Load()
	if r == nil || time.Since(r.Since) > time.Minute || len(r.Why) != 2 || !strings.HasPrefix(r.Why[0], "p:1:7: mode ") || !strings.HasPrefix(r.Why[1], "p:2:7: hold ") {
		t.Errorf("refusal: %+v", r)
	}
	if got := c.degraded(); len(got) != 2 || !strings.HasPrefix(got[1], "the policy file is refused") || len(degraded) != 1 {
		t.Errorf("after: %q", got)
	}
	_, err = os.ReadFile("/no/such/policy")
	d.refused(err)
	if r := d.refusal.Load(); !slices.Equal(r.Why, []string{"/no/such/policy: it does not exist: check the path"}) {
		t.Errorf("refusal: %+v", r)
	}
}
