package runner

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// cluster is an API server with one node and one pod.
type cluster struct {
	mu       sync.Mutex
	ready    bool
	started  bool // the container has a status
	taints   []taint
	version  int
	conflict int // patches to refuse
	forbid   bool
	observed int // generation of the DaemonSet, of 2; of its pods on 3 nodes, those that are ready
	pods     int
	asked    []string
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fail := func(code int, message string) {
		w.WriteHeader(code)
		json.NewEncoder(w).Encode(map[string]string{"kind": "Status", "message": message})
	}
	if r.Header.Get("Authorization") != "Bearer secret" {
		fail(http.StatusUnauthorized, "who are you?")
		return
	}
	request := r.Method + " " + r.URL.Path
	c.asked = append(c.asked, request)
	switch request {
	case "GET /api/v1/namespaces/weir/pods/weir-1":
		statuses := []any{}
		if c.started {
			statuses = append(statuses, map[string]any{"name": "node-ready", "ready": true}, map[string]any{"name": "weir", "ready": c.ready})
		}
		json.NewEncoder(w).Encode(map[string]any{"status": map[string]any{"containerStatuses": statuses}})
	case "GET /api/v1/nodes/n":
		json.NewEncoder(w).Encode(map[string]any{
			"metadata": map[string]any{"resourceVersion": fmt.Sprint(c.version), "labels": map[string]string{"a": "b"}},
			"spec":     map[string]any{"podCIDR": "10.0.0.0/24", "taints": c.taints},
		})
	case "PATCH /api/v1/nodes/n":
		var patch struct {
			Metadata struct{ ResourceVersion string }
			Spec     struct{ Taints []taint }
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &patch) != nil || r.Header.Get("Content-Type") != "application/merge-patch+json" {
			fail(http.StatusBadRequest, string(body))
			return
		}
		if c.forbid {
			fail(http.StatusForbidden, "nodes is forbidden")
			return
		}
		if c.conflict > 0 || patch.Metadata.ResourceVersion != fmt.Sprint(c.version) {
			c.conflict--
			c.version++
			fail(http.StatusConflict, "the object has been modified")
			return
		}
		c.taints = patch.Spec.Taints
		c.version++
		w.Write([]byte("{}"))
	case "GET /apis/apps/v1/namespaces/weir/daemonsets/weir-detach":
		json.NewEncoder(w).Encode(map[string]any{
			"metadata": map[string]any{"generation": 2},
			"status":   map[string]any{"observedGeneration": c.observed, "desiredNumberScheduled": 3, "numberReady": c.pods},
		})
	default:
		fail(http.StatusNotFound, request)
	}
}

func (c *cluster) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// until waits for the cluster to become so.
func (c *cluster) until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		c.mu.Lock()
		ok := done()
		c.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

func (c *cluster) tainted() bool {
	return slices.ContainsFunc(c.taints, func(t taint) bool { return t.Key == "weir/starting" })
}

// serve starts an API server, and KeepNode for as long as t runs; what it says is returned.
func serve(t *testing.T, c *cluster) func() string {
	t.Helper()
	o, said := options(t, c)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- KeepNode(ctx, o) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return said
}

// options start an API server, and find it; and there is what was said.
func options(t *testing.T, c *cluster) (NodeOptions, func() string) {
	t.Helper()
	server := httptest.NewTLSServer(c)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, data := range map[string]string{"ca.crt": string(ca), "token": "secret\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var said strings.Builder
	o := NodeOptions{
		Node: "n", Pod: "weir-1", Space: "weir", Name: "weir", Taint: "weir/starting", Every: 5 * time.Millisecond,
		Logf: func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(&said, format+"\n", args...)
		},
	}
	host, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "https://"), ":")
	env := map[string]string{"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
	if err := o.InCluster(func(name string) string { return env[name] }, dir); err != nil {
		t.Fatal(err)
	}
	return o, func() string {
		mu.Lock()
		defer mu.Unlock()
		return said.String()
	}
}

