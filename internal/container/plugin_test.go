package container

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/net/multiplex"
	"github.com/containerd/ttrpc"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
)

// host answers as a test says.
type host struct {
	made    chan nriContainer
	mounts  []*api.Mount
	err     error
	stuck   chan struct{} // nil: it answers at once
	started chan string
}

func (h *host) Creating(_ context.Context, c nriContainer) ([]*api.Mount, error) {
	h.made <- c
	return h.mounts, h.err
}

func (h *host) Starting(ctx context.Context, id string) error {
	h.started <- id
	if h.stuck != nil {
		<-h.stuck
	}
	return h.err
}

// runtime is the other side of a socket: it takes a plugin's registration, and asks.
type runtime struct {
	registered chan *api.RegisterPluginRequest
}

func (r *runtime) RegisterPlugin(_ context.Context, q *api.RegisterPluginRequest) (*api.Empty, error) {
	r.registered <- q
	return &api.Empty{}, nil
}

func (r *runtime) UpdateContainers(context.Context, *api.UpdateContainersRequest) (*api.UpdateContainersResponse, error) {
	return &api.UpdateContainersResponse{}, nil
}

// connected runs h behind a socket, and gives the runtime's end.
func connected(t *testing.T, h nriHost) (api.PluginService, net.Conn, chan error) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "nri.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	states, ended := make(chan error, 16), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		runNRI(ctx, socket, h, func(err error) { states <- err })
	}()
	t.Cleanup(func() { cancel(); <-ended })
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	mux := multiplex.Multiplex(conn, multiplex.WithBlockedRead()) // what comes for nobody is dropped
	t.Cleanup(func() { mux.Close() })
	incoming, err := mux.Listen(multiplex.RuntimeServiceConn)
	if err != nil {
		t.Fatal(err)
	}
	server, err := ttrpc.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	r := &runtime{make(chan *api.RegisterPluginRequest, 1)}
	api.RegisterRuntimeService(server, r)
	go func() { _ = server.Serve(ctx, incoming) }() // it ends with the connection
	outgoing, err := mux.Open(multiplex.PluginServiceConn)
	if err != nil {
		t.Fatal(err)
	}
	client := ttrpc.NewClient(outgoing)
	t.Cleanup(func() { client.Close() })
	mux.Unblock()
	if q := <-r.registered; q.PluginName != "weir" || q.PluginIdx != "90" {
		t.Errorf("registered as %v", q)
	}
	asks := api.NewPluginClient(client)
	select {
	case err := <-states:
		t.Fatalf("told before the runtime asks: %v", err)
	default:
	}
	if _, err := asks.Synchronize(ctx, &api.SynchronizeRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := <-states; err != nil {
		t.Fatal(err)
	}
	return asks, conn, states
}

func TestAsked(t *testing.T) {
	h := &host{made: make(chan nriContainer, 1), started: make(chan string, 1), mounts: []*api.Mount{{Destination: "/b", Type: "bind", Source: "/a", Options: []string{"ro"}}}}
	asks, _, _ := connected(t, h)
	ctx := t.Context()
	configured, err := asks.Configure(ctx, &api.ConfigureRequest{})
	if err != nil {
		t.Fatal(err)
	}
	want := &api.ConfigureResponse{Events: 1<<0 | 1<<3 | 1<<5, FailurePolicy: &api.FailurePolicy{FailRequest: true}}
	if !proto.Equal(configured, want) {
		t.Errorf("configured as %v, want %v", configured, want)
	}
	if answer, err := asks.Synchronize(ctx, &api.SynchronizeRequest{More: true}); err != nil || !answer.More || len(answer.Update) != 0 {
		t.Errorf("synchronize: %v, %v", answer, err)
	}
	pod := &api.PodSandbox{Id: "p"}
	one := &api.Container{
		Id: "c", Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "2"}, Mounts: []*api.Mount{{Destination: "/data"}},
		Linux: &api.LinuxContainer{CgroupsPath: "/x/c", Namespaces: []*api.LinuxNamespace{{Type: "user"}}},
	}
	made, err := asks.CreateContainer(ctx, &api.CreateContainerRequest{Pod: pod, Container: one})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(nriContainer{"c", "p", map[string]string{"l": "1"}, map[string]string{"a": "2"}, "/x/c", []string{"/data"}, true}, <-h.made); diff != "" {
		t.Error(diff)
	}
	if m := made.GetAdjust().GetMounts(); len(m) != 1 || !proto.Equal(m[0], &api.Mount{Destination: "/b", Type: "bind", Source: "/a", Options: []string{"ro"}}) {
		t.Errorf("mounts are %v", m)
	}
	for _, c := range []struct {
		name, want string
		do         func() error
	}{
		{"a container of a runtime that knows one kind of event", "c", func() error {
			_, err := asks.StateChange(ctx, &api.StateChangeEvent{Event: api.Event_START_CONTAINER, Pod: pod, Container: one})
			return err
		}},
		{"a sandbox of one", "p", func() error {
			_, err := asks.StateChange(ctx, &api.StateChangeEvent{Event: api.Event_RUN_POD_SANDBOX, Pod: pod})
			return err
		}},
		{"a container", "c", func() error {
			_, err := asks.StartContainer(ctx, &api.StartContainerRequest{Pod: pod, Container: one})
			return err
		}},
		{"a sandbox", "p", func() error {
			_, err := asks.RunPodSandbox(ctx, &api.RunPodSandboxRequest{Pod: pod})
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.do(); err != nil {
				t.Fatal(err)
			}
			if got := <-h.started; got != c.want {
				t.Errorf("started %q, want %q", got, c.want)
			}
			h.err = errors.New("no")
			if err := c.do(); err == nil {
				t.Error("an error of the host lets it start")
			}
			<-h.started
			h.err = nil
		})
	}
	h.err = errors.New("no")
	if _, err := asks.CreateContainer(ctx, &api.CreateContainerRequest{Pod: pod, Container: one}); err == nil {
		t.Error("an error of the host lets a container be made")
	}
}

// What is not answered in time is refused, while the runtime still waits.
func TestLate(t *testing.T) {
	h := &host{started: make(chan string, 1), stuck: make(chan struct{})}
	asks, _, _ := connected(t, h)
	defer close(h.stuck)
	if _, err := asks.Configure(t.Context(), &api.ConfigureRequest{RequestTimeout: 40}); err != nil {
		t.Fatal(err)
	}
	_, err := asks.StartContainer(t.Context(), &api.StartContainerRequest{Container: &api.Container{Id: "c"}})
	if err == nil {
		t.Error("a host that does not answer lets a container start")
	}
}

// A lost connection is told, and made again.
func TestLost(t *testing.T) {
	_, conn, states := connected(t, &host{})
	conn.Close()
	if err := <-states; err == nil {
		t.Error("the end of a connection is not told")
	}
}

// No socket, no answer on it: that is told, and nothing waits for ever.
func TestUnreachable(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	told := make(chan error, 1)
	go runNRI(ctx, filepath.Join(t.TempDir(), "none"), &host{}, func(err error) {
		select {
		case told <- err:
		default:
		}
	})
	if err := <-told; err == nil || errors.Is(err, io.EOF) {
		t.Errorf("told %v", err)
	}
}
