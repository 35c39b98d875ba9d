package link

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/fleet"
	"weir/internal/policy"
)

// ordersEvery is how often orders are looked for that nobody told of: who was away finds them then.
const ordersEvery = 30 * time.Second

// orders brings those for a node to its sensor. The newest of each person is in a bucket, so that nodes find it that come back.
type orders struct {
	*Servers
	Node
	mu    sync.Mutex
	known map[string]*order // by subject
}

// order is one as the bucket has it.
type order struct {
	sequence  uint64
	signed    control.Signed
	at, until time.Time // as it says itself
	done      bool      // the sensor has taken it
	said      string    // what the sensor said last, but for figures: a refusal may name the time
}

// take brings what the sensor has not taken to it, the newest first, so that an older one is refused and never in force for a moment. What is
// refused comes again until it expires: a clock is set, and a role or a key comes into a policy later.
func (o *orders) take(ctx context.Context) error {
	_, err := o.obey(ctx)
	return err
}

// obey also says what became of what is new.
func (o *orders) obey(ctx context.Context) ([]outcome, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.look(ctx); err != nil {
		return nil, err
	}
	var all []outcome
	for _, one := range slices.SortedFunc(maps.Values(o.known), func(a, b *order) int { return b.at.Compare(a.at) }) {
		if one.done || one.said != "" && !time.Now().Before(one.until) {
			continue
		}
		text, err := o.Sensor.Signed(ctx, one.signed)
		if err != nil && control.Code(err) == control.Failed {
			return all, err // it is tried again
		}
		result := outcome{Node: o.Name, Text: text}
		if err != nil {
			result = outcome{Node: o.Name, Error: event.Plain(err), Code: control.Code(err)}
		}
		text = "order: " + cmp.Or(result.Text, result.Error)
		said := strings.Map(func(r rune) rune {
			if unicode.IsDigit(r) {
				return -1
			}
			return r
		}, text)
		if said != one.said {
			o.Say(text)
		}
		if one.said == "" {
			all = append(all, result)
		}
		one.said, one.done = said, err == nil
	}
	return all, nil
}

// look reads the bucket.
func (o *orders) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	stream, err := o.js.Stream(ctx, "KV_"+o.orders())
	if err != nil {
		return fmt.Errorf("find the bucket %s, which weir-fleet init makes: %w", o.orders(), err)
	}
	known := map[string]*order{}
	for _, node := range []string{o.Every(), o.Name} {
		info, err := stream.Info(ctx, jetstream.WithSubjectFilter(o.orderOf("*", "*", node)))
		if err != nil {
			return fmt.Errorf("look for orders: %w", err)
		}
		for subject := range info.State.Subjects {
			m, err := stream.GetLastMsgForSubject(ctx, subject)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue
			}
			if err != nil {
				return fmt.Errorf("look for orders: %w", err)
			}
			one := &order{sequence: m.Sequence}
			var s fleet.Statement
			if old := o.known[subject]; old != nil && old.sequence == m.Sequence {
				one = old
			} else if json.Unmarshal(m.Data, &one.signed) == nil && json.Unmarshal([]byte(one.signed.Statement), &s) == nil {
				one.at, one.until = s.Signed, s.Expires
			} else {
				one.done = true // it is none
			}
			known[subject] = one
		}
	}
	o.known = known
	return nil
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

// orderOf is the subject of the newest order of a person, by their key, for a node or for all. Orders to seal have their own, and so has each
// person: nobody's word takes the place of another's, which counts where theirs does not.
func (s *Servers) orderOf(kind, person, node string) string {
	subject := "$KV." + s.orders() + "." + kind + "." + person
	if node == s.Every() {
		return subject
	}
	return subject + "." + node
}

// Order leaves an order for a node, or for each, and calls fn with what links say within a time became of it. That is no proof: the logs are.
func (s *Servers) Order(ctx context.Context, node string, signed control.Signed, wait time.Duration, fn func(node, text string, err error)) error {
	data, err := json.Marshal(signed)
	if err != nil {
		return fmt.Errorf("encode order: %w", err)
	}
	kind, person := "mode", sha256.Sum256([]byte(signed.Key))
	var statement fleet.Statement
	if json.Unmarshal([]byte(signed.Statement), &statement) == nil && statement.Mode == string(policy.Seal) {
		kind = "seal"
	}
	if _, err := s.js.Publish(ctx, s.orderOf(kind, hex.EncodeToString(person[:12]), node), data); err != nil {
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
