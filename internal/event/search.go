package event

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

const block = 1 << 20 // bytes that are looked through at once

// Newest calls fn for each event that f matches, newest first as the lines stand, until ctx ends or fn returns an error, which is returned as
// it is. It parses only lines that have the words of f's text, its container and its kind in them as they are stored, so it does not find a text
// that is only in how an event is printed: a time's milliseconds, how much of a long argument was left out, an escape without its backslash. bad is how many lines are no events.
func (s *Stored) Newest(ctx context.Context, f Filter, fn func(Event) error) (bad int, err error) {
	n := &newest{ctx: ctx, filter: f, sieve: sieveOf(f), fn: fn}
	for _, file := range slices.Backward(s.files) {
		if err := n.read(file); err != nil {
			return n.bad, err
		}
	}
	return n.bad, nil
}

type newest struct {
	ctx    context.Context
	filter Filter
	sieve  sieve
	fn     func(Event) error
	bad    int
	text   []byte // what is looked through: whole lines
	lower  []byte // the same without upper case
}

// read reads a file from its end. What a block begins with belongs to the line that the block before it ends with.
func (n *newest) read(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("read event log: %w", err)
	}
	if !info.Mode().IsRegular() {
		return errors.New("read event log: it is no regular file")
	}
	var rest []byte // of a line whose start is further ahead in the file
	long := false   // that line has more than any event
	for end := info.Size(); end > 0; {
		if err := n.ctx.Err(); err != nil {
			return err
		}
		size := min(block, end)
		end -= size
		n.text = slices.Grow(n.text[:0], int(size)+len(rest))[:size]
		if read, err := file.ReadAt(n.text, end); err != nil && !(errors.Is(err, io.EOF) && int64(read) == size) {
			return fmt.Errorf("read event log: %w", err)
		}
		first := bytes.IndexByte(n.text, '\n') + 1
		if end == 0 {
			first = 0
		} else if first == 0 { // all of it is of one line
			if long = long || len(rest)+len(n.text) > maxLine; long {
				rest = rest[:0]
			} else {
				rest = slices.Concat(n.text, rest)
			}
			continue
		}
		if long {
			n.bad++
			n.text = n.text[:bytes.LastIndexByte(n.text, '\n')+1] // empty at the start of the file
			long = false
		} else {
			n.text = append(n.text, rest...)
		}
		rest = append(rest[:0], n.text[:min(first, len(n.text))]...)
		if err := n.look(n.text[len(rest):]); err != nil {
			return err
		}
	}
	return nil
}

// look goes through whole lines, the last first.
func (n *newest) look(text []byte) error {
	n.lower = lower(n.lower, text)
	var found [][2]int // start and end of the lines that may match
	for at := 0; at < len(text); {
		hit := bytes.Index(n.lower[at:], n.sieve.rarest)
		if hit < 0 {
			break
		}
		start := at + bytes.LastIndexByte(n.lower[at:at+hit], '\n') + 1
		end := len(text)
		if i := bytes.IndexByte(n.lower[at+hit:], '\n'); i >= 0 {
			end = at + hit + i
		}
		if n.sieve.may(n.lower[start:end]) {
			found = append(found, [2]int{start, end})
		}
		at = end + 1
	}
	for _, line := range slices.Backward(found) {
		if err := n.line(text[line[0]:line[1]]); err != nil {
			return err
		}
	}
	return nil
}

func (n *newest) line(line []byte) error {
	line = bytes.TrimRight(line, "\r")
	if len(line) == 0 {
		return nil
	}
	if err := n.ctx.Err(); err != nil {
		return err
	}
	if len(line) > maxLine {
		n.bad++
		return nil
	}
	e, err := parse(line)
	if err != nil {
		n.bad++
		return nil
	}
	if !n.filter.Match(e) {
		return nil
	}
	return n.fn(e)
}

// sieve lets pass each line that a filter may match, and few others. It sees lines without upper case.
type sieve struct {
	rarest        []byte   // is in each that may
	others        [][]byte // all of them are
	kinds         [][]byte // one of them is; empty: any may
	since, before string   // seconds that a line's time is not before, and not after; empty: any may
}

