package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/notify"
)

const (
	lookEvery = time.Second // at the log: what happened meanwhile goes in one message; and without news of a question
	maxEnded  = 100         // of questions that ended, those that are looked through
	maxAnswer = 32 << 10    // bytes of a statement on its way
	maxQueued = 256         // statements that wait

	maxQuestion = 64 << 10 // bytes of one as JSON
)

// Node is whose link this is.
type Node struct {
	Name   string
	Sensor *control.Client
	State  string // directory
	Say    func(string)
}

// Run carries until ctx ends. What fails it tells and tries again.
func (s *Servers) Run(ctx context.Context, n Node) error {
	events, err := newPublisher(s, n.Name, n.State, n.Sensor.Log)
	if err != nil {
		return err
	}
	answers, err := s.answer(ctx, n)
	if err != nil {
		return err
	}
	defer answers.Unsubscribe() // of a connection that ends, too
	orders := &orders{Servers: s, Node: n}
	heard, err := orders.hear(ctx)
	if err != nil {
		return err
	}
	defer heard.Unsubscribe()
	asked, tainted := make(chan struct{}, 1), make(chan struct{}, 1)
	taints := &taints{Servers: s, Node: n, told: map[string]told{}}
	questions := &questions{Servers: s, Node: n, told: map[string]int{}}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { follow(ctx, n.Sensor, asked, tainted); return nil })
	group.Go(func() error { event.Again(ctx, n.Say, "events", nil, lookEvery, lookEvery, events.publish); return nil })
	group.Go(func() error {
		event.Again(ctx, n.Say, "questions", asked, lookEvery, lookEvery, questions.tell)
		return nil
	})
	group.Go(func() error { event.Again(ctx, n.Say, "orders", nil, ordersEvery, lookEvery, orders.take); return nil })
	group.Go(func() error {
		event.Again(ctx, n.Say, "taint", tainted, ordersEvery, lookEvery, taints.tell)
		return nil
	})
	group.Go(func() error {
		event.Again(ctx, n.Say, "taint from other nodes", nil, 0, lookEvery, taints.ask)
		return nil
	})
	err = group.Wait()
	if events.at != (stored{}) {
		err = errors.Join(err, events.store())
	}
	return err
}

// follow says when a question is asked or ends, and when taint changes.
func follow(ctx context.Context, sensor *control.Client, asked, tainted chan<- struct{}) {
	for ctx.Err() == nil {
		_ = sensor.Events(ctx, event.Filter{Kinds: []event.Kind{event.Hold, event.Verdict, event.Taint}}, true, func(e event.Event) error { // without it each look is later
			news := asked
			if e.Kind == event.Taint {
				news = tainted
			}
			select {
			case news <- struct{}{}:
			default:
			}
			return nil
		})
		sleep(ctx, lookEvery)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// questions tells those of a node, and what became of them.
type questions struct {
	*Servers
	Node
	told map[string]int // those that the bucket has as pending, with one more than people have approved it; by id
	over uint64         // the connection that they were told over
}

func (q *questions) tell(ctx context.Context) error {
	pending, err := q.Sensor.Pending(ctx)
	if err != nil {
		return err
	}
	if now := q.nc.Stats().Reconnects; now != q.over { // the servers may have come back without them
		for id := range q.told {
			q.told[id] = -1
		}
		q.over = now
	}
	open := map[string]bool{}
	var news []gate.Question
	for _, p := range pending {
		open[p.ID] = true
		if q.told[p.ID] != 1+len(p.Half) {
			news = append(news, p)
		}
	}
	over := 0
	for id := range q.told {
		if !open[id] {
			over++
		}
	}
	if over > 0 {
		ended, err := q.Sensor.History(ctx, maxEnded)
		if err != nil {
			return err
		}
		for _, e := range ended {
			if q.told[e.ID] != 0 && !open[e.ID] {
				news = append(news, e)
			}
		}
	}
	if len(news)+over == 0 {
		return nil
	}
	bucket, err := q.js.KeyValue(ctx, q.questions())
	if err != nil {
		return fmt.Errorf("find the bucket %s, which weir-fleet init makes: %w", q.questions(), err)
	}
	var failed error // of the first: the others are told all the same
	untold := map[string]bool{}
	for _, one := range news {
		data, err := encode(notify.MessageOf(q.Name, one, time.Now()))
		if err == nil {
			_, err = bucket.Put(ctx, q.Name+"."+one.ID, data)
		}
		switch {
		case err == nil:
			q.told[one.ID] = 0
			if one.State == gate.StatePending {
				q.told[one.ID] = 1 + len(one.Half)
			}
		case failed == nil:
			failed = fmt.Errorf("tell a question: %w", err)
			fallthrough
		default:
			untold[one.ID] = true
		}
	}
	for id, pending := range q.told {
		if (!open[id] || pending == 0) && !untold[id] { // an end that is too old to be found ends with its deadline
			delete(q.told, id)
		}
	}
	return failed
}

// encode bounds a question: those of one container must not fill the bucket. Of one that ended, what became of it is enough. What is too long
// is shown in part, and an approval of that counts for nothing.
func encode(m notify.Message) ([]byte, error) {
	data, err := json.Marshal(m)
	if err != nil || m.Answer == nil && len(data) <= maxQuestion {
		return data, err
	}
	b := &m.Question
	b.Program, b.Command, b.Asks, b.Causes, b.Chain = "", "", "", nil, nil // the text has them
	const most = maxQuestion / 8                                           // a character may be six in JSON
	switch text := m.Shown.Text; {
	case m.Answer != nil:
		m.Shown.Text = ""
	case len(text) > most:
		m.Shown.Text = strings.ToValidUTF8(text[:most], "") + "\nnot all of it is shown here: answer it on the node\n"
	}
	return json.Marshal(m)
}

// outcome is what a person is told of a statement.
type outcome struct {
	Node  string `json:"node,omitempty"` // of an order
	Text  string `json:"text,omitempty"`
	Error string `json:"error,omitempty"`
	Code  int    `json:"code,omitempty"` // an exit code, with Error
}

// answer brings statements to the sensor, one after another, and its words back.
func (s *Servers) answer(ctx context.Context, n Node) (*nats.Subscription, error) {
	sub, err := s.nc.Subscribe(s.answersFor(n.Name), func(m *nats.Msg) {
		var signed control.Signed
		var o outcome
		err := errors.New("it is longer than any answer")
		if len(m.Data) <= maxAnswer {
			err = json.Unmarshal(m.Data, &signed)
		}
		if err == nil {
			o.Text, err = n.Sensor.Signed(ctx, signed)
		}
		if err != nil {
			o = outcome{Error: event.Plain(err), Code: control.Code(err)}
		}
		if data, err := json.Marshal(o); err == nil {
			_ = m.Respond(data) // who waits no more asks again
		}
	})
	if err == nil {
		err = sub.SetPendingLimits(maxQueued, maxQueued*maxAnswer)
	}
	if err != nil {
		return nil, fmt.Errorf("listen for answers: %w", err)
	}
	return sub, nil
}
