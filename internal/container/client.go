package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	containers "github.com/containerd/containerd/api/services/containers/v1"
	events "github.com/containerd/containerd/api/services/events/v1"
	namespaces "github.com/containerd/containerd/api/services/namespaces/v1"
	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Container is one as its runtime knows it.
type Container struct {
	Namespace string // the runtime's own
	ID        string
	Image     string
	Labels    map[string]string
	Spec      *specs.Spec // never nil
	PID       int         // its first process, in the host's pid namespace; 0: none
	Running   bool        // that process is past the runtime's own start
}

// errGone says that the runtime does not know a container any more.
var errGone = errors.New("no such container")

// maxMessage bounds one answer of the runtime, in bytes.
const maxMessage = 16 << 20

// client speaks with containerd: 1.6 and later have these services.
type client struct {
	conn       *grpc.ClientConn
	containers containers.ContainersClient
	tasks      tasks.TasksClient
	namespaces namespaces.NamespacesClient
	events     events.EventsClient
}

// dial connects when first used.
func dial(socket string) (*client, error) {
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return nil, fmt.Errorf("connect to containerd: %w", err)
	}
	return &client{
		conn, containers.NewContainersClient(conn), tasks.NewTasksClient(conn), namespaces.NewNamespacesClient(conn), events.NewEventsClient(conn),
	}, nil
}

func (c *client) close() error { return c.conn.Close() }

// within names the runtime's namespace of a call.
func within(ctx context.Context, namespace string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "containerd-namespace", namespace)
}

// each gives every container of every namespace to fn, one at a time: specifications are large.
func (c *client) each(ctx context.Context, fn func(Container)) error {
	return c.eachNamespace(ctx, func(namespace string, running map[string]int) error {
		stream, err := c.containers.ListStream(within(ctx, namespace), &containers.ListContainersRequest{})
		if err != nil {
			return fmt.Errorf("list containers of %s: %w", namespace, err)
		}
		for {
			m, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("list containers of %s: %w", namespace, err)
			}
			one, err := read(namespace, m.Container)
			if err != nil {
				return err
			}
			one.PID = running[one.ID]
			one.Running = one.PID != 0
			fn(one)
		}
	})
}

// eachNamespace gives fn what runs in each of the runtime's namespaces, until fn fails.
func (c *client) eachNamespace(ctx context.Context, fn func(namespace string, running map[string]int) error) error {
	list, err := c.namespaces.List(ctx, &namespaces.ListNamespacesRequest{})
	if err != nil {
		return fmt.Errorf("list namespaces: %w", err)
	}
	for _, ns := range list.Namespaces {
		running, err := c.running(ctx, ns.Name)
		if err == nil {
			err = fn(ns.Name, running)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// running are the first processes of the containers of a namespace, by container id.
func (c *client) running(ctx context.Context, namespace string) (map[string]int, error) {
	list, err := c.tasks.List(within(ctx, namespace), &tasks.ListTasksRequest{})
	if err != nil {
		return nil, fmt.Errorf("list tasks of %s: %w", namespace, err)
	}
	pids := map[string]int{}
	for _, t := range list.Tasks {
		if t.ExitedAt == nil || t.ExitStatus == 0 && t.ExitedAt.Seconds <= 0 {
			pids[t.ID] = int(t.Pid)
		}
	}
	return pids, nil
}

// get asks for one container; errGone: it is no more.
func (c *client) get(ctx context.Context, namespace, id string) (Container, error) {
	m, err := c.containers.Get(within(ctx, namespace), &containers.GetContainerRequest{ID: id})
	if status.Code(err) == codes.NotFound {
		return Container{}, errGone
	}
	if err != nil {
		return Container{}, fmt.Errorf("ask for container %s: %w", id, err)
	}
	return read(namespace, m.Container)
}

// begun asks for a container with its first process; errGone: there is none.
func (c *client) begun(ctx context.Context, namespace, id string) (Container, error) {
	one, err := c.get(ctx, namespace, id)
	if err != nil {
		return one, err
	}
	m, err := c.tasks.Get(within(ctx, namespace), &tasks.GetRequest{ContainerID: id})
	if status.Code(err) == codes.NotFound {
		return one, errGone
	}
	if err != nil {
		return one, fmt.Errorf("ask for the task of container %s: %w", id, err)
	}
	one.PID = int(m.GetProcess().GetPid())
	return one, nil
}

func read(namespace string, m *containers.Container) (Container, error) {
	c := Container{Namespace: namespace, ID: m.GetID(), Image: m.GetImage(), Labels: m.GetLabels(), Spec: &specs.Spec{}}
	if data := m.GetSpec().GetValue(); len(data) > 0 {
		if err := json.Unmarshal(data, c.Spec); err != nil {
			return c, fmt.Errorf("read the specification of container %s: %w", c.ID, err)
		}
	}
	return c, nil
}
