package sensor

import (
	"strings"
	"time"

	"weir/internal/event"
)

// logWriter is the event log; in a degraded run every event says so.
type logWriter struct {
	log   *event.Log
	note  string
	tally *tally
}

// Write implements gate.Logger.
func (l *logWriter) Write(e event.Event) error {
	l.tally.add(e)
	return l.log.Write(l.noted(e))
}

func (l *logWriter) noted(e event.Event) event.Event {
	if l.note != "" {
		e.Message = strings.TrimPrefix(e.Message+" ["+l.note+"]", " ")
	}
	return e
}

// Post writes an event that nobody waits for: a slow log holds up nothing.
func (l *logWriter) Post(e event.Event) {
	l.tally.add(e)
	l.log.Post(l.noted(e))
}

// closeTime is how long a log that is stuck may hold up the end.
const closeTime = 2 * time.Second

func within(limit time.Duration, do func() error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = do() // what was written is written
	}()
	select {
	case <-done:
	case <-time.After(limit):
	}
}
