package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/coreos/go-systemd/v22/journal"
	"github.com/sirupsen/logrus"

	"weir/internal/event"
)

// toJournal sends what is logged to systemd's journal by its own protocol, with fields, where standard error leads there anyway.
func toJournal(logger *logrus.Logger) {
	if leads, err := journal.StderrIsJournalStream(); err == nil && leads {
		logger.AddHook(&journalHook{send: journal.Send, lost: logger.Out})
		logger.SetOutput(io.Discard)
	}
}

// journalHook sends each entry of a logger. One that the journal does not take is a line on lost.
type journalHook struct {
	send func(message string, priority journal.Priority, fields map[string]string) error
	lost io.Writer
}

// Levels implements logrus.Hook.
func (*journalHook) Levels() []logrus.Level { return logrus.AllLevels }

var journalPriorities = map[logrus.Level]journal.Priority{
	logrus.PanicLevel: journal.PriCrit, logrus.FatalLevel: journal.PriCrit, logrus.ErrorLevel: journal.PriErr, logrus.WarnLevel: journal.PriWarning,
	logrus.InfoLevel: journal.PriInfo, logrus.DebugLevel: journal.PriDebug, logrus.TraceLevel: journal.PriDebug,
}

// Fire implements logrus.Hook.
func (h *journalHook) Fire(e *logrus.Entry) error {
	fields := map[string]string{"SYSLOG_IDENTIFIER": "weir"}
	for name, value := range e.Data {
		fields[event.JournalField(name)] = event.Visible(fmt.Sprint(value))
	}
	message := e.Message
	if err, ok := e.Data[logrus.ErrorKey].(error); ok {
		message += ": " + event.Plain(err)
	}
	message = event.Visible(message)
	if err := h.send(message, journalPriorities[e.Level], fields); err != nil {
		fmt.Fprintln(h.lost, strings.TrimSpace(message))
	}
	return nil
}
