package sensor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"weir/internal/announce"
	"weir/internal/cgroup"
	"weir/internal/event"
	"weir/internal/keyfile"
	"weir/internal/netegress"
)

// openAnnounce reads the keys and listens, so that a mistake ends the start.
func (d *daemon) openAnnounce() error {
	p := d.policies.Base().Announce
	tell := func(text string) { d.write(event.Event{Kind: event.Error, Message: text}) }
	if p.On() {
		url, err := keyfile.Read(p.URLFile, "", os.Getenv)
		if err != nil {
			return fmt.Errorf("announce.url_file: %w", err)
		}
		if url == "" {
			url = p.URL
		}
		key, err := keyfile.Read(p.KeyFile, p.KeyEnv, os.Getenv)
		if err != nil {
			return fmt.Errorf("announce.key_file: %w", err)
		}
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("find the host's name: %w", err)
		}
		d.teller, err = announce.New(announce.Options{
			Form: p.Form, URL: url, Key: key, Proxy: p.Proxy, Host: host, Version: d.opts.Version, Gate: d.gate, Logger: d.opts.Logger, Tell: tell,
		})
		if err != nil {
			return err
		}
	}
	c := p.Callback
	if c.Listen == "" {
		return nil
	}
	key, err := keyfile.Read(c.KeyFile, c.KeyEnv, os.Getenv)
	if err != nil {
		return fmt.Errorf("announce.callback.key_file: %w", err)
	}
	slack, err := keyfile.Read(c.SlackKeyFile, c.SlackKeyEnv, os.Getenv)
	if err != nil {
		return fmt.Errorf("announce.callback.slack_key_file: %w", err)
	}
	d.callback, err = announce.Listen(announce.CallbackOptions{
		Listen: c.Listen, Key: key, SlackKey: slack, Users: c.Users, Window: seconds(c.Window), Gate: d.gate, Refuse: d.refusePeer, RefuseSocket: d.refuseSocket, Tell: tell,
	})
	return err
}

// refuseSocket keeps guarded processes away from the callback's port, also while they
// are clean (G17). Who is not on this host, or in another network namespace, is none
// whose socket can be found: a container that reaches an exposed address is one.
func (d *daemon) refuseSocket(local, remote netip.AddrPort) error {
	id, err := netegress.SocketCgroup(local, remote)
	if errors.Is(err, unix.ENOENT) && !local.Addr().Unmap().IsLoopback() {
		return nil
	}
	if err != nil {
		return err
	}
	path, err := cgroup.Path(id)
	if err != nil {
		return err
	}
	return d.refuseCgroup(path, "the peer")
}

// announce starts announcing and taking answers. When either breaks, people are told
// and answer on the host: it is no reason to end what denies.
func (d *daemon) announce(ctx context.Context, group *errgroup.Group) {
	if d.teller != nil {
		events, done := d.log.Subscribe(4096)
		group.Go(func() error {
			defer done()
			if err := d.teller.Run(ctx, events); err != nil {
				d.fail("announce questions", nil, err)
			}
			return nil
		})
	}
	if d.callback != nil {
		group.Go(func() error {
			if err := d.callback.Serve(ctx); err != nil {
				d.fail("take signed answers", nil, err)
			}
			return nil
		})
	}
}

func (d *daemon) countAnnouncements(counts map[string]uint64) {
	if d.teller != nil {
		maps.Copy(counts, d.teller.Counters())
	}
	if d.callback != nil {
		maps.Copy(counts, d.callback.Counters())
	}
}
