package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sirupsen/logrus"
	"gopkg.in/natefinch/lumberjack.v2"
)

// Marshal returns e as one JSON object without a newline. It is what the log
// holds: HTML characters stay as they are, and whatever does not print is an
// \u escape, so that the line is harmless on a terminal too (B51). Bytes that
// are not UTF-8 become U+FFFD.
func Marshal(e Event) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	return escapeJSON(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// escapeJSON escapes what does not print: in JSON it stands in strings only.
func escapeJSON(line []byte) []byte {
	if plain(line) == len(line) {
		return line // as nearly all are
	}
	out := make([]byte, 0, len(line))
	for len(line) > 0 {
		if n := plain(line); n > 0 {
			out, line = append(out, line[:n]...), line[n:]
			continue
		}
		r, size := utf8.DecodeRune(line)
		switch {
		case strconv.IsPrint(r) && !deceptive(r):
			out = append(out, line[:size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		line = line[size:]
	}
	return out
}

// plain is how much of a line's beginning is ASCII that prints.
func plain(line []byte) int {
	for i, c := range line {
		if c < ' ' || c > '~' {
			return i
		}
	}
	return len(line)
}

// formatter makes logrus write an event's own JSON and nothing else.
type formatter struct{}

// eventKey is the logrus field that holds the event.
const eventKey = "event"

func (formatter) Format(entry *logrus.Entry) ([]byte, error) {
	e, ok := entry.Data[eventKey].(Event)
	if !ok {
		return nil, errors.New("format event: the log entry has none")
	}
	line, err := Marshal(e)
	if err != nil {
		return nil, err
	}
	return append(line, '\n'), nil
}

// JSONSink writes one line of JSON for each event, through logrus.
type JSONSink struct {
	mu     sync.Mutex
	logger *logrus.Logger
	out    *lineWriter
}

// NewJSONSink returns a sink that writes lines to w, such as os.Stdout. Each
// line is one call of w.Write.
func NewJSONSink(w io.Writer) *JSONSink {
	out := &lineWriter{to: w}
	logger := logrus.New()
	logger.SetFormatter(formatter{})
	logger.SetOutput(out)
	return &JSONSink{logger: logger, out: out}
}

// Write writes one line and returns the error of the write: a full disk, for one.
func (s *JSONSink) Write(e Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.done, s.out.err = false, nil
	s.logger.WithField(eventKey, e).Info()
	if s.out.err == nil && !s.out.done {
		return errors.New("format event: logrus wrote nothing")
	}
	return s.out.err
}

// lineWriter keeps the error that logrus would only print.
type lineWriter struct {
	to   io.Writer
	torn bool // the last line may stand there in part
	done bool
	err  error
}

func (w *lineWriter) Write(line []byte) (int, error) {
	w.done = true
	out := line
	if w.torn {
		out = append([]byte("\n"), line...) // else this line is lost with the torn one
	}
	n, err := w.to.Write(out)
	if err == nil && n < len(out) {
		err = io.ErrShortWrite
	}
	w.err = err
	w.torn = err != nil && (w.torn || n > 0)
	return len(line), nil
}

// FileSink writes JSON lines to a file that it rotates.
type FileSink struct {
	*JSONSink
	file *lumberjack.Logger
}

// NewFileSink opens or makes the file at path, readable by its owner only. A file
// of maxMiB is renamed to path's name with its time, and the newest backups of
// those are kept; both are at least 1. Data is handed to the kernel, not synced:
// it outlives the sensor, but not a power cut.
func NewFileSink(path string, maxMiB, backups int) (*FileSink, error) {
	if maxMiB < 1 || backups < 1 {
		return nil, fmt.Errorf("open event log %s: size and backups must be at least 1", path)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open event log %s: not a regular file: name a file, or none for standard output", path)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open event log: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("open event log: %w", err)
	}
	// Try now what lumberjack would only try at the first event.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open event log: %w", err)
	}
	torn, err := endsTorn(f)
	f.Close()
	if err != nil {
		return nil, fmt.Errorf("open event log %s: %w", path, err)
	}
	file := &lumberjack.Logger{Filename: path, MaxSize: maxMiB, MaxBackups: backups}
	s := NewJSONSink(file)
	s.out.torn = torn
	return &FileSink{JSONSink: s, file: file}, nil
}

// endsTorn says whether the last line was not finished.
func endsTorn(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false, err
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, info.Size()-1); err != nil {
		return false, err
	}
	return last[0] != '\n', nil
}

// Close closes the file; a later Write opens it again.
func (s *FileSink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.file.Close(); err != nil {
		return fmt.Errorf("close event log: %w", err)
	}
	return nil
}
