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
	"strconv"
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
	last      outcome   // what the sensor said
	said      string    // the same but for figures: a refusal may name the time
}

// take brings what the sensor has not taken to it, the newest first, so that an older one is refused and not in force for a moment. One
// that fails keeps none from the sensor, and is tried again. What is refused comes again until it expires: a clock is set, and a role or a key comes into a policy later.
func (o *orders) take(ctx context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.look(ctx); err != nil {
		return err
	}
	var failed error // of the first
	for _, one := range slices.SortedFunc(maps.Values(o.known), func(a, b *order) int { return b.at.Compare(a.at) }) {
		if one.done || one.said != "" && !time.Now().Before(one.until) {
			continue
		}
		text, err := o.Sensor.Signed(ctx, one.signed)
		if err != nil && control.Code(err) == control.Failed {
			if failed == nil {
				failed = err
			}
			continue
		}
		one.last, one.done = outcome{Node: o.Name, Text: text}, err == nil
		if err != nil {
			one.last = outcome{Node: o.Name, Error: event.Plain(err), Code: control.Code(err)}
		}
		text = "order: " + cmp.Or(one.last.Text, one.last.Error)
		said := strings.Map(func(r rune) rune {
			if unicode.IsDigit(r) {
				return -1
			}
			return r
		}, text)
		if said != one.said {
			o.Say(text)
		}
		one.said = said
	}
	return failed
}

// became is what became of the order with a sequence.
func (o *orders) became(sequence string) (outcome, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, one := range o.known {
		if strconv.FormatUint(one.sequence, 10) == sequence && one.said != "" {
			return one.last, true
		}
	}
	return outcome{}, false
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

// hear obeys at once where somebody says that there is an order, and tells them what became of it.
func (o *orders) hear(ctx context.Context) (*nats.Subscription, error) {
	sub, err := o.nc.Subscribe(o.ordersNow(), func(m *nats.Msg) {
		err := o.take(ctx)
		one, ok := o.became(string(m.Data))
		if err != nil && !ok {
			one, ok = outcome{Node: o.Name, Error: event.Plain(err), Code: control.Code(err)}, true
		}
		if data, err := json.Marshal(one); err == nil && ok {
			_ = m.Respond(data) // who waits no more sees it in the events
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

// orderOf is the subject of the newest order of a person, by their key, for a node or for all. Orders to seal have their own, so have policies, and
// so has each person: nobody's word takes the place of another's, which counts where theirs does not.
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
	switch err := json.Unmarshal([]byte(signed.Statement), &statement); {
	case err != nil:
		return fmt.Errorf("leave the order: %w", err)
	case statement.Policy != "":
		kind = "policy"
	case statement.Forget != "":
		kind = "forget-" + strings.TrimSuffix(taintOf(statement.Forget), ".") // each has a place of its own
	case statement.Mode == string(policy.Seal):
		kind = "seal"
	}
	left, err := s.js.Publish(ctx, s.orderOf(kind, hex.EncodeToString(person[:12]), node), data)
	if err != nil {
		return fmt.Errorf("leave the order in the bucket %s: %w", s.orders(), err)
	}
	inbox := s.nc.NewInbox()
	sub, err := s.nc.SubscribeSync(inbox)
	if err == nil {
		defer sub.Unsubscribe() // of a connection that ends, too
		err = s.nc.PublishRequest(s.ordersNow(), inbox, strconv.AppendUint(nil, left.Sequence, 10))
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
