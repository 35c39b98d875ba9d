package daemon

import (
	"strings"

	"weir/internal/event"
)

// eventLog is the event log; in a degraded run every event says so.
type eventLog struct {
	*event.Log
	note string
	*eventCounters
	summaries *taintSummaries // nil: not kept yet
}

// newEventLog writes to a sink.
func newEventLog(sink event.Sink) *eventLog {
	return &eventLog{Log: event.NewLog(sink), eventCounters: &eventCounters{}}
}

// Note has every event from now on say something; it must be called before others write.
func (w *eventLog) Note(text string) { w.note = text }

// Summarize keeps summaries of what is written from now on; it must be called before others write.
func (w *eventLog) Summarize(s *taintSummaries) { w.summaries = s }

// Write returns when the event is in its place; an error means that it is not.
func (w *eventLog) Write(e event.Event) error {
	w.count(e)
	return w.Log.Write(w.noted(e))
}

func (w *eventLog) count(e event.Event) {
	w.add(e)
	if w.summaries != nil {
		w.summaries.count(e)
	}
}

func (w *eventLog) noted(e event.Event) event.Event {
	if w.note != "" {
		e.Message = strings.TrimPrefix(e.Message+" ["+w.note+"]", " ")
	}
	return e
}

// WriteAsync writes an event that nobody waits for: a slow log holds up nothing.
func (w *eventLog) WriteAsync(e event.Event) {
	w.count(e)
	w.Log.WriteAsync(w.noted(e))
}
