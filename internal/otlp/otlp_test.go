package otlp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"

	"weir/internal/event"
	"weir/internal/policy"
	"weir/test/eventtest"
)

// An event is a record with its time, its severity, a text for people, what it is filed by and itself, of this node; kinds that are left out are not
// there.
func TestEvents(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	t.Setenv("NODE_NAME", "build-07")
	r := newRig(t)
	r.options.Policy.HeadersFile = write(t, "headers", "# of the tenant\nAuthorization: Bearer abc\nX-Scope-OrgID: 7\n")
	r.options.Policy.Without = []string{"exec"}
	at := time.Date(2026, 3, 1, 12, 0, 0, 5e6, time.UTC)
	for _, e := range []event.Event{
		{Time: at, Kind: event.Exec, Process: &event.Process{PID: 7}},
		{Time: at, Kind: event.Connect, Container: &event.Container{ID: "c1", Name: "web", Pod: "p", PodNamespace: "ns", Taint: []string{"secret"}}, Process: &event.Process{PID: 7, UID: 1000, Argv: []string{"cu\x1brl"}},
			Destination: &event.Destination{Address: "192.0.2.1", Port: 443, Protocol: "tcp"}, Verdict: &event.Decision{Decision: "deny", Reason: "tainted"}},
		{Time: at, Kind: event.Error, Message: "it failed"},
	} {
		if err := r.log.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	e, m := r.prepare(t)
	if err := e.carry(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(r.records) != 2 || counted(t, m) != "lost 0, sent 2" {
		t.Fatalf("%d records; %s", len(r.records), counted(t, m))
	}
	one, fields := r.records[0], values(r.records[0].GetAttributes())
	eventtest.Check(t, []byte(fields["weir.event"]))
	var whole event.Event
	if err := json.Unmarshal([]byte(fields["weir.event"]), &whole); err != nil || whole.Process.Argv[0] != "cu\x1brl" {
		t.Errorf("%v: %s", err, fields["weir.event"])
	}
	delete(fields, "weir.event")
	want := map[string]string{
		"weir.kind": "connect", "weir.container": "web", "weir.container.id": "c1", "weir.container.taint": "secret", "k8s.pod.name": "p", "k8s.namespace.name": "ns", "process.pid": "7", "process.real_user.id": "1000",
		"process.command_line": `$'cu\x1brl'`, "destination.address": "192.0.2.1", "destination.port": "443", "network.transport": "tcp", "network.type": "ipv4", "weir.decision": "deny", "weir.reason": "tainted",
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if one.GetTimeUnixNano() != uint64(at.UnixNano()) || one.GetEventName() != "weir.connect" || one.GetSeverityNumber() != logs.SeverityNumber_SEVERITY_NUMBER_INFO2 || !strings.HasPrefix(one.GetBody().GetStringValue(), "connect web[secret] ") {
		t.Errorf("%v", one)
	}
	if two := r.records[1]; two.GetSeverityNumber() != logs.SeverityNumber_SEVERITY_NUMBER_ERROR || two.GetBody().GetStringValue() != "error   - it failed" {
		t.Errorf("%v", two)
	}
	of := map[string]string{"service.name": "weir", "service.instance.id": "build-07", "host.name": "build-07", "k8s.node.name": "build-07", "deployment.environment.name": "test"}
	if diff := cmp.Diff(of, r.resource); diff != "" {
		t.Errorf("the resource, want - got +\n%s", diff)
	}
	if r.headers.Get("Authorization") != "Bearer abc" || r.headers.Get("X-Scope-OrgID") != "7" {
		t.Errorf("headers: %v", r.headers)
	}
}

// Figures have their names and labels; counts begin with the sensor, not with who sends them, and what was sent is among them.
func TestFigures(t *testing.T) {
	r := newRig(t)
	r.sensor.text = `# TYPE weir_start_time_seconds gauge
weir_start_time_seconds 1.7e+09
# TYPE weir_denials_total counter
weir_denials_total{hook="connect"} 12
weir_denials_total{hook="send"} 3
# TYPE weir_cop_request_duration_seconds histogram
weir_cop_request_duration_seconds_bucket{le="1"} 2
weir_cop_request_duration_seconds_bucket{le="+Inf"} 5
weir_cop_request_duration_seconds_sum 9
weir_cop_request_duration_seconds_count 5
`
	r.says(t, "one")
	e, m := r.prepare(t)
	if err := e.carry(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.send(t.Context()); err != nil {
		t.Fatal(err)
	}
	const began = 1.7e18
	sum := r.figures["weir_denials_total"].GetSum()
	if !sum.GetIsMonotonic() || sum.GetAggregationTemporality() != metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE || len(sum.GetDataPoints()) != 2 {
		t.Fatalf("%v", r.figures)
	}
	for _, p := range sum.GetDataPoints() {
		if want := map[string]float64{"connect": 12, "send": 3}[values(p.GetAttributes())["hook"]]; p.GetAsDouble() != want || p.GetStartTimeUnixNano() != began {
			t.Errorf("%v", p)
		}
	}
	h := r.figures["weir_cop_request_duration_seconds"].GetHistogram().GetDataPoints()[0]
	if h.GetCount() != 5 || h.GetSum() != 9 || !slices.Equal(h.GetBucketCounts(), []uint64{2, 3}) || h.GetStartTimeUnixNano() != began {
		t.Errorf("%v", h)
	}
	if g := r.figures["weir_start_time_seconds"].GetGauge().GetDataPoints(); len(g) != 1 || g[0].GetAsDouble() != 1.7e9 {
		t.Errorf("%v", g)
	}
	for _, p := range r.figures["weir_otel_events_total"].GetSum().GetDataPoints() {
		if want := map[string]float64{"sent": 1, "lost": 0}[values(p.GetAttributes())["result"]]; p.GetAsDouble() != want {
			t.Errorf("%v", p)
		}
	}
}

// An endpoint that is away loses nothing: events wait in the log, also over a new start, and come in order once it is there; people are told when
// it begins and ends.
func TestEndpointAway(t *testing.T) {
	r := newRig(t)
	r.status = func(string) int { return http.StatusServiceUnavailable }
	r.says(t, "one", "two")
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan string, 100)
	r.options.Policy.MetricsSeconds = 0
	r.options.Say = func(text string) { told <- text }
	ran := make(chan error)
	go func() { ran <- Run(ctx, r.options) }()
	if text := <-told; !strings.HasPrefix(text, "events: ") || !strings.Contains(text, "not this") {
		t.Errorf("told: %s", text)
	}
	r.says(t, "three")
	r.mu.Lock()
	r.status = func(string) int { return 0 }
	r.mu.Unlock()
	if text := <-told; text != "events: they go on" {
		t.Errorf("told: %s", text)
	}
	cancel()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	r.Close() // nobody listens
	r.says(t, "four")
	e, m := r.prepare(t)
	if err := e.carry(t.Context()); err == nil || !strings.Contains(event.Plain(err), "nobody listens there") {
		t.Errorf("to an endpoint that is away: %v", event.Plain(err))
	}
	if err := m.send(t.Context()); err == nil {
		t.Error("figures were sent to nobody")
	}
	if counted(t, m) != "lost 0, sent 0" {
		t.Error(counted(t, m))
	}
	next := newRig(t)
	r.options.Policy.Endpoint, r.options.Policy.CAFile = next.options.Policy.Endpoint, next.options.Policy.CAFile
	if e, _ = r.prepare(t); e.carry(t.Context()) != nil {
		t.Error("the endpoint is there")
	}
	if got := append(r.messages(t), next.messages(t)...); !slices.Equal(got, []string{"error   - one", "error   - two", "error   - three", "error   - four"}) {
		t.Errorf("%q", got)
	}
}

// A record that the endpoint does not take is lost alone, told and counted; where it takes none, nothing is passed over.
func TestRefused(t *testing.T) {
	r := newRig(t)
	e, m := r.prepare(t)
	r.status = func(string) int { return http.StatusBadRequest } // a wrong endpoint, say
	r.says(t, "one", "two", "poison", "three", "four", "five", "six")
	if err := e.carry(t.Context()); err == nil || e.at.Offset != 0 || counted(t, m) != "lost 0, sent 0" {
		t.Fatalf("%v, at %v, %s", err, e.at, counted(t, m))
	}
	if r.requests > 12 {
		t.Errorf("%d requests of which none is taken", r.requests)
	}
	r.status = func(body string) int {
		if strings.Contains(body, "poison") {
			return http.StatusRequestEntityTooLarge
		}
		return 0
	}
	if err := e.carry(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := r.messages(t)
	if len(got) != 6 || strings.Contains(strings.Join(got, ""), "poison") || counted(t, m) != "lost 1, sent 6" {
		t.Errorf("%q, %s", got, counted(t, m))
	}
	if len(r.said) != 1 || !strings.Contains(r.said[0], "the endpoint does not take 1 of 7") {
		t.Errorf("told: %q", r.said)
	}
	r.status, r.rejects = func(string) int { return 0 }, 2
	r.says(t, "a", "b", "c")
	if err := e.carry(t.Context()); err != nil || counted(t, m) != "lost 3, sent 7" || !strings.Contains(r.said[1], "too old") {
		t.Errorf("%v, %s, told: %q", err, counted(t, m), r.said)
	}
}

// Records that are all refused stop nothing where the endpoint takes the event that tells of them.
func TestRefusedInARow(t *testing.T) {
	r := newRig(t)
	e, m := r.prepare(t)
	r.status = func(body string) int {
		if strings.Contains(body, "poison") {
			return http.StatusBadRequest
		}
		return 0
	}
	for _, c := range []struct {
		says    []string
		counted string
		took    []string
	}{
		{[]string{"poison", "poison", "poison", "poison", "poison", "poison", "one"}, "lost 6, sent 2", []string{"lost    4 refused events lost, stage otlp", "error   - one"}},
		{[]string{"poison"}, "lost 7, sent 3", []string{"lost    1 refused events lost, stage otlp"}},
	} {
		r.records = nil
		r.says(t, c.says...)
		if err := e.carry(t.Context()); err != nil || counted(t, m) != c.counted || !slices.Equal(r.messages(t), c.took) {
			t.Errorf("%q: %v, %s, took %q", c.says, err, counted(t, m), r.messages(t))
		}
	}
	before := r.requests
	if err := e.carry(t.Context()); err != nil || r.requests != before {
		t.Errorf("sent again: %v, %d requests", err, r.requests-before)
	}
}

// What the log has lost, and lines that are no events, are told to the collector and counted.
func TestLosses(t *testing.T) {
	r := newRig(t)
	r.says(t, "one")
	e, m := r.prepare(t)
	e.at = event.Place{File: "rotated away", Offset: 9}
	f, err := os.OpenFile(r.sensor.file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("no event\n{}\n"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := e.carry(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"lost    1 log events lost, stage otlp", "error   - one", "lost    2 line events lost, stage otlp"}
	if diff := cmp.Diff(want, r.messages(t)); diff != "" || counted(t, m) != "lost 3, sent 3" {
		t.Errorf("%s; want - got +\n%s", counted(t, m), diff)
	}
	eventtest.Check(t, []byte(values(r.records[0].GetAttributes())["weir.event"]))
}

// Where nobody knows what was sent, only what is new enough is; where the state says it, all that follows.
func TestSince(t *testing.T) {
	r := newRig(t)
	r.options.Since = time.Hour
	for message, age := range map[string]time.Duration{"old": 2 * time.Hour, "new": time.Minute} {
		if err := r.log.Write(event.Event{Time: time.Now().Add(-age), Kind: event.Error, Message: message}); err != nil {
			t.Fatal(err)
		}
	}
	e, _ := r.prepare(t)
	if err := errors.Join(e.carry(t.Context()), e.store(), r.log.Write(event.Event{Time: time.Now().Add(-2 * time.Hour), Kind: event.Error, Message: "late"})); err != nil {
		t.Fatal(err)
	}
	e, _ = r.prepare(t)
	if err := e.carry(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.messages(t); !slices.Equal(got, []string{"error   - new", "error   - late"}) {
		t.Errorf("%q", got)
	}
}

// What is wrong is told at once, in one line that says what and where, and repeats no secret.
func TestBadFiles(t *testing.T) {
	r := newRig(t)
	open := write(t, "open", "A: b\n")
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*policy.OTLP)
		want   string
	}{
		"no endpoint":     {func(p *policy.OTLP) { p.Endpoint = "" }, "the policy has no otlp.endpoint: write one such as https://otel.example.org:4318"},
		"no headers":      {func(p *policy.OTLP) { p.HeadersFile = "/nowhere/h" }, "otlp.headers_file: read key: /nowhere/h: it does not exist: check the path"},
		"open headers":    {func(p *policy.OTLP) { p.HeadersFile = open }, "otlp.headers_file: read key: " + open + " is open to everybody: chmod 600 it, and make a new key if others could read it"},
		"no header":       {func(p *policy.OTLP) { p.HeadersFile = write(t, "h", "A: b\n\ntopsecret\n") }, "is no header: write NAME: VALUE"},
		"a header's name": {func(p *policy.OTLP) { p.HeadersFile = write(t, "h", "A b: topsecret\n") }, "line 1 of"},
		"no authority":    {func(p *policy.OTLP) { p.CAFile = "/nowhere/ca" }, "otlp.ca_file: /nowhere/ca: it does not exist: check the path"},
		"bad authority":   {func(p *policy.OTLP) { p.CAFile = open }, "otlp.ca_file: " + open + " has no certificate: write it in PEM, as BEGIN CERTIFICATE"},
		"bad certificate": {func(p *policy.OTLP) { p.CertFile, p.KeyFile = open, open }, "otlp.cert_file, otlp.key_file: "},
	} {
		o := r.options
		c.change(&o.Policy)
		err := Run(t.Context(), o)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if got := event.Plain(err); !strings.Contains(got, c.want) || strings.Contains(got, "\n") || strings.Contains(got, "topsecret") {
			t.Errorf("%s: %s", name, got)
		}
	}
	o := r.options
	o.State = t.TempDir()
	if err := os.WriteFile(o.State+"/place.json", []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "to send the whole log again") {
		t.Errorf("a bad place: %v", err)
	}
}
