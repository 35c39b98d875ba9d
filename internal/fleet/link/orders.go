package link

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/fleet"
)

// ordersEvery is how often orders are looked for that nobody told of: who was away finds them then.
const ordersEvery = 30 * time.Second

// orders brings those for a node to its sensor. The newest of each kind is in a bucket, so that nodes find it that come back.
type orders struct {
	*Servers
	Node
	mu   sync.Mutex
	done map[string]time.Time // keys of the bucket, with when what the sensor has heard was put there
}

// take brings what is new to the sensor, the newest first, so that an older one is refused and never in force for a moment.
func (o *orders) take(ctx context.Context) error {
	_, err := o.obey(ctx)
	return err
}

// obey also says what became of it; none: nothing was new.
func (o *orders) obey(ctx context.Context) ([]outcome, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	bucket, err := o.js.KeyValue(limited, o.orders())
	if err != nil {
		return nil, fmt.Errorf("find the bucket %s, which weir-fleet init makes: %w", o.orders(), err)
	}
	type order struct {
		key    string
		put    time.Time
		signed fleet.Signed
		at     time.Time // as it says itself
	}
	var news []order
	for _, key := range []string{o.orderKey(o.Every()), o.orderKey(o.Name)} {
		entry, err := bucket.Get(limited, key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for orders: %w", err)
		}
		one := order{key: key, put: entry.Created()}
		var s fleet.Statement
		if json.Unmarshal(entry.Value(), &one.signed) == nil && json.Unmarshal([]byte(one.signed.Statement), &s) == nil && !o.done[key].Equal(one.put) {
			one.at = s.Signed
			news = append(news, one)
		}
	}
	slices.SortFunc(news, func(a, b order) int { return cmp.Compare(b.at.UnixNano(), a.at.UnixNano()) })
	var all []outcome
	for _, one := range news {
		text, err := o.Sensor.Signed(ctx, control.Signed(one.signed))
		if err != nil && control.Code(err) == control.Failed {
			return all, err // it is tried again
		}
		o.done[one.key] = one.put
		result := outcome{Node: o.Name, Text: text}
		if err != nil {
			result = outcome{Node: o.Name, Error: event.Plain(err), Code: control.Code(err)}
		}
		o.Say("order: " + cmp.Or(result.Text, result.Error))
		all = append(all, result)
	}
	return all, nil
}

// hear obeys at once where somebody says that there are orders, and tells them.
func (o *orders) hear(ctx context.Context) (*nats.Subscription, error) {
	sub, err := o.nc.Subscribe(o.ordersNow(), func(m *nats.Msg) {
		all, err := o.obey(ctx)
		if err != nil {
			all = append(all, outcome{Node: o.Name, Error: event.Plain(err), Code: control.Code(err)})
		}
		for _, one := range all {
			if data, err := json.Marshal(one); err == nil {
				_ = m.Respond(data) // who waits no more sees it in the events
			}
		}
	})
	if err == nil {
		err = sub.SetPendingLimits(maxQueued, maxQueued*maxAnswer)
	}
	if err != nil {
		return nil, fmt.Errorf("listen for orders: %w", err)
	}
	return sub, nil
}

// Every stands for each node that uses these servers with this prefix.
func (s *Servers) Every() string { return fleet.Every(s.prefix) }

// orderKey is where the newest order for a node is, or for all.
func (s *Servers) orderKey(node string) string {
	if node == s.Every() {
		return "mode"
	}
	return "mode." + node
}

// Order leaves an order for a node, or for each, and calls fn with what links say within a time became of it. That is no proof: the logs are.
func (s *Servers) Order(ctx context.Context, node string, signed fleet.Signed, wait time.Duration, fn func(node, text string, err error)) error {
	data, err := json.Marshal(signed)
	if err != nil {
		return fmt.Errorf("encode order: %w", err)
	}
	bucket, err := s.js.KeyValue(ctx, s.orders())
	if err == nil {
		_, err = bucket.Put(ctx, s.orderKey(node), data)
	}
	if err != nil {
		return fmt.Errorf("leave the order in the bucket %s: %w", s.orders(), err)
	}
	inbox := s.nc.NewInbox()
	sub, err := s.nc.SubscribeSync(inbox)
	if err == nil {
		defer sub.Unsubscribe() // of a connection that ends, too
		err = s.nc.PublishRequest(s.ordersNow(), inbox, nil)
	}
	if err != nil {
		return fmt.Errorf("tell nodes of the order: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		m, err := sub.NextMsgWithContext(limited)
		if err != nil {
			return ctx.Err() // the time is over; who comes later finds the order
		}
		var o outcome
		if json.Unmarshal(m.Data, &o) != nil || o.Node == "" {
			continue // nobody listens yet, or it is none of a link's
		}
		if o.Error != "" {
			err = control.Errorf(max(o.Code, control.Failed), "%s", o.Error)
		}
		fn(o.Node, o.Text, err)
		if o.Node == node {
			return nil
		}
	}
}
