package main

import (
	"context"
	"fmt"
	"os/signal"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"weir/internal/console"
	"weir/internal/control"
	"weir/internal/gate"
	"weir/internal/vault"
)

func (s *system) consoleCommand() *cobra.Command {
	o := console.Options{}
	var socket, proxy string
	cmd := &cobra.Command{
		Use:   "console",
		Short: "serve a page on loopback to see containers and answer questions in a browser",
		Long: `Serves a page on loopback, for one browser, and prints its address, which can be opened once. It may do what you may: root, or a member of
the policy's control groups. No guarded process is served.`,
		Example: `  weir console
  weir console --listen 127.0.0.1:8086
  weir console --socket /run/weir-console/page.sock --host weir.example.org
  weir console --socket /run/weir-console/page.sock --host weir.example.org --proxy oauth2-proxy --login X-Forwarded-Email --may-answer alice@example.org`,
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
			if err := consoleNames(cmd, &o, socket, proxy); err != nil {
				return err
			}
			return s.serveConsole(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Listen, "listen", "127.0.0.1:0", "loopback `address` and port; the port 0 is any that is free")
	cmd.Flags().StringVar(&socket, "socket", "", "a Unix socket's absolute `path` instead, for a proxy with HTTPS")
	cmd.Flags().StringArrayVar(&o.Hosts, "host", nil, "with --socket, the `name` that browsers call the proxy by, with its port if that is not 443")
	cmd.Flags().StringVar(&proxy, "proxy", "", "with --login, the Unix `user` of the proxy: no other user's process is served")
	cmd.Flags().StringVar(&o.Login, "login", "", "with --proxy, the `header` in which the proxy names who logged in; there is no token then")
	cmd.Flags().StringArrayVar(&o.Answers, "may-answer", nil, "with --login, a `name` that may answer; others may look")
	return cmd
}

// consoleNames checks the flags about people's names.
func consoleNames(cmd *cobra.Command, o *console.Options, socket, proxy string) error {
	switch {
	case (proxy != "") != (o.Login != ""):
		return usage(cmd, "--proxy and --login belong together: give both, or none")
	case o.Login == "" && len(o.Answers) == 0:
		return nil
	case o.Login == "" || socket == "":
		return usage(cmd, "people have names with --socket, --proxy and --login: give all of them")
	case strings.Trim(strings.ToLower(o.Login), "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		return usage(cmd, "--login %s: give the name of a header, such as X-Forwarded-Email", o.Login)
	}
	for _, name := range o.Answers {
		if !control.LoginName(name) {
			return usage(cmd, "--may-answer %s: give 1 to 128 visible ASCII characters without brackets", name)
		}
	}
	id := proxy
	if u, err := user.Lookup(proxy); err == nil {
		id = u.Uid
	}
	uid, err := strconv.ParseUint(id, 10, 32)
	if err != nil {
		return usage(cmd, "--proxy %s: there is no such user", proxy)
	}
	n := uint32(uid)
	o.Proxy = &n
	return nil
}

// serveConsole serves the page until a signal ends it.
func (s *system) serveConsole(ctx context.Context, o console.Options) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := vault.NoDumps(); err != nil { // it has what a browser is let in by
		return err
	}
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
	if s.json {
		err = writeJSON(s.stdout, map[string]string{"url": c.URL()})
	} else {
		err = written(fmt.Fprintln(s.stdout, c.URL())) // on one line, however narrow the terminal is
	}
	if err != nil {
		return err
	}
	if o.Login != "" {
		s.note("open this address in a browser, through the proxy. Ctrl-C ends it")
		return c.Serve(ctx)
	}
	where := " of this machine"
	if len(o.Hosts) > 0 {
		where = ""
	}
	s.note("open this address in a browser%s; it can be used once. Ctrl-C ends it", where)
	return c.Serve(ctx)
}
