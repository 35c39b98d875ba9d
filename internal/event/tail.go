package event

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

const identity = 64 << 10 // bytes of a file's first line that name it

// Place is one in a log: a file, by its first line, and an offset. The zero Place is before all.
type Place struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
}

// String is what ParsePlace reads.
func (p Place) String() string { return p.File + "/" + strconv.FormatInt(p.Offset, 10) }

// ParsePlace reads a place.
func ParsePlace(s string) (p Place, ok bool) {
	file, offset, _ := strings.Cut(s, "/")
	n, err := strconv.ParseInt(offset, 10, 64)
	return Place{file, n}, err == nil && n >= 0 && file != ""
}

// Tail is a log for who carries it on, piece by piece, whatever rotation does meanwhile.
type Tail struct {
	files []*os.File // oldest first, those that have a line
	names []string
}

// NewTail looks which files of a log have what; that must stay open.
func NewTail(s *Stored) (Tail, error) {
	var t Tail
	head := make([]byte, identity)
	for _, f := range s.files {
		n, err := f.ReadAt(head, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return Tail{}, fmt.Errorf("read event log: %w", err)
		}
		line, _, whole := bytes.Cut(head[:n], []byte("\n"))
		if !whole && n < len(head) {
			continue // it has none yet
		}
		sum := sha256.Sum256(line)
		t.files, t.names = append(t.files, f), append(t.names, hex.EncodeToString(sum[:12]))
	}
	return t, nil
}

// Has says whether the log still has the file of a place.
func (t Tail) Has(p Place) bool { return slices.Contains(t.names, p.File) }

// Piece is whole lines of a log, or what is missing in it.
type Piece struct {
	Lines    []byte
	Lost     string // log: what rotation has removed; line: one that is too long; empty: nothing
	From, To Place
}

// Next is what follows a place: lines of most bytes together, or one of fits bytes; nil: nothing does. At is moved on over the end of a file.
func (t Tail) Next(at *Place, most, fits int) (*Piece, error) {
	if len(t.files) == 0 {
		return nil, nil
	}
	i := slices.Index(t.names, at.File)
	switch {
	case i >= 0:
	case at.File == "":
		i, *at = 0, Place{t.names[0], 0}
	default:
		return &Piece{Lost: "log", From: *at, To: Place{t.names[0], 0}}, nil
	}
	for {
		p, err := pieceOf(t.files[i], *at, most, fits)
		if p != nil || err != nil || i == len(t.files)-1 {
			return p, err
		}
		i++
		*at = Place{t.names[i], 0}
	}
}

// pieceOf makes a piece of the lines of a file from a place on; nil: there is none.
func pieceOf(f *os.File, from Place, most, fits int) (*Piece, error) {
	for _, most := range []int{min(most, fits), maxLine} {
		lines := make([]byte, most)
		n, err := f.ReadAt(lines, from.Offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read event log: %w", err)
		}
		end := bytes.LastIndexByte(lines[:n], '\n') + 1
		if most == maxLine {
			end = bytes.IndexByte(lines[:n], '\n') + 1 // it is one that does not fit with others
		}
		to := Place{from.File, from.Offset + int64(end)}
		switch {
		case end == 0 && n < most:
			return nil, nil
		case end == 0 && most == maxLine:
			return &Piece{Lost: "line", From: from, To: Place{from.File, from.Offset + int64(n)}}, nil // what follows of it is no event to anybody
		case end > fits:
			return &Piece{Lost: "line", From: from, To: to}, nil
		case end > 0:
			return &Piece{Lines: lines[:end:end], From: from, To: to}, nil
		}
	}
	return nil, nil
}