func sieveOf(f Filter) sieve {
	var s sieve
	if f.Container != "" {
		line, _ := marshal(f.Container) // a text has no error
		s.others = append(s.others, lower(nil, line[1:len(line)-1]))
	}
	s.others = append(s.others, stored(f.Text)...)
	for i, word := range s.others {
		if len(word) > len(s.rarest) {
			s.rarest, s.others[0], s.others[i] = word, word, s.others[0]
		}
	}
	for _, k := range f.Kinds {
		s.kinds = append(s.kinds, []byte(`"kind":"`+string(k)+`"`))
	}
	if len(s.kinds) == 1 && len(s.rarest) == 0 {
		s.rarest, s.kinds = s.kinds[0], nil
	}
	if len(s.others) > 0 {
		s.rarest = rare(s.rarest)
	}
	second := func(t time.Time) string { return strings.ToLower(t.UTC().Format("2006-01-02T15:04:05")) }
	if !f.Since.IsZero() {
		s.since = second(f.Since)
	}
	if !f.Before.IsZero() {
		s.before = second(f.Before)
	}
	return s
}

// rare is a word from its rarest letter on, by which bytes.Index finds it faster.
func rare(word []byte) []byte {
	const rarest = "qzjvwkybfghmxulpdcotnrisae" // of events; all else is more common
	at, least := 0, len(rarest)
	for i := 0; i+3 <= len(word); i++ {
		if n := strings.IndexByte(rarest, word[i]); n >= 0 && n < least {
			at, least = i, n
		}
	}
	return word[at:]
}

// may says whether a line may match that has the rarest word.
func (s *sieve) may(line []byte) bool {
	const head = `{"time":"`
	if end := len(head) + len("2006-01-02t15:04:05"); (s.since != "" || s.before != "") && len(line) > end && string(line[:len(head)]) == head {
		quote := bytes.IndexByte(line[end:], '"')
		if at := string(line[len(head):end]); quote > 0 && line[end+quote-1] == 'z' && (at < s.since || s.before != "" && at > s.before) {
			return false
		}
	}
	for _, word := range s.others {
		if !bytes.Contains(line, word) {
			return false
		}
	}
	return len(s.kinds) == 0 || slices.ContainsFunc(s.kinds, func(k []byte) bool { return bytes.Contains(line, k) })
}

// printed is words of an event's line for people that are not in it as it is stored.
var printed = strings.Fields(`pid uid in memory only deleted script run by sets asks to calls status bytes failed question after for and everything it starts
	refused weir approve deny grant until left cgroup pids given over more arguments were not read its are known own account events lost stage
	control user chat ssh from protocol dns`)

// stored are the words of a text that each event has in it as it is stored, if the text is in it as it is printed or in a part of it.
func stored(text string) [][]byte {
	text = strings.ToLower(text)
	letter := func(i int) bool {
		return i >= 0 && i < len(text) && (text[i] >= 'a' && text[i] <= 'z' || text[i] >= '0' && text[i] <= '9')
	}
	inside := func(i int) bool {
		return letter(i) || letter(i-1) && letter(i+1) && strings.IndexByte("._-", text[i]) >= 0
	}
	var words [][]byte
	for i := 0; i < len(text); i++ {
		start := i
		for i < len(text) && inside(i) {
			i++
		}
		word := text[start:i]
		seconds := len(word) <= len("05.000z") && strings.Trim(word, "0123456789.z") == ""
		escape := start > 0 && text[start-1] == '\\'
		if len(word) < 3 || seconds && strings.ContainsAny(word, ".z") || escape || slices.ContainsFunc(printed, func(p string) bool { return strings.Contains(p, word) }) {
			continue
		}
		words = append(words, []byte(word))
	}
	return words
}

// lower copies text without upper-case letters of ASCII into to, eight bytes at a time.
func lower(to, text []byte) []byte {
	to = slices.Grow(to[:0], len(text))[:len(text)]
	const ones = 0x0101010101010101
	i := 0
	for ; i+8 <= len(text); i += 8 {
		w := binary.LittleEndian.Uint64(text[i:])
		low := w & (ones * 0x7f)
		upper := (low + ones*(0x80-'A')) &^ (low + ones*(0x7f-'Z')) &^ w & (ones * 0x80)
		binary.LittleEndian.PutUint64(to[i:], w|upper>>2)
	}
	for ; i < len(text); i++ {
		to[i] = text[i]
		if c := text[i]; c >= 'A' && c <= 'Z' {
			to[i] |= 0x20
		}
	}
	return to
}
