package event

import (
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

	"gopkg.in/natefinch/lumberjack.v2"
)

// Marshal returns e as one JSON object without a newline. It is what the log
// holds: HTML characters stay as they are, and whatever does not print is an
// \u escape, so that the line is harmless on a terminal too (B51). Bytes that
// are not UTF-8 become U+FFFD.
func Marshal(e Event) ([]byte, error) { return appendEvent(nil, &e) }

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

// JSONSink writes one line of JSON for each event.
type JSONSink struct {
	mu   sync.Mutex
	out  lines
	line []byte // room for the next one
}

// maxKept is how much room, in bytes, a sink keeps for its next line.
const maxKept = 64 << 10

// NewJSONSink returns a sink that writes lines to w, such as os.Stdout. Each
// line is one call of w.Write.
func NewJSONSink(w io.Writer) *JSONSink { return &JSONSink{out: lines{to: w}} }

// Write writes one line and returns the error of the write: a full disk, for one.
func (s *JSONSink) Write(e Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	line, err := appendEvent(s.line[:0], &e)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if s.line = line[:0]; cap(line) > maxKept {
		s.line = nil
	}
	return s.out.write(line)
}

// lines are written whole, or told to be torn.
type lines struct {
	to   io.Writer
	torn bool // the last line may stand there in part
}

func (w *lines) write(line []byte) error {
	if w.torn {
		line = append([]byte("\n"), line...) // else this line is lost with the torn one
	}
	n, err := w.to.Write(line)
	if err == nil && n < len(line) {
		err = io.ErrShortWrite
	}
	w.torn = err != nil && (w.torn || n > 0)
	return err
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
