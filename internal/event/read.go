package event

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir/internal/linux"
)

// Filter selects events. The zero Filter matches all.
type Filter struct {
	Kinds     []Kind    // any of these; empty: all
	Container string    // id, name or cgroup, or the start of the id (at least 4 characters)
	Since     time.Time // not before
	Before    time.Time // earlier than
	Text      string    // somewhere in the event's text, upper and lower case alike
}

// Match says whether e passes every part of f.
func (f Filter) Match(e Event) bool {
	if len(f.Kinds) > 0 && !slices.Contains(f.Kinds, e.Kind) {
		return false
	}
	if !f.Since.IsZero() && e.Time.Before(f.Since) || !f.Before.IsZero() && !e.Time.Before(f.Before) {
		return false
	}
	if f.Container != "" && !e.Container.named(f.Container) {
		return false
	}
	return f.Text == "" || e.contains(strings.ToLower(f.Text))
}

func (c *Container) named(name string) bool {
	if c == nil {
		return false
	}
	return name == c.ID || name == c.Name || name == c.Cgroup || name == c.RuntimeID || name == c.Pod ||
		len(name) >= 4 && (strings.HasPrefix(c.ID, name) || strings.HasPrefix(c.RuntimeID, name) || strings.HasSuffix(c.Cgroup, "/"+name))
}

// contains looks for a lower-case text in what the event says.
func (e Event) contains(text string) bool {
	words := []string{line(e), e.Question, e.Message}
	if c := e.Container; c != nil {
		words = append(words, c.ID, c.Name, c.Cgroup)
	}
	if p := e.Process; p != nil {
		words = append(words, p.Comm, p.Script, p.Interp, p.Cgroup, strings.Join(p.Argv, " "))
		words = append(words, p.Env...)
		if p.Exe != nil {
			words = append(words, p.Exe.Path)
		}
		for _, a := range p.Ancestry {
			words = append(words, a.Comm)
		}
	}
	if d := e.Destination; d != nil {
		words = append(words, d.Address)
	}
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(w), text) })
}

const (
	maxLine     = 4 << 20 // bytes of a line: far above what the sensor writes
	maxBadLines = 20      // lines that a BadLines names
)

// BadLines is the lines of a log that are no events. Everything else was read.
type BadLines struct {
	Lines []string // file:line: why; the first 20
	Count int      // of all
}

// Error names the lines, each on one line.
func (b *BadLines) Error() string {
	s := strings.Join(b.Lines, "\n")
	if more := b.Count - len(b.Lines); more > 0 {
		s += fmt.Sprintf("\n%d more lines are no events", more)
	}
	return s
}

// ReadFile calls fn for each event of the log at path that f matches, oldest
// first, beginning with the files that rotation has put aside. An error of fn
// ends it and is returned as it is. Lines that are no events are skipped; they
// are told at the end, as a *BadLines.
func ReadFile(path string, f Filter, fn func(Event) error) error {
	s, err := OpenStored(path)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Read(f, fn)
}

// Stored is a log and its backups, open for reading.
type Stored struct {
	files []*os.File // oldest first
}

// NewStored is a log of open files, oldest first, which are its own from now on.
func NewStored(files []*os.File) *Stored { return &Stored{files} }

// Files are the open files, oldest first. They stay the log's.
func (s *Stored) Files() []*os.File { return s.files }

// Close closes the files. What was only read needs no care.
func (s *Stored) Close() {
	for _, file := range s.files {
		file.Close()
	}
}

// Read is ReadFile for a log that is open.
func (s *Stored) Read(f Filter, fn func(Event) error) error {
	bad := new(BadLines)
	for _, file := range s.files {
		file.Seek(0, io.SeekStart) // a pipe is read once
		if err := read(file, f, fn, bad); err != nil {
			return err
		}
	}
	if bad.Count > 0 {
		return bad
	}
	return nil
}

// Has says whether the log at path has an event of a container, named as a Filter does.
func Has(path, container string) (bool, error) {
	found := errors.New("found")
	err := ReadFile(path, Filter{Container: container}, func(Event) error { return found })
	if errors.Is(err, found) {
		return true, nil
	}
	if _, ok := errors.AsType[*BadLines](err); ok {
		err = nil
	}
	return false, err
}

// OpenStored opens the log at path and its backups. The log is opened first:
// if it is rotated meanwhile, it is among the backups too, and read once. The caller closes it.
func OpenStored(path string) (*Stored, error) {
	log, err := linux.OpenInput(path)
	if err != nil {
		return nil, fmt.Errorf("open event log: %w", err)
	}
	info, err := log.Stat()
	if err != nil {
		log.Close()
		return nil, fmt.Errorf("open event log: %w", err)
	}
	var files []*os.File
	for _, name := range backups(path) {
		file, err := os.Open(name)
		if err != nil {
			continue // rotation has removed it
		}
		if other, err := file.Stat(); err != nil || os.SameFile(info, other) {
			file.Close()
			continue
		}
		files = append(files, file)
	}
	return NewStored(append(files, log)), nil
}

// backups lists rotated files of path, oldest first: lumberjack names them
// NAME-TIME.EXT, and their times sort as text.
func backups(path string) []string {
	dir, base := filepath.Split(path)
	ext := filepath.Ext(base)
	prefix := strings.TrimSuffix(base, ext) + "-"
	entries, _ := os.ReadDir(filepath.Clean(dir + "."))
	var names []string
	for _, entry := range entries { // sorted by name
		stamp, ok := strings.CutPrefix(entry.Name(), prefix)
		if !ok {
			continue
		}
		stamp, ok = strings.CutSuffix(stamp, ext)
		if _, err := time.Parse("2006-01-02T15-04-05.000", stamp); ok && err == nil && entry.Type().IsRegular() {
			names = append(names, filepath.Join(dir, entry.Name()))
		}
	}
	return names
}

func read(file *os.File, f Filter, fn func(Event) error, bad *BadLines) error {
	r := bufio.NewReaderSize(file, 64<<10)
	for number := 1; ; number++ {
		line, tooLong, err := linux.ReadLine(r, maxLine)
		line = bytes.TrimRight(line, "\r\n")
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read event log: %w", err)
		}
		end := err != nil
		switch {
		case tooLong:
			bad.add(file.Name(), number, "longer than any event")
		case len(line) == 0:
		default:
			if e, err := parse(line); err != nil {
				bad.add(file.Name(), number, "not an event: "+Plain(err))
			} else if f.Match(e) {
				if err := fn(e); err != nil {
					return err
				}
			}
		}
		if end {
			return nil
		}
	}
}

func (b *BadLines) add(file string, line int, why string) {
	b.Count++
	if len(b.Lines) < maxBadLines {
		b.Lines = append(b.Lines, fmt.Sprintf("%s:%d: %s", file, line, Visible(why)))
	}
}

// parse reads a line of the log.
func parse(line []byte) (e Event, err error) {
	if err = json.Unmarshal(line, &e); err == nil && (e.Kind == "" || e.Time.IsZero()) {
		err = errors.New("it has no time or no kind")
	}
	return e, err
}
