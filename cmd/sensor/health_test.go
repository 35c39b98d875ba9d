package main

import (
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

func TestAskHealth(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "metrics.sock")
	if _, _, err := askHealth(t.Context(), socket, "/readyz"); err == nil || !strings.Contains(err.Error(), "the sensor does not run") {
		t.Error("without a sensor:", err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz":
			w.Write([]byte(`{"version":"v1","mode":"observe","faults":["the mode is observe: nothing is denied"]}`))
		case "/readyz":
			w.WriteHeader(http.StatusServiceUnavailable)
			w.Write([]byte(`{"version":"v1","mode":"observe","faults":["the mode is observe: nothing is denied"]}`))
		default:
			http.Error(w, "refused", http.StatusForbidden)
		}
	})}
	go server.Serve(l)
	defer server.Close()
	for path, want := range map[string]bool{"/healthz": true, "/readyz": false} {
		h, ok, err := askHealth(t.Context(), socket, path)
		if err != nil || ok != want || h.Mode != "observe" || len(h.Faults) != 1 {
			t.Errorf("%s: %+v, %v, %v", path, h, ok, err)
		}
	}
	if _, _, err := askHealth(t.Context(), socket, "/other"); err == nil || !strings.Contains(err.Error(), "403") {
		t.Error("refused:", err)
	}
}
