package main

import (
	"os/signal"
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
			getenv := func(name string) string { return runner.Getenv(s.environ, name) }
			for _, v := range []struct {
				name string
				into *string
			}{{"NODE_NAME", &o.Node}, {"POD_NAME", &o.Pod}, {"POD_NAMESPACE", &o.Space}} {
				if *v.into = getenv(v.name); *v.into == "" {
					return usage(cmd, "%s is not set", v.name)
				}
			}
			if err := o.InCluster(getenv, accountDir); err != nil {
				return err
			}
			o.Logf = func(format string, args ...any) { s.note("weir node-ready: "+format, args...) }
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