// The taint goes when the sensor is ready, comes back when it is not, and nothing else of the node changes.
func TestKeep(t *testing.T) {
	other := taint{Key: "other", Value: "v", Effect: "NoExecute", TimeAdded: "2026-01-01T00:00:00Z"}
	c := &cluster{taints: []taint{{Key: "weir/starting", Effect: "NoSchedule"}, other}, conflict: 2}
	said := serve(t, c)
	c.until(t, "it looks though the container has not started", func() bool { return len(c.asked) > 2 })
	c.set(func() {
		if !c.tainted() {
			t.Error("the taint went before the sensor was ready")
		}
		c.started, c.ready = true, true
	})
	c.until(t, "the taint goes", func() bool { return !c.tainted() })
	c.set(func() {
		if diff := cmp.Diff([]taint{other}, c.taints); diff != "" {
			t.Error("taints (-want +got):\n" + diff)
		}
		c.ready = false
	})
	c.until(t, "the taint comes back", c.tainted)
	c.set(func() {
		if diff := cmp.Diff([]taint{other, {Key: "weir/starting", Effect: "NoSchedule"}}, c.taints); diff != "" {
			t.Error("taints (-want +got):\n" + diff)
		}
		c.ready = true
	})
	c.until(t, "the taint goes again", func() bool { return !c.tainted() })
	if !strings.Contains(said(), "the object has been modified") || !strings.Contains(said(), "node n lost the taint weir/starting: its sensor enforces") {
		t.Errorf("it said %q", said())
	}
}

// What is refused is told once.
func TestForbidden(t *testing.T) {
	c := &cluster{started: true, ready: true, forbid: true, taints: []taint{{Key: "weir/starting", Effect: "NoSchedule"}}}
	said := serve(t, c)
	c.until(t, "it tries again", func() bool { return len(c.asked) > 12 })
	if want := "PATCH /api/v1/nodes/n: 403 Forbidden: nodes is forbidden\n"; said() != want {
		t.Errorf("it said %q, want %q", said(), want)
	}
}

// Pods that another generation of the set had do not count, and who is ended before all are ready says so.
func TestAwaitDaemonSet(t *testing.T) {
	c := &cluster{observed: 1, pods: 3}
	o, said := options(t, c)
	o.Name = "weir-detach"
	await := func(ctx context.Context) <-chan error {
		ended := make(chan error, 1)
		go func() { ended <- AwaitDaemonSet(ctx, o) }()
		return ended
	}
	ended := await(t.Context())
	c.until(t, "it looks again", func() bool { return len(c.asked) > 2 })
	if said() != "" {
		t.Errorf("it said %q of another generation", said())
	}
	c.set(func() { c.observed, c.pods = 2, 2 })
	want := "weir-detach: 2 of 3 nodes are done\n"
	c.until(t, "it tells of two", func() bool { return said() == want })
	c.set(func() { c.pods = 3 })
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if want += "weir-detach: 3 of 3 nodes are done\n"; said() != want {
		t.Errorf("it said %q, want %q", said(), want)
	}
	ctx, stop := context.WithCancel(t.Context())
	c.set(func() { c.pods = 1 })
	ended = await(ctx)
	want += "weir-detach: 1 of 3 nodes are done\n"
	c.until(t, "it tells of one", func() bool { return said() == want })
	stop()
	if err := <-ended; err == nil || err.Error() != "weir-detach: ended before every node was done" {
		t.Errorf("ended early: %v", err)
	}
}

func TestInCluster(t *testing.T) {
	var o NodeOptions
	if err := o.InCluster(func(string) string { return "" }, "/none"); err == nil {
		t.Error("outside a cluster one was found")
	}
	env := map[string]string{"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
	if err := o.InCluster(func(name string) string { return env[name] }, "/d"); err != nil || o.API != "https://[fd00::1]:443" || o.Token != "/d/token" {
		t.Errorf("got %+v, %v", o, err)
	}
	if err := KeepNode(t.Context(), o); err == nil {
		t.Error("it goes on without a certificate authority")
	}
}
