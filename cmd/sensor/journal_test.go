package main

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/coreos/go-systemd/v22/journal"
	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"
)

// What is logged has its level and its fields in the journal, and is not lost where that does not take it.
func TestJournalHook(t *testing.T) {
	type entry struct {
		Message  string
		Priority journal.Priority
		Fields   map[string]string
	}
	var got []entry
	var lost bytes.Buffer
	var fails error
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	logger.AddHook(&journalHook{lost: &lost, send: func(message string, priority journal.Priority, fields map[string]string) error {
		got = append(got, entry{message, priority, fields})
		return fails
	}})
	logger.WithField("part", "ma\x1bps").WithError(unix.ENOSPC).Warn("collect metrics")
	logger.WithField("a.b-c", 7).Info("ready")
	fails = errors.New("no journal")
	logger.Error("it\nfailed")
	want := []entry{
		{"collect metrics: no space is left: make room on that disk", journal.PriWarning, map[string]string{"SYSLOG_IDENTIFIER": "weir", "WEIR_PART": `ma\x1bps`, "WEIR_ERROR": "no space left on device"}},
		{"ready", journal.PriInfo, map[string]string{"SYSLOG_IDENTIFIER": "weir", "WEIR_A_B_C": "7"}},
		{`it\nfailed`, journal.PriErr, map[string]string{"SYSLOG_IDENTIFIER": "weir"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if lost.String() != `it\nfailed`+"\n" {
		t.Errorf("on standard error: %q", &lost)
	}
}
