package event

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/time/rate"
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
	_, err := s.put(e)
	return err
}

// put also returns how long the line is.
func (s *JSONSink) put(e Event) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line, err := appendEvent(s.line[:0], &e)
	if err != nil {
		return 0, err
	}
	line = append(line, '\n')
	if s.line = line[:0]; cap(line) > maxKept {
		s.line = nil
	}
	return len(line), s.out.write(line)
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

// FileSink writes JSON lines to a file that it rotates, and what is kept also to one beside it, which no container fills (B167).
type FileSink struct {
	all, kept file

	share  int                      // bytes of the kept file that a container has at once, and in a day
	shares map[string]*rate.Limiter // by the container's id
	over   counts                   // are in the log alone, and not told yet
}

// file is one that is rotated.
type file struct {
	*JSONSink
	to *lumberjack.Logger
}

// shareOf is which part of the kept file one container may fill in a day.
const shareOf = 16

// NewFileSink opens or makes the file at path, and KeptFile's of it, readable by
// their owner only. A file of maxMiB is renamed to path's name with its time, and
// the newest backups of those are kept; both are at least 1. Data is handed to the
// kernel, not synced: it outlives the sensor, but not a power cut.
func NewFileSink(path string, maxMiB, backups int) (*FileSink, error) {
	all, err := openFile(path, maxMiB, backups)
	if err != nil {
		return nil, err
	}
	kept, err := openFile(KeptFile(path), maxMiB, backups)
	if err != nil {
		return nil, err
	}
	return &FileSink{all: all, kept: kept, share: maxMiB << 20 / shareOf, shares: map[string]*rate.Limiter{}, over: counts{}}, nil
}

// KeptFile is the path of what is kept of the log at path.
func KeptFile(path string) string {
	ext := filepath.Ext(path)
	return strings.TrimSuffix(path, ext) + ".kept" + ext
}

func openFile(path string, maxMiB, backups int) (file, error) {
	if maxMiB < 1 || backups < 1 {
		return file{}, fmt.Errorf("open event log %s: size and backups must be at least 1", path)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return file{}, fmt.Errorf("open event log %s: not a regular file: name a file, or none for standard output", path)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return file{}, fmt.Errorf("open event log: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return file{}, fmt.Errorf("open event log: %w", err)
	}
	// Try now what lumberjack would only try at the first event.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return file{}, fmt.Errorf("open event log: %w", err)
	}
	torn, err := endsTorn(f)
	f.Close()
	if err != nil {
		return file{}, fmt.Errorf("open event log %s: %w", path, err)
	}
	to := &lumberjack.Logger{Filename: path, MaxSize: maxMiB, MaxBackups: backups}
	s := NewJSONSink(to)
	s.out.torn = torn
	return file{s, to}, nil
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

// Write writes one line, and once more if it is kept. One goroutine at a time calls it.
func (s *FileSink) Write(e Event) error {
	size, err := s.all.put(e)
	if err != nil || !e.kept() {
		return err
	}
	if !s.room(e, size) {
		s.over[e.Kind]++
		return nil
	}
	for _, lost := range append(s.over.events("kept", e.Time), e) {
		if s.kept.Write(lost) != nil { // the log has it
			s.over[e.Kind]++
			return nil
		}
		if lost.Loss != nil {
			delete(s.over, Kind(lost.Loss.What))
		}
	}
	return nil
}

// kept says whether an event tells more than what was executed and let through.
func (e Event) kept() bool {
	return e.Kind != Exec && (e.Kind != Connect && e.Kind != Tool || e.Verdict != nil && e.Verdict.Decision == "deny")
}

// room says whether an event finds room in the kept file: it has its container's share, or that of all that is of none. What a person did,
// and what happens once, needs none.
func (s *FileSink) room(e Event, size int) bool {
	if slices.Contains([]Kind{Taint, Approval, Mode, Start, Stop}, e.Kind) || e.Verdict != nil && e.Verdict.From != nil {
		return true
	}
	maps.DeleteFunc(s.shares, func(_ string, l *rate.Limiter) bool { return l.TokensAt(e.Time) >= float64(s.share) })
	id := ""
	if e.Container != nil {
		id = e.Container.ID
	}
	if s.shares[id] == nil {
		s.shares[id] = rate.NewLimiter(rate.Limit(s.share)/(24*60*60), s.share)
	}
	return s.shares[id].AllowN(e.Time, size)
}

// Close closes the files; a later Write opens them again.
func (s *FileSink) Close() error {
	return errors.Join(s.all.close(), s.kept.close())
}

func (f file) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.to.Close(); err != nil {
		return fmt.Errorf("close event log: %w", err)
	}
	return nil
}
