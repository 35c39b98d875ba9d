package link

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"weir/internal/event"
)

const (
	maxBatch  = 256 << 10       // bytes of lines in a message
	storeTime = 5 * time.Second // between two times that the place is stored
	headers   = 4 << 10         // more than those of a message have, in bytes
)

// headers of a message of events: its place in the log.
const (
	headerFrom = "Weir-From"
	headerTo   = "Weir-To"
)

// stored is what outlives the link.
type stored struct {
	event.Place
	Stream time.Time `json:"stream"` // when the stream was made that has what is before
}

// publisher sends the log of one node.
type publisher struct {
	*Servers
	node string
	file string // where the place is stored
	log  func(context.Context) (*event.Stored, error)

	at    stored
	kept  time.Time
	known bool   // at and last are what the stream says
	last  uint64 // sequence of this node's last message there; 0: none
}

func newPublisher(s *Servers, node, dir string, log func(context.Context) (*event.Stored, error)) (*publisher, error) {
	p := &publisher{Servers: s, node: node, file: filepath.Join(dir, "place.json"), log: log}
	if _, err := event.LoadPlace(p.file, &p.at); err != nil {
		return nil, err
	}
	return p, nil
}

// store keeps the place. It need not be the newest: what is sent twice is dropped by who reads.
func (p *publisher) store() error {
	if err := event.StorePlace(p.file, p.at); err != nil {
		return err
	}
	p.kept = time.Now()
	return nil
}

// publish sends what the log has and the stream does not. After an error the next call begins with what the stream says.
func (p *publisher) publish(ctx context.Context) error {
	log, err := p.log(ctx)
	if err != nil {
		return err
	}
	defer log.Close()
	tail, err := event.NewTail(log)
	if err == nil && !p.known {
		err = p.resume(ctx, tail)
	}
	for err == nil {
		var piece *event.Piece
		if piece, err = tail.Next(&p.at.Place, maxBatch, int(max(p.nc.MaxPayload()-headers, 1))); piece == nil || err != nil {
			break
		}
		err = p.send(ctx, *piece)
	}
	p.known = err == nil
	if p.at != (stored{}) && time.Since(p.kept) > storeTime {
		err = errors.Join(err, p.store())
	}
	return err
}

// resume finds out where to go on: after the last message that the stream has of this node, if that is in the log; from the log's beginning, if
// the stream is another one than before; else where it was.
func (p *publisher) resume(ctx context.Context, tail event.Tail) error {
	stream, err := p.js.Stream(ctx, p.events())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("the servers have no stream %s: make it with weir-fleet init", p.events())
	}
	if err != nil {
		return fmt.Errorf("ask for the stream %s: %w", p.events(), err)
	}
	made := stream.CachedInfo().Created
	last, err := stream.GetLastMsgForSubject(ctx, p.eventsOf(p.node))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		p.last = 0
	case err != nil:
		return fmt.Errorf("ask for the last event: %w", err)
	default:
		p.last = last.Sequence
		if to, ok := event.ParsePlace(last.Header.Get(headerTo)); ok && tail.Has(to) {
			p.at = stored{to, made}
			return nil
		}
	}
	if !p.at.Stream.Equal(made) {
		p.at = stored{Stream: made}
	}
	return nil
}

// send returns once a message is stored, or nobody knows.
func (p *publisher) send(ctx context.Context, b event.Piece) error {
	if b.Lost != "" { // an event says that something does not come
		line, err := event.Marshal(event.Event{Time: time.Now().UTC(), Kind: event.Lost, Loss: &event.Loss{Stage: "fleet", What: b.Lost, Count: 1}})
		if err != nil {
			return err
		}
		b.Lines = append(line, '\n')
	}
	m := &nats.Msg{Subject: p.eventsOf(p.node), Data: b.Lines, Header: nats.Header{headerFrom: {b.From.String()}, headerTo: {b.To.String()}}}
	limited, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	// What was sent before and comes late, over an older connection, is refused then, and so is what comes twice.
	ack, err := p.js.PublishMsg(limited, m, jetstream.WithExpectLastSequencePerSubject(p.last))
	if err != nil {
		return fmt.Errorf("send events: %w", err)
	}
	p.last, p.at.Place = ack.Sequence, b.To
	return nil
}
