package daemon

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"weir/internal/event"
	"weir/internal/linux"
	"weir/internal/notify"
	"weir/internal/policy"
)

// notifier are the webhook and the callback, as far as the policy wants them.
type notifier struct {
	d        *daemon
	teller   *notify.Notifier // nil: nothing is posted
	callback *notify.Callback // nil: no answers come in over HTTP
}

// openNotifier reads the keys and listens, so that a mistake ends the start.
func openNotifier(p policy.Notify, d *daemon) (*notifier, error) {
	a := &notifier{d: d}
	tell := func(text string) { d.write(event.Event{Kind: event.Error, Message: text}) }
	if p.On() {
		url, err := linux.ReadKey(p.URLFile, "", os.Getenv)
		if err != nil {
			return nil, fmt.Errorf("notify.url_file: %w", err)
		}
		key, err := linux.ReadKey(p.KeyFile, p.KeyEnv, os.Getenv)
		if err != nil {
			return nil, fmt.Errorf("notify.key_file: %w", err)
		}
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("find the host's name: %w", err)
		}
		a.teller, err = notify.New(notify.Options{
			Form: p.Form, URL: cmp.Or(url, p.URL), Key: key, Proxy: p.Proxy, Host: host, Version: d.opts.Version, Gate: d.gate, Logger: d.opts.Logger, Tell: tell,
		})
		if err != nil {
			return nil, err
		}
	}
	c := p.Callback
	if c.Listen == "" {
		return a, nil
	}
	key, err := linux.ReadKey(c.KeyFile, c.KeyEnv, os.Getenv)
	if err != nil {
		return nil, fmt.Errorf("notify.callback.key_file: %w", err)
	}
	slack, err := linux.ReadKey(c.SlackKeyFile, c.SlackKeyEnv, os.Getenv)
	if err != nil {
		return nil, fmt.Errorf("notify.callback.slack_key_file: %w", err)
	}
	a.callback, err = notify.Listen(notify.CallbackOptions{
		Listen: c.Listen, Key: key, SlackKey: slack, Users: c.Users, Window: time.Duration(c.Window) * time.Second, Gate: d.gate, Peers: d.peerRules(), Tell: tell,
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// Run starts posting and taking answers. When either breaks, people are told
// and answer on the host: it is no reason to end what denies.
func (a *notifier) Run(ctx context.Context, group *errgroup.Group) {
	if a.teller != nil {
		events, done := a.d.log.Subscribe(4096)
		group.Go(func() error {
			defer done()
			if err := a.teller.Run(ctx, events); err != nil {
				a.d.failed("post questions", err)
			}
			return nil
		})
	}
	if a.callback != nil {
		group.Go(func() error {
			if err := a.callback.Serve(ctx); err != nil {
				a.d.failed("take signed answers", err)
			}
			return nil
		})
	}
}

// Count adds the counters of both.
func (a *notifier) Count(counts map[string]uint64) {
	if a.teller != nil {
		maps.Copy(counts, a.teller.Counters())
	}
	if a.callback != nil {
		maps.Copy(counts, a.callback.Counters())
	}
}
