package link

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"weir/internal/event"
	"weir/internal/linux"
)

const (
	maxBatch  = 256 << 10       // bytes of lines in a message
	maxLine   = 4 << 20         // far above what the sensor writes
	storeTime = 5 * time.Second // between two times that the place is stored
	identity  = 64 << 10        // bytes of a file's first line that name it
	headers   = 4 << 10         // more than those of a message have, in bytes
)

// headers of a message of events: its place in the log.
const (
	headerFrom = "Weir-From"
	headerTo   = "Weir-To"
)

// place is one in the log: a file, by its first line, and an offset. The zero place is before all.
type place struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
}

func (p place) String() string { return p.File + "/" + strconv.FormatInt(p.Offset, 10) }

func parsePlace(s string) (p place, ok bool) {
	file, offset, _ := strings.Cut(s, "/")
	n, err := strconv.ParseInt(offset, 10, 64)
	return place{file, n}, err == nil && n >= 0 && file != ""
}

// stored is what outlives the link.
type stored struct {
	place
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

// batch is a message of whole lines.
type batch struct {
	lines    []byte
	from, to place
}

func newPublisher(s *Servers, node, dir string, log func(context.Context) (*event.Stored, error)) (*publisher, error) {
	p := &publisher{Servers: s, node: node, file: filepath.Join(dir, "place.json"), log: log}
	data, err := os.ReadFile(p.file)
	if errors.Is(err, os.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &p.at)
	}
	if err != nil {
		return nil, fmt.Errorf("read where the events go on: %w: remove %s to send the whole log again", err, p.file)
	}
	return p, nil
}

// store keeps the place. It need not be the newest: what is sent twice is dropped by who reads.
func (p *publisher) store() error {
	data, err := json.Marshal(p.at)
	if err == nil {
		err = linux.WriteFileAtomic(p.file, data)
	}
	if err != nil {
		return fmt.Errorf("store where the events go on: %w", err)
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
	files, names, err := named(log.Files())
	if err == nil && !p.known {
		err = p.resume(ctx, names)
	}
	for err == nil {
		var b *batch
		if b, err = p.next(files, names); b == nil || err != nil {
			break
		}
		err = p.send(ctx, *b)
	}
	p.known = err == nil
	if p.at != (stored{}) && time.Since(p.kept) > storeTime {
		err = errors.Join(err, p.store())
	}
	return err
}

// named are the files that have a line, and what they are called.
func named(all []*os.File) (files []*os.File, names []string, err error) {
	head := make([]byte, identity)
	for _, f := range all {
		n, err := f.ReadAt(head, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, nil, fmt.Errorf("read event log: %w", err)
		}
		line, _, whole := bytes.Cut(head[:n], []byte("\n"))
		if !whole && n < len(head) {
			continue // it has none yet
		}
		sum := sha256.Sum256(line)
		files, names = append(files, f), append(names, hex.EncodeToString(sum[:12]))
	}
	return files, names, nil
}

func find(names []string, p place) int {
	for i, name := range names {
		if name == p.File {
			return i
		}
	}
	return -1
}

// resume finds out where to go on: after the last message that the stream has of this node, if that is in the log; from the log's beginning, if
// the stream is another one than before; else where it was.
func (p *publisher) resume(ctx context.Context, names []string) error {
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
		if to, ok := parsePlace(last.Header.Get(headerTo)); ok && find(names, to) >= 0 {
			p.at = stored{to, made}
			return nil
		}
	}
	if !p.at.Stream.Equal(made) {
		p.at = stored{Stream: made}
	}
	return nil
}

// next is what follows the place; nil: nothing does.
func (p *publisher) next(files []*os.File, names []string) (*batch, error) {
	if len(files) == 0 {
		return nil, nil
	}
	i := find(names, p.at.place)
	switch {
	case i >= 0:
	case p.at.File == "":
		i, p.at.place = 0, place{names[0], 0}
	default: // rotation has removed it
		return p.loss("log", p.at.place, place{names[0], 0})
	}
	for {
		b, err := p.read(files[i])
		if b != nil || err != nil || i == len(files)-1 {
			return b, err
		}
		i++
		p.at.place = place{names[i], 0}
	}
}

// read makes a batch of the lines of a file from the place on; nil: there is none.
func (p *publisher) read(f *os.File) (*batch, error) {
	from := p.at.place
	fits := max(p.nc.MaxPayload()-headers, 1)
	for _, most := range []int64{min(maxBatch, fits), maxLine} {
		lines := make([]byte, most)
		n, err := f.ReadAt(lines, from.Offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read event log: %w", err)
		}
		end := bytes.LastIndexByte(lines[:n], '\n') + 1
		if most == maxLine {
			end = bytes.IndexByte(lines[:n], '\n') + 1 // it is one that does not fit with others
		}
		to := place{from.File, from.Offset + int64(end)}
		switch {
		case end == 0 && int64(n) < most:
			return nil, nil
		case end == 0 && most == maxLine:
			return p.loss("line", from, place{from.File, from.Offset + int64(n)}) // what follows of it is no event to anybody
		case end > 0 && int64(end) > fits:
			return p.loss("line", from, to)
		case end > 0:
			return &batch{lines[:end:end], from, to}, nil
		}
	}
	return nil, nil
}

// loss is an event that says that something does not come.
func (p *publisher) loss(what string, from, to place) (*batch, error) {
	line, err := event.Marshal(event.Event{Time: time.Now().UTC(), Kind: event.Lost, Loss: &event.Loss{Stage: "fleet", What: what, Count: 1}})
	return &batch{append(line, '\n'), from, to}, err
}

// send returns once a message is stored, or nobody knows.
func (p *publisher) send(ctx context.Context, b batch) error {
	m := &nats.Msg{Subject: p.eventsOf(p.node), Data: b.lines, Header: nats.Header{headerFrom: {b.from.String()}, headerTo: {b.to.String()}}}
	limited, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	// What was sent before and comes late, over an older connection, is refused then, and so is what comes twice.
	ack, err := p.js.PublishMsg(limited, m, jetstream.WithExpectLastSequencePerSubject(p.last))
	if err != nil {
		return fmt.Errorf("send events: %w", err)
	}
	p.last, p.at.place = ack.Sequence, b.to
	return nil
}
