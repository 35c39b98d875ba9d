package container

import (
	"io"
	"maps"
	"path/filepath"
	"strings"
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

// A container is what the policy's label says, its own or its pod's; and without one its pod, or itself.
func TestAgentLabel(t *testing.T) {
	p := policy.Default()
	k := New(Options{Policy: func() policy.Policy { return p }})
	pod := map[string]string{podUIDLabel: "7c0f"}
	with := func(labels map[string]string, value string) map[string]string {
		all := maps.Clone(labels)
		if all == nil {
			all = map[string]string{}
		}
		all["weir.agent"] = value
		return all
	}
	is := func(labels map[string]string, want string) {
		t.Helper()
		if got := k.origin(Container{Namespace: "default", ID: "c1", Labels: labels}).Identity(); got != want {
			t.Errorf("%v is %q, want %q", labels, got, want)
		}
	}
	is(with(nil, "a1"), "default/c1")
	p.Fleet.Label = "weir.agent"
	is(nil, "default/c1")
	is(with(nil, "a1"), "agent a1")
	is(with(nil, strings.Repeat("x", maxAgent+1)), "default/c1")
	is(pod, "pod 7c0f")
	sandbox := Container{Namespace: "k8s.io", ID: "sandbox", Labels: with(pod, "a2"), Spec: &specs.Spec{Annotations: map[string]string{kindAnnotation: "sandbox"}}}
	seen := ""
	k.Parents = func() []string {
		seen = k.origin(Container{Namespace: "k8s.io", ID: "app", Labels: pod}).Identity()
		return nil
	}
	app := Container{Namespace: "k8s.io", ID: "app", Labels: pod, Spec: &specs.Spec{Linux: &specs.Linux{CgroupsPath: "/none/app"}}}
	k.each([]Container{app, sandbox}) // both are left alone
	if seen != "agent a2" {
		t.Errorf("a container that is listed before its pod's sandbox is %q", seen)
	}
	is(pod, "agent a2")
	is(with(pod, "a1"), "agent a1")
	k.stopped("k8s.io", "sandbox", false)
	is(pod, "agent a2")
	k.stopped("k8s.io", "sandbox", true)
	is(pod, "pod 7c0f")
	k.seen(sandbox)
	is(pod, "agent a2")
	k.connected(map[string]bool{}, nil)
	is(pod, "pod 7c0f")
	is(map[string]string{podUIDLabel: "another"}, "pod another")
}
