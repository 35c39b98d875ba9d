package link

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/notify"
	"weir/internal/policy"
)

// Events calls fn for each line of the events of a node, or of all with an empty one, in the order of each node and none twice: those that are
// stored, and with follow those to come until ctx ends.
func (s *Servers) Events(ctx context.Context, node string, follow bool, fn func(node string, line []byte) error) error {
	if node == "" {
		node = ">"
	}
	consumer, err := s.js.OrderedConsumer(ctx, s.events(), jetstream.OrderedConsumerConfig{FilterSubjects: []string{s.eventsOf(node)}})
	if err != nil {
		return fmt.Errorf("read the stream %s: %w", s.events(), err)
	}
	info, err := consumer.Info(ctx)
	if err != nil {
		return fmt.Errorf("read the stream %s: %w", s.events(), err)
	}
	if info.NumPending == 0 && !follow {
		return nil
	}
	messages, err := consumer.Messages()
	if err != nil {
		return fmt.Errorf("read the stream %s: %w", s.events(), err)
	}
	defer messages.Stop()
	defer context.AfterFunc(ctx, messages.Stop)()
	had := reader{}
	for {
		m, err := messages.Next()
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("read the stream %s: %w", s.events(), err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return fmt.Errorf("read the stream %s: %w", s.events(), err)
		}
		from := m.Subject()[len(s.eventsOf("")):]
		for line := range bytes.Lines(had.take(from, m.Headers(), m.Data())) {
			if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
				continue
			}
			if err := fn(from, line); err != nil {
				return err
			}
		}
		if !follow && meta.NumPending == 0 {
			return nil
		}
	}
}

// reader knows how much of which file of which node's log was read.
type reader map[string]map[string]int64

// take is what of a message was not read yet.
func (r reader) take(node string, h nats.Header, lines []byte) []byte {
	from, ok := event.ParsePlace(h.Get(headerFrom))
	to, ok2 := event.ParsePlace(h.Get(headerTo))
	if !ok || !ok2 {
		return nil // it is none of a link's
	}
	if r[node] == nil {
		r[node] = map[string]int64{}
	}
	if from.File != to.File { // it tells of a gap
		return lines
	}
	had := r[node][from.File]
	if to.Offset <= had {
		return nil
	}
	r[node][from.File] = to.Offset
	if skip := had - from.Offset; skip > 0 && skip <= int64(len(lines)) && int64(len(lines)) == to.Offset-from.Offset {
		return lines[skip:]
	}
	return lines
}

// Questions are those that the nodes told in the last day, with those that have ended; by NODE.ID.
func (s *Servers) Questions(ctx context.Context) (all map[string]notify.Message, err error) {
	enough := errors.New("enough")
	err = s.Watch(ctx, func(list map[string]notify.Message) error { all = list; return enough })
	if errors.Is(err, enough) {
		err = nil
	}
	return all, err
}

// Watch calls fn with what Questions returns, and again each time that one is told, until ctx ends, fn fails or the connection is another one. The map stays its own.
func (s *Servers) Watch(ctx context.Context, fn func(map[string]notify.Message) error) error {
	connection := s.nc.Stats().Reconnects
	bucket, err := s.js.KeyValue(ctx, s.questions())
	if err != nil {
		return fmt.Errorf("find the bucket %s: %w", s.questions(), err)
	}
	news, err := bucket.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return fmt.Errorf("read questions: %w", err)
	}
	defer news.Stop()
	all, whole := map[string]notify.Message{}, false
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("read questions: %w", ctx.Err())
		case <-tick.C:
			if !s.nc.IsConnected() || s.nc.Stats().Reconnects != connection { // what was told meanwhile is read anew
				return errors.New("the connection to the servers was cut")
			}
			maps.DeleteFunc(all, func(_ string, m notify.Message) bool { return time.Since(m.Question.Deadline) > questionAge })
			continue
		case entry, ok := <-news.Updates():
			var m notify.Message
			switch {
			case !ok:
				return errors.New("read questions: the servers tell no more")
			case entry == nil:
				whole = true
			case json.Unmarshal(entry.Value(), &m) == nil && policy.IsNode(m.Host) && policy.IsNode(m.Question.ID) && entry.Key() == m.Host+"."+m.Question.ID: // else it is none of a link's
				all[entry.Key()] = m
			default:
				continue
			}
		}
		if whole {
			if err := fn(all); err != nil {
				return err
			}
		}
	}
}

// Send brings what a person signed to a node, and returns in one line what its link says became of it. That is no proof: the node's log is.
func (s *Servers) Send(ctx context.Context, node string, signed control.Signed) (string, error) {
	data, err := json.Marshal(signed)
	if err != nil {
		return "", fmt.Errorf("encode answer: %w", err)
	}
	m, err := s.nc.RequestWithContext(ctx, s.answersFor(node), data)
	if errors.Is(err, nats.ErrNoResponders) {
		return "", fmt.Errorf("the link of %s is not connected: nothing was answered", node)
	}
	var o outcome
	if err == nil {
		err = json.Unmarshal(m.Data, &o)
	}
	if err != nil {
		return "", fmt.Errorf("%s does not say what became of the answer: %w", node, err)
	}
	if o.Error != "" {
		return "", control.Errorf(max(o.Code, control.Failed), "%s", o.Error)
	}
	return o.Text, nil
}
