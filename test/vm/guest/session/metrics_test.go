//go:build vmguest

package session

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/test/vm/guest/rig"
)

const metricsAt = "/run/weir/metrics.sock"

// figures asks the sensor over its socket.
func figures(t *testing.T, path string) (int, string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", metricsAt)
	}}}
	r, err := client.Get("http://weir" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

// becomes waits until a probe answers so, and gives what it says.
func becomes(t *testing.T, path string, code int) string {
	t.Helper()
	for end := time.Now().Add(rig.Late); ; time.Sleep(200 * time.Millisecond) {
		got, text := figures(t, path)
		if got == code {
			return text
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %d, want %d: %s", path, got, code, text)
		}
	}
}

// All that is read from the kernel is there, ready means enforcing, and who is guarded reads nothing (B27, G17).
func TestMetrics(t *testing.T) {
	sensor := rig.StartSensor(t, "approver: none\n")
	becomes(t, "/readyz", http.StatusOK)
	clean, tainted := sensor.Guard(t, "clean"), sensor.Guard(t, "tainted", "--taint", "secret")
	for name, s := range map[string]*rig.Session{"clean": clean, "tainted": tainted} {
		if r := s.Run(t, "curl", "-sS", "-m", "20", "--unix-socket", metricsAt, "http://weir/healthz"); r.Exit == 0 || r.Stdout != "" {
			t.Errorf("the %s session got %s", name, r)
		}
	}
	if r := tainted.Run(t, "curl", "-sS", "-m", "20", "http://192.0.2.1/"); r.Exit == 0 {
		t.Errorf("a tainted connect: %s", r)
	}
	wants := []string{
		`weir_enforcing 1`, `weir_containers{taint="secret"} 1`, `weir_containers{taint="none"} 1`,
		`weir_denials_total{hook="(connect|unix)"} [1-9]\d*`, `weir_taints_total{source="guard"} 1`,
		`weir_map_entries{map="cgroups"} [3-9]`, `weir_map_entries_limit{map="cgroups"} 16384`,
		`weir_ring_size_bytes{ring="execs"} 2\.097152e\+06`, `weir_ring_used_bytes{ring="hold_reqs"} 0`, `weir_ring_used_bytes{ring="cgroup_events"} 0`,
		`weir_lost_total{stage="ring",what="exec"} 0`, `weir_verdicts_total{reason="untainted",result="allow",tier="taint"} [1-9]\d*`,
	}
	var text string
	lacks := func(want string) bool { return !regexp.MustCompile("(?m)^" + want + "$").MatchString(text) }
	// what was executed and sent is counted when the sensor has read of it
	for end := time.Now().Add(rig.Late); ; time.Sleep(200 * time.Millisecond) {
		text = becomes(t, "/metrics", http.StatusOK)
		if strings.Contains(text, "weir_collection_failed") {
			t.Errorf("a part could not be read: %s", text)
		}
		if !slices.ContainsFunc(wants, lacks) || time.Now().After(end) {
			break
		}
	}
	for _, want := range wants {
		if lacks(want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	// the kernel measures only when an operator has it do so
	const switched = "/proc/sys/kernel/bpf_stats_enabled"
	if strings.Contains(text, "weir_program_") {
		t.Error("programs are measured, though nobody switched that on")
	}
	if err := os.WriteFile(switched, []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.WriteFile(switched, []byte("0"), 0o600)
	clean.Run(t, "true")
	if text := becomes(t, "/metrics", http.StatusOK); !regexp.MustCompile(`(?m)^weir_program_runs_total{program="weir_exec"} [1-9]`).MatchString(text) {
		t.Errorf("no run of weir_exec in\n%s", text)
	}
	sensor.Must(t, "mode", "observe", "--why", "test")
	if text := becomes(t, "/readyz", http.StatusServiceUnavailable); !strings.Contains(text, "the mode is observe") {
		t.Error(text)
	}
	if code, _ := figures(t, "/healthz"); code != http.StatusOK {
		t.Errorf("alive: %d", code)
	}
	sensor.Must(t, "mode", "enforce", "--why", "test")
	becomes(t, "/readyz", http.StatusOK)
	sensor.Stop(t)
	sensor.Restart(t)
	becomes(t, "/readyz", http.StatusOK)
}
