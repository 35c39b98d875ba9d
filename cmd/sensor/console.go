package main

import (
	"context"
	"fmt"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"weir/internal/console"
	"weir/internal/control"
	"weir/internal/gate"
)

func (s *system) consoleCommand() *cobra.Command {
	o := console.Options{}
	var socket string
	cmd := &cobra.Command{
		Use:   "console",
		Short: "serve a page on loopback to see containers and answer questions in a browser",
		Long: `Serves a page on loopback, for one browser, and prints its address, which can be opened once. It may do what you may: root, or a member of
the policy's control groups. No guarded process is served.`,
		Example: `  weir console
  weir console --listen 127.0.0.1:8086
  weir console --socket /run/weir-console/page.sock --host weir.example.org`,
		Args: args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (socket != "") != (len(o.Hosts) > 0) {
				return usage(cmd, "--socket and --host belong together: give both, or none")
			}
			if socket != "" {
				if !strings.HasPrefix(socket, "/") {
					return usage(cmd, "--socket %s: give an absolute path", socket)
				}
				if cmd.Flags().Changed("listen") {
					return usage(cmd, "--listen and --socket are both set: keep one")
				}
				o.Listen = socket
			}
			return s.serveConsole(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Listen, "listen", "127.0.0.1:0", "loopback `address` and port; the port 0 is any that is free")
	cmd.Flags().StringVar(&socket, "socket", "", "a Unix socket's absolute `path` instead, for a proxy with HTTPS")
	cmd.Flags().StringArrayVar(&o.Hosts, "host", nil, "with --socket, the `name` that browsers call the proxy by, with its port if that is not 443")
	return cmd
}

// serveConsole serves the page until a signal ends it.
func (s *system) serveConsole(ctx context.Context, o console.Options) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	o.Sensor, o.By, o.Grant = s.client(), s.operator(), grant
	o.Why = func(y control.Why) string {
		var b strings.Builder
		printWhy(&b, y)
		return b.String()
	}
	o.Suggestion = func(r gate.Suggestion) string {
		var b strings.Builder
		printSuggested(&b, r)
		return b.String()
	}
	c, err := console.Listen(ctx, o)
	if err != nil {
		return err
	}
	if s.euid == 0 {
		s.note("weir console: it runs as root; a member of the policy's control.answer needs no root for it")
	}
	if _, err := fmt.Fprintln(s.stdout, c.URL()); err != nil {
		return written(0, err)
	}
	where := " of this machine"
	if len(o.Hosts) > 0 {
		where = ""
	}
	s.note("open this address in a browser%s; it can be used once. Ctrl-C ends it", where)
	return c.Serve(ctx)
}
