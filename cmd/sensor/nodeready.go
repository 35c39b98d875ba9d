package main

import (
	"maps"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/runner"
)

// accountDir is where Kubernetes puts a service account into a pod.
const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

func (s *system) nodeReadyCommand() *cobra.Command {
	var o runner.NodeOptions
	cmd := &cobra.Command{
		Use:   "node-ready",
		Short: "remove a Kubernetes node's taint while its sensor is ready",
		Long: `Removes a taint from the Kubernetes node while the sensor's container in this pod is ready, that is, enforces, and sets it while
it is not. It needs a service account that may get and patch nodes and get pods, and no other right. NODE_NAME, POD_NAME and
POD_NAMESPACE must name them.`,
		Args: args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.inCluster(cmd, &o, map[string]*string{"NODE_NAME": &o.Node, "POD_NAME": &o.Pod, "POD_NAMESPACE": &o.Space}); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return runner.KeepNode(ctx, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Name, "container", "weir", "`name` of the sensor's container in this pod")
	f.StringVar(&o.Taint, "taint", "weir/starting", "`key` of the node's taint")
	f.DurationVar(&o.Every, "every", 5*time.Second, "how often it looks")
	return cmd
}

// inCluster fills in where the API server is, and what variables of the environment name; cmd is who speaks.
func (s *system) inCluster(cmd *cobra.Command, o *runner.NodeOptions, names map[string]*string) error {
	getenv := func(name string) string { return runner.Getenv(s.environ, name) }
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if *names[name] = getenv(name); *names[name] == "" {
			return usage(cmd, "%s is not set", name)
		}
	}
	o.Logf = func(format string, args ...any) { s.note(cmd.CommandPath()+": "+format, args...) }
	return o.InCluster(getenv, accountDir)
}
