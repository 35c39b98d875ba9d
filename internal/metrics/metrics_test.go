package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"weir/internal/control"
)

// fixed is a source that says always the same.
type fixed struct {
	snapshot Snapshot
	health   Health
}

func (f *fixed) Snapshot() Snapshot { return f.snapshot }
func (f *fixed) Health() Health     { return f.health }

func full() *fixed {
	n := func(n uint64) *uint64 { return &n }
	one := func(label string) map[string]uint64 { return map[string]uint64{label: 3} }
	return &fixed{
		Snapshot{
			Version: "1.2", Started: time.Unix(1700000000, 500000000), Containers: map[string]uint64{"none": 2, "both": 1}, Goroutines: 40,
			Verdicts: []Verdict{{"person", "allow", "approved", 5}, {"person", "deny", "denied", 6}}, Failures: one("cop_timeout"),
			Holds: n(7), Denials: one("connect"), Dropped: n(8), Waiting: n(2), Grants: one("made"), Open: n(1), Taints: one("file"),
			Events: one("exec"), Losses: []Loss{{"ring", "exec", 9}}, Refusals: one("rm_root"), Models: one("model_path"), Broken: one("taint"),
			Maps: []Use{{"cgroups", 4, 16384}}, Rings: []Use{{"execs", 128, 1 << 20}},
			Programs: []Program{{"weir_connect", 11, 1500 * time.Millisecond}},
			Cop: &Cop{
				Reviews: map[string]uint64{"flagged": 1, "passed": 2, "failed": 1}, Cached: 1, Failures: one("timeout"), Waiting: 4,
				Bounds: []time.Duration{10 * time.Millisecond, time.Second}, Latency: []uint64{2, 3, 1}, Took: 4500 * time.Millisecond,
			},
			Refused: true, Faulty: 2, Missing: []string{"tasks"},
		},
		Health{Version: "1.2", Mode: "enforce", Uptime: 60, Ready: true},
	}
}

// served starts a server on a Unix socket, and gives a client of it.
func served(t *testing.T, o Options) *http.Client {
	t.Helper()
	if o.Listen == "" {
		o.Listen = filepath.Join(t.TempDir(), "metrics.sock")
	}
	s, err := Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	at := s.Addr()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, at.Network(), at.String())
	}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return &http.Client{Transport: transport}
}

