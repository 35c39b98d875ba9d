package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"weir/internal/control"
	"weir/internal/daemon"
	"weir/internal/event"
	"weir/internal/metrics"
)

// healthTime is how long the sensor may take for an answer.
const healthTime = 5 * time.Second

func (s *system) healthCommand() *cobra.Command {
	var live bool
	cmd := &cobra.Command{
		Use:   "health",
		Short: "ask the sensor whether it enforces; for probes",
		Long: `Asks the metrics' socket whether the sensor enforces, and prints why it does not; with --live, whether it is alive. The exit code is 0 or 1.
It needs metrics.listen in the policy to be anything but off.`,
		Args: args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, want := "/readyz", "enforces"
			if live {
				path, want = "/healthz", "is alive"
			}
			h, ok, err := askHealth(cmd.Context(), filepath.Join(s.runDir, daemon.MetricsSocket), path)
			if err != nil {
				return err
			}
			if !ok {
				return detailed{fmt.Errorf("the sensor does not enforce: %s", strings.Join(h.Faults, "; ")), map[string]any{"health": h}}
			}
			return s.answer(h, func(w io.Writer) {
				fmt.Fprintf(w, "weir %s %s, mode %s\n", event.Visible(h.Version), want, event.Visible(h.Mode))
				for _, d := range h.Degraded {
					fmt.Fprintf(w, "degraded: %s\n", event.Visible(d))
				}
			})
		},
	}
	cmd.Flags().BoolVar(&live, "live", false, "whether it is alive, whatever is wrong")
	return cmd
}

func askHealth(ctx context.Context, socket, path string) (h metrics.Health, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://weir"+path, nil)
	if err != nil {
		return h, false, err
	}
	answer, err := client.Do(req)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return h, false, fmt.Errorf("no socket %s: the sensor does not run, or its policy has metrics.listen: off", socket)
	case errors.Is(err, os.ErrPermission):
		return h, false, errRoot
	case errors.Is(err, unix.ECONNREFUSED):
		return h, false, control.ErrNotRunning
	case errors.Is(err, context.DeadlineExceeded):
		return h, false, fmt.Errorf("the sensor does not answer for %v: look at its log, or restart it", healthTime)
	case err != nil:
		return h, false, fmt.Errorf("the sensor closed %s without an answer: it gives a guarded process none; else look at its log", socket)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&h); err != nil {
		return h, false, fmt.Errorf("what answers at %s is no sensor of this version (status %d): look at what listens there", socket, answer.StatusCode)
	}
	return h, answer.StatusCode == http.StatusOK, nil
}
