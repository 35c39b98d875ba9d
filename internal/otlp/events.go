package otlp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"

	"weir/internal/control"
	"weir/internal/event"
)

const (
	maxBatch  = 256 << 10       // bytes of lines in a request
	maxLine   = 1 << 20         // of one that is sent
	storeTime = 5 * time.Second // between two times that the place is stored
	maxTries  = 4               // records that are refused one by one before the endpoint itself is wrong
)

// events carries those of one log.
type events struct {
	sensor  *control.Client
	without []string
	out     *otlploghttp.Exporter
	door    *door
	logger  log.Logger
	made    *made
	count   *prometheus.CounterVec
	say     func(string)

	file string // where the place is stored
	at   event.Place
	from time.Time // what is older is not sent
	kept time.Time
}

func newEvents(o Options, of *resource.Resource, out *otlploghttp.Exporter, d *door, own *prometheus.Registry) (*events, error) {
	e := &events{
		sensor: o.Sensor, without: o.Policy.Without, out: out, door: d, made: new(made), say: o.Say, file: filepath.Join(o.State, "place.json"),
		count: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weir_otel_events_total", Help: "Events that weir-otel sent, and those that were lost on the way to the collector."}, []string{"result"}),
	}
	for _, result := range []string{"sent", "lost"} {
		e.count.WithLabelValues(result)
	}
	if err := own.Register(e.count); err != nil {
		return nil, fmt.Errorf("count events: %w", err)
	}
	e.logger = sdklog.NewLoggerProvider(sdklog.WithProcessor(e.made), sdklog.WithResource(of)).Logger("weir")
	there, err := event.LoadPlace(e.file, &e.at)
	if err != nil {
		return nil, err
	}
	if !there && o.Since > 0 {
		e.from = time.Now().Add(-o.Since)
	}
	return e, nil
}

// store keeps the place. What was sent after it comes twice.
func (e *events) store() error {
	if e.at == (event.Place{}) {
		return nil
	}
	if err := event.StorePlace(e.file, e.at); err != nil {
		return err
	}
	e.kept = time.Now()
	return nil
}

// carry sends what the log has after the place.
func (e *events) carry(ctx context.Context) error {
	stored, err := e.sensor.Log(ctx)
	if err != nil {
		return err
	}
	defer stored.Close()
	tail, err := event.NewTail(stored)
	for err == nil {
		var piece *event.Piece
		if piece, err = tail.Next(&e.at, maxBatch, maxLine); piece == nil || err != nil {
			break
		}
		records, lost := e.records(ctx, *piece)
		if err = e.send(ctx, records); err == nil {
			e.at = piece.To
			e.count.WithLabelValues("lost").Add(float64(lost))
		}
		if err == nil && time.Since(e.kept) > storeTime {
			err = e.store()
		}
	}
	return err
}

// records makes a record of each line. What is no event, and what the log has lost, is counted, and told by a record of its own.
func (e *events) records(ctx context.Context, p event.Piece) (records []sdklog.Record, lost uint64) {
	e.made.records = nil
	what := p.Lost
	if what != "" {
		lost++
	}
	for line := range bytes.Lines(p.Lines) {
		line = bytes.TrimSpace(line)
		var one event.Event
		switch {
		case len(line) == 0:
		case json.Unmarshal(line, &one) != nil || one.Kind == "":
			what, lost = "line", lost+1
		case !slices.Contains(e.without, string(one.Kind)) && !one.Time.Before(e.from):
			e.emit(ctx, one, line)
		}
	}
	if lost > 0 {
		e.emitLoss(ctx, what, lost)
	}
	return e.made.records, lost
}

func (e *events) emitLoss(ctx context.Context, what string, count uint64) {
	loss := event.Event{Time: time.Now().UTC(), Kind: event.Lost, Loss: &event.Loss{Stage: "otlp", What: what, Count: count}}
	if line, err := event.Marshal(loss); err == nil {
		e.emit(ctx, loss, line)
	}
}

var severities = map[event.Priority]log.Severity{
	event.PriorityError: log.SeverityError, event.PriorityWarning: log.SeverityWarn, event.PriorityNotice: log.SeverityInfo2, event.PriorityInfo: log.SeverityInfo,
}

// emit makes the record of an event, which is line as JSON.
func (e *events) emit(ctx context.Context, one event.Event, line []byte) {
	var r log.Record
	r.SetTimestamp(one.Time)
	r.SetObservedTimestamp(time.Now())
	r.SetEventName("weir." + string(one.Kind))
	r.SetSeverity(severities[one.Priority()])
	r.SetSeverityText(severities[one.Priority()].String())
	r.SetBody(attribute.StringValue(event.Text(one)))
	for _, f := range event.Fields(one) {
		r.AddAttributes(attribute.String(f.Name, f.Value))
	}
	r.AddAttributes(attribute.String("weir.event", string(line)))
	e.logger.Emit(ctx, r)
}

// made is what a logger has made: it is sent by who knows what became of it.
type made struct{ records []sdklog.Record }

func (m *made) OnEmit(_ context.Context, r *sdklog.Record) error {
	m.records = append(m.records, r.Clone())
	return nil
}

func (*made) Enabled(context.Context, sdklog.EnabledParameters) bool { return true }
func (*made) Shutdown(context.Context) error                         { return nil }
func (*made) ForceFlush(context.Context) error                       { return nil }

// tally is what became of the records of a piece.
type tally struct {
	sent, lost int
	why        error // of the last that was lost
}

// send returns once all records are taken, or refused for good while others are taken.
func (e *events) send(ctx context.Context, records []sdklog.Record) error {
	var t tally
	if err := e.try(ctx, records, &t); err != nil {
		return err
	}
	if err := e.takes(ctx, &t); err != nil {
		return err
	}
	e.count.WithLabelValues("sent").Add(float64(t.sent))
	if t.lost > 0 {
		e.count.WithLabelValues("lost").Add(float64(t.lost))
		e.say(fmt.Sprintf("events: the endpoint does not take %d of %d, which are lost there: %s", t.lost, t.lost+t.sent, event.Plain(t.why)))
	}
	return nil
}

// takes tells an endpoint that has taken none of what was lost: why, if it does not take that either, for then it may be the endpoint that is wrong.
func (e *events) takes(ctx context.Context, t *tally) error {
	if t.sent > 0 || t.lost == 0 {
		return nil
	}
	e.made.records = nil
	e.emitLoss(ctx, "refused", uint64(t.lost))
	if e.out.Export(ctx, e.made.records); !e.door.taken() || e.door.rejected > 0 {
		return t.why
	}
	t.sent++
	return nil
}

// try halves what is refused for what is in it, until it is one record.
func (e *events) try(ctx context.Context, records []sdklog.Record, t *tally) error {
	if len(records) == 0 {
		return nil
	}
	err := e.out.Export(ctx, records)
	half := len(records) / 2
	switch {
	case err == nil || e.door.taken():
		rejected := min(int(e.door.rejected), len(records))
		t.sent, t.lost = t.sent+len(records)-rejected, t.lost+rejected
		if rejected > 0 {
			t.why = err
		}
		return nil
	case !e.door.refused():
		return err
	case half == 0:
		if t.lost, t.why = t.lost+1, err; t.lost >= maxTries {
			return e.takes(ctx, t)
		}
		return nil
	}
	if err := e.try(ctx, records[:half], t); err != nil {
		return err
	}
	return e.try(ctx, records[half:], t)
}
