package otlp

import (
	"compress/gzip"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	collogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	colmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/policy"
)

// collector is an endpoint.
type collector struct {
	*httptest.Server

	mu       sync.Mutex
	status   func(body string) int // 0: 200
	rejects  int64
	requests int
	headers  http.Header
	resource map[string]string
	records  []*logs.LogRecord
	figures  map[string]*metrics.Metric
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{status: func(string) int { return 0 }, figures: map[string]*metrics.Metric{}}
	c.Server = httptest.NewTLSServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var body []byte
	unpacked, err := gzip.NewReader(r.Body)
	if err == nil {
		body, err = io.ReadAll(unpacked)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.requests++
	c.headers = r.Header
	if status := c.status(string(body)); status != 0 {
		http.Error(w, "not this", status)
		return
	}
	var answer proto.Message
	switch r.URL.Path {
	case "/in/v1/logs":
		var got collogs.ExportLogsServiceRequest
		err = proto.Unmarshal(body, &got)
		for _, of := range got.GetResourceLogs() {
			c.resource = values(of.GetResource().GetAttributes())
			for _, scope := range of.GetScopeLogs() {
				c.records = append(c.records, scope.GetLogRecords()...)
			}
		}
		reply := &collogs.ExportLogsServiceResponse{}
		if c.rejects > 0 {
			reply.PartialSuccess = &collogs.ExportLogsPartialSuccess{RejectedLogRecords: c.rejects, ErrorMessage: "too old"}
		}
		answer = reply
	case "/in/v1/metrics":
		var got colmetrics.ExportMetricsServiceRequest
		err = proto.Unmarshal(body, &got)
		for _, of := range got.GetResourceMetrics() {
			for _, scope := range of.GetScopeMetrics() {
				for _, m := range scope.GetMetrics() {
					c.figures[m.GetName()] = m
				}
			}
		}
		answer = &colmetrics.ExportMetricsServiceResponse{}
	default:
		http.NotFound(w, r)
		return
	}
	data, err2 := proto.Marshal(answer)
	if err != nil || err2 != nil {
		http.Error(w, fmt.Sprint(err, err2), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.Write(data)
}

// messages are those that it has, as the events themselves tell them.
func (c *collector) messages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, r := range c.records {
		all = append(all, r.GetBody().GetStringValue())
	}
	return all
}

func values(list []*common.KeyValue) map[string]string {
	all := map[string]string{}
	for _, kv := range list {
		all[kv.GetKey()] = kv.GetValue().GetStringValue()
	}
	return all
}

// sensor has a log and figures.
type sensor struct {
	control.Backend
	file string
	text string
}

func (s *sensor) Log(context.Context) (*event.Stored, error)     { return event.OpenStored(s.file) }
func (s *sensor) Metrics(context.Context) (string, error)        { return s.text, nil }
func (s *sensor) Status(context.Context) (control.Status, error) { return control.Status{}, nil }

type rig struct {
	*collector
	sensor  *sensor
	log     *event.FileSink
	options Options
	said    []string
}

// newRig is a collector, a sensor with an empty log, and what is needed to carry from one to the other.
func newRig(t *testing.T) *rig {
	t.Helper()
	dir := t.TempDir()
	r := &rig{collector: newCollector(t), sensor: &sensor{file: filepath.Join(dir, "events.jsonl")}}
	var err error
	if r.log, err = event.NewFileSink(r.sensor.file, 100, 5); err != nil {
		t.Fatal(err)
	}
	server, err := control.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- server.Serve(ctx, r.sensor, nil) }()
	t.Cleanup(func() { cancel(); <-served; r.log.Close() })
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})
	r.options = Options{
		Policy: policy.OTLP{Endpoint: r.URL + "/in/", CAFile: write(t, "ca.crt", string(authority)), MetricsSeconds: 1},
		Node:   "build-07", Sensor: control.NewClient(dir), State: t.TempDir(), Say: func(text string) { r.said = append(r.said, text) },
	}
	return r
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func (r *rig) prepare(t *testing.T) (*events, *meter) {
	t.Helper()
	e, m, err := prepare(t.Context(), r.options)
	if err != nil {
		t.Fatal(err)
	}
	return e, m
}

// says writes an event for each message.
func (r *rig) says(t *testing.T, messages ...string) {
	t.Helper()
	for _, m := range messages {
		if err := r.log.Write(event.Event{Kind: event.Error, Message: m}); err != nil {
			t.Fatal(err)
		}
	}
}

// counted is what the exporter says of itself.
func counted(t *testing.T, m *meter) string {
	t.Helper()
	families, err := m.own.Gather()
	if err != nil || len(families) != 1 {
		t.Fatal(families, err)
	}
	var all []string
	for _, one := range families[0].GetMetric() {
		all = append(all, fmt.Sprintf("%s %v", one.GetLabel()[0].GetValue(), one.GetCounter().GetValue()))
	}
	return strings.Join(all, ", ")
}