func get(t *testing.T, c *http.Client, path string) (int, string) {
	t.Helper()
	r, err := c.Get("http://weir" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

func TestSeries(t *testing.T) {
	code, got := get(t, served(t, Options{Source: full()}), "/metrics")
	if code != http.StatusOK {
		t.Fatalf("%d: %s", code, got)
	}
	var lines []string
	for line := range strings.Lines(got) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	want := []string{
		`weir_approvals_waiting 2`,
		`weir_build_info{version="1.2"} 1`,
		`weir_collection_failed{part="tasks"} 1`,
		`weir_containers{taint="both"} 1`,
		`weir_containers{taint="none"} 2`,
		`weir_cop_cached_total 1`,
		`weir_cop_failures_total{code="timeout"} 3`,
		`weir_cop_request_duration_seconds_bucket{le="0.01"} 2`,
		`weir_cop_request_duration_seconds_bucket{le="1"} 5`,
		`weir_cop_request_duration_seconds_bucket{le="+Inf"} 6`,
		`weir_cop_request_duration_seconds_sum 4.5`,
		`weir_cop_request_duration_seconds_count 6`,
		`weir_cop_reviews_total{result="failed"} 1`,
		`weir_cop_reviews_total{result="flagged"} 1`,
		`weir_cop_reviews_total{result="passed"} 2`,
		`weir_cop_waiting 4`,
		`weir_denials_total{hook="connect"} 3`,
		`weir_dropped_packets_total 8`,
		`weir_enforcing 1`,
		`weir_events_total{kind="exec"} 3`,
		`weir_gate_failures_total{code="cop_timeout"} 3`,
		`weir_goroutines 40`,
		`weir_grants_open 1`,
		`weir_grants_total{state="made"} 3`,
		`weir_guard_refusals_total{rule="rm_root"} 3`,
		`weir_holds_total 7`,
		`weir_invariants_broken_total{invariant="taint"} 3`,
		`weir_lost_total{stage="ring",what="exec"} 9`,
		`weir_map_entries{map="cgroups"} 4`,
		`weir_map_entries_limit{map="cgroups"} 16384`,
		`weir_model_refusals_total{code="model_path"} 3`,
		`weir_policy_refused 1`,
		`weir_program_run_seconds_total{program="weir_connect"} 1.5`,
		`weir_program_runs_total{program="weir_connect"} 11`,
		`weir_ring_size_bytes{ring="execs"} 1.048576e+06`,
		`weir_ring_used_bytes{ring="execs"} 128`,
		`weir_rule_files_refused 2`,
		`weir_start_time_seconds 1.7000000005e+09`,
		`weir_taints_total{source="file"} 3`,
		`weir_verdicts_total{reason="approved",result="allow",tier="person"} 5`,
		`weir_verdicts_total{reason="denied",result="deny",tier="person"} 6`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

// What is not known is left out, and never shown as nothing.
func TestLeftOut(t *testing.T) {
	_, got := get(t, served(t, Options{Source: &fixed{snapshot: Snapshot{Version: "1"}}}), "/metrics")
	var names []string
	for name := range families(t, got) {
		names = append(names, name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"weir_build_info", "weir_enforcing", "weir_goroutines", "weir_policy_refused", "weir_rule_files_refused", "weir_start_time_seconds"}, names); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if !strings.Contains(got, "\nweir_enforcing 0\n") {
		t.Errorf("not ready, yet:\n%s", got)
	}
}

// What the control socket tells is what the port does.
func TestText(t *testing.T) {
	got, err := Text(full())
	if err != nil {
		t.Fatal(err)
	}
	_, want := get(t, served(t, Options{Source: full()}), "/metrics")
	if diff := cmp.Diff(families(t, want), families(t, got)); diff != "" || len(got) != len(want) {
		t.Errorf("%d and %d bytes: port - control socket +\n%s", len(want), len(got), diff)
	}
}

func TestNamesFollowConventions(t *testing.T) {
	_, got := get(t, served(t, Options{Source: full()}), "/metrics")
	problems, err := promlint.New(strings.NewReader(got)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// families gives the kind of each series that was exported.
func families(t *testing.T, text string) map[string]string {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	found, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for name, f := range found {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		all[name] = strings.ToLower(f.GetType().String()) + " " + strings.Join(labels, ", ")
	}
	return all
}

// docs/metrics.md lists what is exported: each series with its kind and labels.
func TestDocumentation(t *testing.T) {
	doc, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, got := get(t, served(t, Options{Source: full()}), "/metrics")
	rows := regexp.MustCompile("(?m)^\\| `(weir_[a-z_]+)` \\| ([a-z]+) \\| ([^|]*) \\| ([^|]+) \\| ([^|]+) \\|$")
	listed := map[string]string{}
	for _, row := range rows.FindAllStringSubmatch(string(doc), -1) {
		listed[row[1]] = row[2] + " " + strings.TrimSpace(row[3])
	}
	if diff := cmp.Diff(families(t, got), listed); diff != "" {
		t.Errorf("exported - docs/metrics.md +\n%s", diff)
	}
	if n := len(newSeries()); n != len(listed) {
		t.Errorf("%d series are declared, %d shown: the test's snapshot lacks some", n, len(listed))
	}
}

func TestProbes(t *testing.T) {
	bad := Health{Version: "1.2", Mode: "enforce", Uptime: 60, Faults: []string{"the pins are gone"}, Degraded: []string{"no DNS"}}
	for _, c := range []struct {
		health Health
		path   string
		want   int
	}{
		{full().health, "/healthz", http.StatusOK},
		{full().health, "/readyz", http.StatusOK},
		{bad, "/healthz", http.StatusOK},
		{bad, "/readyz", http.StatusServiceUnavailable},
		{Health{}, "/readyz", http.StatusServiceUnavailable}, // nothing known is not ready
	} {
		code, body := get(t, served(t, Options{Source: &fixed{health: c.health}}), c.path)
		if code != c.want {
			t.Errorf("%s of %+v: %d, want %d", c.path, c.health, code, c.want)
		}
		var got Health
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatalf("%s: %v: %s", c.path, err, body)
		}
		want := c.health
		want.Faults, want.Degraded = append([]string{}, want.Faults...), append([]string{}, want.Degraded...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s, want - got +\n%s", c.path, diff)
		}
	}
}

func TestOtherRequests(t *testing.T) {
	c := served(t, Options{Source: full()})
	if code, _ := get(t, c, "/debug/pprof/"); code != http.StatusNotFound {
		t.Errorf("another path: %d", code)
	}
	r, err := c.Post("http://weir/metrics", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a POST: %d", r.StatusCode)
	}
}

// G17: guarded processes get nothing, by whichever way they connect.
func TestB27GuardedAreRefusedG17(t *testing.T) {
	guarded := errors.New("guarded")
	type pair struct{ from, to netip.AddrPort }
	var pid atomic.Int64
	var socket atomic.Value // of pair
	for name, o := range map[string]Options{
		"unix": {Peers: control.PeerRules{Process: func(p int) error { pid.Store(int64(p)); return guarded }}},
		"port": {Listen: "127.0.0.1:0", Peers: control.PeerRules{Socket: func(local, remote netip.AddrPort) error { socket.Store(pair{local, remote}); return guarded }}},
	} {
		o.Source = full()
		if r, err := served(t, o).Get("http://weir/metrics"); err == nil {
			r.Body.Close()
			t.Errorf("%s: answered with %d", name, r.StatusCode)
		}
	}
	if got := pid.Load(); got != int64(os.Getpid()) {
		t.Errorf("the peer was taken for process %d", got)
	}
	if got, ok := socket.Load().(pair); !ok || !got.from.Addr().IsLoopback() || got.to.Port() == 0 || got.from == got.to {
		t.Errorf("the peer was taken for %v", got)
	}
	for name, o := range map[string]Options{
		"unix": {Peers: control.PeerRules{Process: func(int) error { return nil }}},
		"port": {Listen: "127.0.0.1:0", Peers: control.PeerRules{Socket: func(netip.AddrPort, netip.AddrPort) error { return nil }}},
	} {
		o.Source = full()
		if code, _ := get(t, served(t, o), "/metrics"); code != http.StatusOK {
			t.Errorf("%s: who is not guarded got %d", name, code)
		}
	}
}

// stuck is a source that waits until it is let go, as one whose disk does.
type stuck struct {
	fixed
	entered chan bool
	free    chan bool
}

func (s *stuck) Snapshot() Snapshot {
	s.entered <- true
	<-s.free
	return s.fixed.snapshot
}

// A sensor whose disk is stuck collects no scrapes without bound, and its probes still answer.
func TestStuck(t *testing.T) {
	s := &stuck{fixed: *full(), entered: make(chan bool), free: make(chan bool)}
	c := served(t, Options{Source: s})
	done := make(chan bool)
	for range maxScrapes {
		go func() {
			if r, err := c.Get("http://weir/metrics"); err == nil {
				r.Body.Close()
			}
			done <- true
		}()
		<-s.entered
	}
	if code, text := get(t, c, "/metrics"); code != http.StatusServiceUnavailable {
		t.Errorf("one more scrape: %d: %s", code, text)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, text := get(t, c, path); code != http.StatusOK {
			t.Errorf("%s: %d: %s", path, code, text)
		}
	}
	close(s.free)
	for range maxScrapes {
		<-done
	}
}

func TestSocketIsForRoot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.sock")
	served(t, Options{Listen: path, Source: full()})
	info, err := os.Stat(path)
	if err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestCannotListen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Listen(Options{Listen: file, Source: full()})
	if want := "listen for metrics: " + file + " is there and is no socket: remove it"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if _, err := Listen(Options{Listen: taken.Addr().String(), Source: full()}); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("a port that is taken: %v", err)
	}
}
