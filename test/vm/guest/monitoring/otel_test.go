//go:build vmguest

package monitoring

import (
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	collogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	colmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"

	"weir/test/vm/guest/rig"
)

// collector keeps what it is sent; while it is busy it takes nothing.
type collector struct {
	mu      sync.Mutex
	busy    bool
	refused int
	kinds   map[string]int
	denied  map[string]string // reasons of verdicts, by question
	figures map[string]bool
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy {
		c.refused++
		http.Error(w, "busy", http.StatusServiceUnavailable)
		return
	}
	var body []byte
	unpacked, err := gzip.NewReader(r.Body)
	if err == nil {
		body, err = io.ReadAll(unpacked)
	}
	var logs collogs.ExportLogsServiceRequest
	var metrics colmetrics.ExportMetricsServiceRequest
	if r.URL.Path == "/v1/logs" && err == nil {
		err = proto.Unmarshal(body, &logs)
	} else if err == nil {
		err = proto.Unmarshal(body, &metrics)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, of := range logs.GetResourceLogs() {
		for _, scope := range of.GetScopeLogs() {
			for _, record := range scope.GetLogRecords() {
				fields := values(record.GetAttributes())
				c.kinds[fields["weir.kind"]]++
				if fields["weir.kind"] == "verdict" {
					c.denied[fields["weir.question"]] = fields["weir.reason"]
				}
			}
		}
	}
	for _, of := range metrics.GetResourceMetrics() {
		for _, scope := range of.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				c.figures[m.GetName()] = true
			}
		}
	}
}

func values(list []*common.KeyValue) map[string]string {
	all := map[string]string{}
	for _, kv := range list {
		all[kv.GetKey()] = kv.GetValue().GetStringValue()
	}
	return all
}

// TestOTel: weir-otel, as a user that may look and nothing else, sends every event of the log once, also those of when the collector was busy, and the
// figures.
func TestOTel(t *testing.T) {
	c := &collector{busy: true, kinds: map[string]int{}, denied: map[string]string{}, figures: map[string]bool{}}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	world := rig.NewOutside(t)
	sensor := rig.StartSensor(t, "control:\n  look: ['4242']\n")
	dir := "/run/otel"
	rig.Must(t, "rm -rf "+dir+" && install -d -m 700 -o 4241 -g 4241 "+dir)
	own := filepath.Join(dir, "policy.yaml")
	write(t, own, "otlp:\n  endpoint: "+server.URL+"\n  metrics_seconds: 1\n")
	if err := os.Chown(own, 4241, 4241); err != nil {
		t.Fatal(err)
	}
	start(t, &syscall.Credential{Uid: 4241, Gid: 4241, Groups: []uint32{4242}}, "weir-otel", "run", "--policy", own, "--state", dir+"/state")
	session, to := sensor.Guard(t, "agent", "--taint", "secret"), world.Raw(t)
	p := session.Start(t, to.Egress("tcp")...)
	question := sensor.Asked(t, to.About)
	rig.Eventually(t, "the busy collector was asked", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.refused > 1
	})
	sensor.Deny(t, question.ID)
	p.Wait(t)
	to.Nothing(t)
	c.mu.Lock()
	c.busy = false
	c.mu.Unlock()
	rig.Eventually(t, "the verdict and the figures have come", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.denied[question.ID] == "denied" && c.figures["weir_verdicts_total"] && c.figures["weir_otel_events_total"]
	})
	rig.Eventually(t, "the collector has the events of the log, each once", func() bool {
		want := map[string]int{}
		for _, e := range sensor.Events(t) {
			want[string(e.Kind)]++
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		return maps.Equal(c.kinds, want)
	})
}
