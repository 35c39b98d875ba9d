package container

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/containerd/containerd/api/events"
	eventsapi "github.com/containerd/containerd/api/services/events/v1"
	"github.com/containerd/containerd/api/types"
	"google.golang.org/protobuf/proto"
)

const (
	settle    = time.Second      // until the events of a new connection surely come
	lookEvery = 15 * time.Second // at what runs, in case an event was lost
)

// watch keeps up with a containerd until ctx ends. It lists all after each connect.
func watch(ctx context.Context, socket string, k *Keeper) error {
	c, err := dial(socket)
	if err != nil {
		return err
	}
	defer c.close()
	retryUntil(ctx, func(ctx context.Context) error {
		c.conn.ResetConnectBackoff()
		return follow(ctx, c, k)
	}, func(err error) { k.connected(nil, err) })
	return nil
}

// follow serves one connection: it asks for events first, then lists, so that nothing falls between.
func follow(ctx context.Context, c *client, k *Keeper) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.events.Subscribe(ctx, &eventsapi.SubscribeRequest{Filters: []string{`topic~="^/(containers|tasks)/"`}})
	if err != nil {
		return fmt.Errorf("ask containerd for events: %w", err)
	}
	told, failed := make(chan *types.Envelope, 256), make(chan error, 1)
	go func() {
		for {
			e, err := stream.Recv()
			if err != nil {
				failed <- err
				return
			}
			select {
			case told <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	pids, listed := map[string]int{}, map[string]bool{}
	var all []Container
	if err := c.each(ctx, func(one Container) {
		listed[name(one.Namespace, one.ID)] = true
		pids[name(one.Namespace, one.ID)] = one.PID
		all = append(all, one)
	}); err != nil {
		return err
	}
	k.each(all)
	k.connected(listed, nil)
	look := time.NewTimer(settle)
	defer look.Stop()
	for {
		select {
		case err := <-failed:
			return fmt.Errorf("follow containerd's events: %w", err)
		case e := <-told:
			if err := tell(ctx, c, k, e, pids); err != nil {
				return err
			}
		case <-look.C:
			if err := compare(ctx, c, k, pids); err != nil {
				return err
			}
			look.Reset(lookEvery)
		}
	}
}

func name(namespace, id string) string { return namespace + "/" + id }

// compare finds containers whose start was not told.
func compare(ctx context.Context, c *client, k *Keeper, pids map[string]int) error {
	return c.eachNamespace(ctx, func(namespace string, running map[string]int) error {
		for id, pid := range running {
			if pids[name(namespace, id)] == pid {
				continue
			}
			if err := show(ctx, c, k, namespace, id, pid, true, pids); err != nil {
				return err
			}
		}
		return nil
	})
}

// show tells the keeper of one container as it is now.
func show(ctx context.Context, c *client, k *Keeper, namespace, id string, pid int, running bool, pids map[string]int) error {
	one, err := c.get(ctx, namespace, id)
	if errors.Is(err, errGone) {
		return nil // its end is told
	}
	if err != nil {
		return err
	}
	one.PID, one.Running = pid, running
	pids[name(namespace, id)] = pid
	k.seen(one)
	return nil
}

// tell passes one event on. Topics are those of containerd 1.6 to 2.
func tell(ctx context.Context, c *client, k *Keeper, e *types.Envelope, pids map[string]int) error {
	var m interface {
		proto.Message
		GetContainerID() string
	}
	switch e.Topic {
	case "/containers/create", "/containers/update", "/containers/delete":
		return tellContainer(ctx, c, k, e, pids)
	case "/tasks/create":
		m = &events.TaskCreate{}
	case "/tasks/start":
		m = &events.TaskStart{}
	case "/tasks/exit":
		m = &events.TaskExit{}
	case "/tasks/delete":
		m = &events.TaskDelete{}
	default:
		return nil
	}
	if err := proto.Unmarshal(e.Event.GetValue(), m); err != nil {
		return fmt.Errorf("read event %s: %w", e.Topic, err)
	}
	id, at := m.GetContainerID(), name(e.Namespace, m.GetContainerID())
	switch m := m.(type) {
	case *events.TaskCreate:
		return show(ctx, c, k, e.Namespace, id, int(m.GetPid()), false, pids)
	case *events.TaskStart:
		return show(ctx, c, k, e.Namespace, id, int(m.GetPid()), true, pids)
	case *events.TaskExit:
		if m.GetID() != id || int(m.GetPid()) != pids[at] {
			return nil // another process of it
		}
	case *events.TaskDelete:
		if m.GetID() != "" && m.GetID() != id {
			return nil
		}
	}
	delete(pids, at)
	k.stopped(e.Namespace, id, false)
	return nil
}

func tellContainer(ctx context.Context, c *client, k *Keeper, e *types.Envelope, pids map[string]int) error {
	var m interface {
		proto.Message
		GetID() string
	}
	switch kind := strings.TrimPrefix(e.Topic, "/containers/"); kind {
	case "create":
		m = &events.ContainerCreate{}
	case "update":
		m = &events.ContainerUpdate{}
	default:
		m = &events.ContainerDelete{}
	}
	if err := proto.Unmarshal(e.Event.GetValue(), m); err != nil {
		return fmt.Errorf("read event %s: %w", e.Topic, err)
	}
	at := name(e.Namespace, m.GetID())
	if _, ok := m.(*events.ContainerDelete); ok {
		delete(pids, at)
		k.stopped(e.Namespace, m.GetID(), true)
		return nil
	}
	return show(ctx, c, k, e.Namespace, m.GetID(), pids[at], pids[at] != 0, pids)
}
