package event

import (
	"errors"
	"fmt"
	"strings"

	"github.com/coreos/go-systemd/v22/journal"
)

// journalName is what journalctl -t takes.
const journalName = "weir"

// JournalSink hands events to systemd's journal, each with its fields.
type JournalSink struct {
	send func(message string, priority journal.Priority, fields map[string]string) error
}

// NewJournalSink returns a sink of this machine's journal. Without one it is an error.
func NewJournalSink() (*JournalSink, error) {
	if !journal.Enabled() {
		return nil, errors.New("open the journal: systemd-journald does not listen on /run/systemd/journal/socket: start it, or write events.also: none")
	}
	return &JournalSink{journal.Send}, nil
}

// Write hands over one event. The journal takes it whole or not at all.
func (s *JournalSink) Write(e Event) error {
	line, err := Marshal(e)
	if err != nil {
		return err
	}
	fields := map[string]string{"SYSLOG_IDENTIFIER": journalName, "WEIR_EVENT": string(line)}
	for _, f := range Fields(e) {
		fields[JournalField(f.Name)] = f.Value
	}
	if err := s.send(Text(e), journal.Priority(e.Priority()), fields); err != nil {
		return fmt.Errorf("write to the journal: %w", err)
	}
	return nil
}

// JournalField is what the journal calls a field: weir.kind is WEIR_KIND, and process.pid is WEIR_PROCESS_PID.
func JournalField(name string) string {
	return "WEIR_" + strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(strings.TrimPrefix(name, "weir.")))
}
