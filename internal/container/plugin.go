package container

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/proto"
)

// nriContainer is one that the runtime is about to make.
type nriContainer struct {
	ID          string
	Sandbox     string // id of the pod's
	Labels      map[string]string
	Annotations map[string]string // of its specification
	Cgroup      string            // as its specification has it
	Mounts      []string          // where something is mounted already
	OwnUsers    bool              // it has a user namespace
}

// nriHost decides. Its methods may be called at the same time; an error refuses the container.
type nriHost interface {
	Creating(ctx context.Context, c nriContainer) ([]*api.Mount, error) // it will be made, with these mounts
	Starting(ctx context.Context, id string) error                      // the first process of a container or sandbox is there, and begins when this returns
}

// most is how long an answer may take: a runtime waits two seconds, then goes on without.
const most = 1500 * time.Millisecond

// errLate is an answer that was not there in time.
var errLate = errors.New("refuse a container: the sensor did not answer in time")

// service is what the runtime calls.
type service struct {
	host   nriHost
	limit  time.Duration // of an answer
	synced chan struct{} // has room for one: the runtime has told all that there is, and asks from now on
}

// configure says what is asked for. A runtime that knows how to is told that a container must not start without an answer.
func (s *service) configure(_ context.Context, r *api.ConfigureRequest) (*api.ConfigureResponse, error) {
	if told := time.Duration(r.GetRequestTimeout()) * time.Millisecond; told > 0 {
		s.limit = told * 3 / 4
	}
	var events api.EventMask
	events.Set(api.Event_RUN_POD_SANDBOX, api.Event_CREATE_CONTAINER, api.Event_START_CONTAINER)
	return &api.ConfigureResponse{Events: int32(events), FailurePolicy: &api.FailurePolicy{FailRequest: true}}, nil
}

// synchronize changes nothing of what there is.
func (s *service) synchronize(_ context.Context, r *api.SynchronizeRequest) (*api.SynchronizeResponse, error) {
	if !r.GetMore() {
		select {
		case s.synced <- struct{}{}:
		default:
		}
	}
	return &api.SynchronizeResponse{More: r.GetMore()}, nil
}

func (s *service) create(ctx context.Context, r *api.CreateContainerRequest) (*api.CreateContainerResponse, error) {
	c := r.GetContainer()
	one := nriContainer{
		ID: c.GetId(), Sandbox: r.GetPod().GetId(), Labels: c.GetLabels(), Annotations: c.GetAnnotations(), Cgroup: c.GetLinux().GetCgroupsPath(),
	}
	for _, m := range c.GetMounts() {
		one.Mounts = append(one.Mounts, m.GetDestination())
	}
	for _, n := range c.GetLinux().GetNamespaces() {
		one.OwnUsers = one.OwnUsers || n.GetType() == "user"
	}
	adjust := &api.ContainerAdjustment{}
	err := s.within(ctx, func(ctx context.Context) (err error) {
		adjust.Mounts, err = s.host.Creating(ctx, one)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &api.CreateContainerResponse{Adjust: adjust}, nil
}

func (s *service) startPod(ctx context.Context, r *api.RunPodSandboxRequest) (*api.RunPodSandboxResponse, error) {
	return &api.RunPodSandboxResponse{}, s.start(ctx, r.GetPod().GetId())
}

func (s *service) startContainer(ctx context.Context, r *api.StartContainerRequest) (*api.StartContainerResponse, error) {
	return &api.StartContainerResponse{}, s.start(ctx, r.GetContainer().GetId())
}

// change is how runtimes say the same that know only one kind of event.
func (s *service) change(ctx context.Context, r *api.StateChangeEvent) (*api.Empty, error) {
	switch r.GetEvent() {
	case api.Event_RUN_POD_SANDBOX:
		return &api.Empty{}, s.start(ctx, r.GetPod().GetId())
	case api.Event_START_CONTAINER:
		return &api.Empty{}, s.start(ctx, r.GetContainer().GetId())
	}
	return &api.Empty{}, nil
}

func (s *service) start(ctx context.Context, id string) error {
	return s.within(ctx, func(ctx context.Context) error { return s.host.Starting(ctx, id) })
}

// within refuses what takes too long: a runtime that waits no longer would go on without an answer.
func (s *service) within(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	done := make(chan error, 1)
	go func() {
		defer cancel()
		done <- do(ctx)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		select {
		case err := <-done: // it was just answered
			return err
		default:
			return errLate
		}
	}
}

// methods are those of the interface that are used.
func (s *service) methods() *ttrpc.ServiceDesc {
	return &ttrpc.ServiceDesc{Methods: map[string]ttrpc.Method{
		"Configure":       method(s.configure),
		"Synchronize":     method(s.synchronize),
		"CreateContainer": method(s.create),
		"RunPodSandbox":   method(s.startPod),
		"StartContainer":  method(s.startContainer),
		"StateChange":     method(s.change),
		"Shutdown":        method(func(context.Context, *api.Empty) (*api.Empty, error) { return &api.Empty{}, nil }),
	}}
}

// method is one of them for ttrpc.
func method[Q, A any, P interface {
	*Q
	proto.Message
}](do func(context.Context, P) (*A, error)) ttrpc.Method {
	return func(ctx context.Context, read func(any) error) (any, error) {
		var q P = new(Q)
		if err := read(q); err != nil {
			return nil, fmt.Errorf("read a request of the runtime: %w", err)
		}
		return do(ctx, q)
	}
}
