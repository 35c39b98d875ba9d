package container

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/net/multiplex"
	"github.com/containerd/ttrpc"
)

const (
	plugin     = "weir"
	order      = "90" // among plugins: after those that make a container what it is
	interfaced = "nri.pkg.api.v1alpha1.Plugin"
	register   = 5 * time.Second
)

// runNRI serves the runtime behind a socket until ctx ends, and connects again when it has lost it. state is told of each change: nil
// means that the runtime asks from now on, an error why it does not.
func runNRI(ctx context.Context, socket string, h nriHost, state func(error)) {
	retryUntil(ctx, func(ctx context.Context) error { return serve(ctx, socket, h, state) }, state)
}

// serve is one connection, on which each side calls the other.
func serve(ctx context.Context, socket string, h nriHost, state func(error)) error {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return fmt.Errorf("connect to NRI: %w", err)
	}
	mux := multiplex.Multiplex(conn)
	defer mux.Close()
	listener, err := mux.Listen(multiplex.PluginServiceConn)
	if err != nil {
		return fmt.Errorf("serve NRI: %w", err)
	}
	server, err := ttrpc.NewServer()
	if err != nil {
		return fmt.Errorf("serve NRI: %w", err)
	}
	defer server.Close()
	s := &service{host: h, limit: most, synced: make(chan struct{}, 1)}
	server.RegisterService(interfaced, s.methods())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	far, err := mux.Open(multiplex.RuntimeServiceConn)
	if err != nil {
		return fmt.Errorf("serve NRI: %w", err)
	}
	lost := make(chan struct{})
	client := ttrpc.NewClient(far, ttrpc.WithOnClose(func() { close(lost) }))
	defer client.Close()
	short, cancel := context.WithTimeout(ctx, register)
	defer cancel()
	if _, err := api.NewRuntimeClient(client).RegisterPlugin(short, &api.RegisterPluginRequest{PluginName: plugin, PluginIdx: order}); err != nil {
		return fmt.Errorf("register with NRI: %w", err)
	}
	for {
		select {
		case <-s.synced:
			state(nil)
		case err := <-ended:
			return errors.Join(errClosed, err)
		case <-lost:
			return errClosed
		case <-ctx.Done():
			return nil
		}
	}
}

// errClosed is the end of a connection.
var errClosed = errors.New("the runtime has closed the connection to NRI")
