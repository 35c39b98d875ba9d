package vm

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// However a VM ends, the host must know: a lost result would look like a passed test.
func TestMachine(t *testing.T) {
	host, err := NewHost(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kernels, err := Kernels(host.Repo)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, script string
		timeout      time.Duration
		exit         int
		output, err  string
	}{
		// The daemon that stays behind holds the output open.
		{"signal", "echo hello; sleep 1000 & kill -SEGV $$", time.Minute, 139, "hello\n", ""},
		{"time limit", "echo begun; sleep 1000", 20 * time.Second, 0, "begun\n", "no end after 20s: killed"},
		{"kernel panic", "echo c >/proc/sysrq-trigger; sleep 1000", time.Minute, 0, "", "kernel trouble: "},
		{"power off", "sync; busybox poweroff -f; sleep 1000", time.Minute, 0, "", "the VM left no status"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			exit, err := host.Run(t.Context(), Machine{
				Kernel: kernels[0], Args: []string{"bash", "-c", tt.script}, Timeout: tt.timeout, Out: t.TempDir(), Output: &out,
			})
			if exit != tt.exit || out.String() != tt.output {
				t.Errorf("exit %d, output %q, want %d, %q", exit, out.String(), tt.exit, tt.output)
			}
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("err = %v, want one with %q", err, tt.err)
			}
		})
	}
}
