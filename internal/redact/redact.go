package redact

import (
	"bytes"
	"io"
	"slices"
)

// Scrubber takes a few secrets out of texts. Its methods may be called at the same time, but for Wipe.
type Scrubber struct {
	find      *finder
	marker    string
	escapings []escaping
	member    [256]bool // bytes that forms have
	longest   int       // bytes of a form, without escapes
	hold      int       // bytes that a match may take, with escapes
}

// New makes a scrubber. Each secret has to pass Check. The caller wipes it.
func New(secrets ...[]byte) (*Scrubber, error) {
	s := &Scrubber{escapings: []escaping{byJSON, byPercent, byHTML}}
	var forms []form
	for _, secret := range secrets {
		if err := Check(secret); err != nil {
			return nil, err
		}
		forms = append(forms, formsOf(secret)...)
		if bytes.IndexByte(secret, ' ') >= 0 && len(s.escapings) == 3 {
			s.escapings = append(s.escapings, byForm)
		}
	}
	var err error
	if s.marker, err = markerFor(secrets); err != nil {
		return nil, err
	}
	s.find = newFinder(forms)
	s.longest = s.find.longest()
	for _, f := range forms {
		for _, b := range f.text {
			s.member[b], s.member[other[b]] = true, true
		}
		if f.edges != nil { // the characters at its edges may be any
			for i := range len(f.edges.alphabet) {
				s.member[f.edges.alphabet[i]] = true
			}
		}
	}
	s.hold = mostEscaped * s.longest
	return s, nil
}

// Wipe zeroes what the scrubber knows. It finds nothing any more.
func (s *Scrubber) Wipe() { s.find.wipe() }

// Marker is what stands in the place of a secret.
func (s *Scrubber) Marker() string { return s.marker }

// Hold is how many bytes of a stream may be kept back until it is known whether a secret begins in them.
func (s *Scrubber) Hold() int { return s.hold }

// Bytes gives a text without the secrets.
func (s *Scrubber) Bytes(text []byte) []byte { return s.scrub(text, false) }

// String gives a text without the secrets.
func (s *Scrubber) String(text string) string { return string(s.scrub([]byte(text), false)) }

// Name gives a word without the secrets, all of them in any case: who reads names of headers changes that of letters, and no ordinary name
// is like a secret.
func (s *Scrubber) Name(word string) string { return string(s.scrub([]byte(word), true)) }

func (s *Scrubber) scrub(text []byte, anyCase bool) []byte {
	var out bytes.Buffer
	w := s.Writer(&out)
	w.anyCase = anyCase
	_, _ = w.Write(text) // a buffer takes all
	_ = w.Close()
	return out.Bytes()
}

type span struct{ from, to int }

// spans lists where secrets stand, in order and without overlaps.
func (s *Scrubber) spans(text []byte, anyCase bool) []span {
	var all []span
	var undone [layers]decoded
	s.look(text, anyCase, undone[:0], &all)
	slices.SortFunc(all, func(a, b span) int { return a.from - b.from })
	joined := all[:0]
	for _, sp := range all {
		if n := len(joined); n > 0 && sp.from <= joined[n-1].to {
			joined[n-1].to = max(joined[n-1].to, sp.to)
			continue
		}
		joined = append(joined, sp)
	}
	return joined
}

// look adds to all where secrets stand in a text, of which some escapings are undone already.
func (s *Scrubber) look(text []byte, anyCase bool, undone []decoded, all *[]span) {
	s.find.find(text, anyCase, func(m found) {
		f, from, to := s.find.forms[m.form], m.from, m.to
		if f.edges != nil && from > 0 && f.shares(f.before, text[from-1], m.exact) {
			from--
		}
		if f.edges != nil && to < len(text) && f.shares(f.after, text[to], m.exact) {
			to++
		}
		for i := len(undone) - 1; i >= 0; i-- {
			from, _ = undone[i].origin(from)
			_, to = undone[i].origin(to - 1)
		}
		*all = append(*all, span{from, to})
	})
	if len(undone) == cap(undone) {
		return
	}
	undone = undone[:len(undone)+1]
	d := &undone[len(undone)-1]
	for _, e := range s.escapings {
		for from, more := 0, true; more; {
			if from, more = e.next(d, text, from, s); more {
				s.look(d.text, anyCase, undone, all)
			}
		}
	}
}

// Writer passes on what is written to it without the secrets. Close writes what was kept back; it does not close w.
func (s *Scrubber) Writer(w io.Writer) *Writer {
	return &Writer{s: s, to: w, block: max(64<<10, 4*s.hold)}
}

// Writer takes secrets out of a stream.
type Writer struct {
	s       *Scrubber
	to      io.Writer
	anyCase bool
	block   int
	text    []byte
	done    int  // of text is written already
	gone    bool // what was written last was the marker
	out     []byte
	err     error
}

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 && w.err == nil {
		part := p[:min(len(p), max(1, w.block-len(w.text)))]
		p = p[len(part):]
		w.text = append(w.text, part...)
		if len(w.text) >= w.block {
			w.flush(false)
		}
	}
	if w.err != nil {
		return 0, w.err
	}
	return n, nil
}

// Close implements io.Closer.
func (w *Writer) Close() error {
	if w.err == nil {
		w.flush(true)
	}
	clear(w.text[:cap(w.text)])
	return w.err
}

// Cut ends a stream of which more was to come: what is kept back may be the beginning of a secret, and is dropped.
func (w *Writer) Cut() error {
	if w.err == nil {
		w.flush(false)
	}
	clear(w.text[:cap(w.text)])
	return w.err
}

// flush writes what no later byte can change.
func (w *Writer) flush(end bool) {
	cut := len(w.text)
	if !end {
		cut = max(0, cut-w.s.hold)
	}
	w.out = w.out[:0]
	pos := w.done
	for _, sp := range w.s.spans(w.text, w.anyCase) {
		if sp.from >= cut {
			break
		}
		if sp.to <= pos {
			continue
		}
		if sp.from > pos || !w.gone {
			if sp.from > pos {
				w.out = append(w.out, w.text[pos:sp.from]...)
			}
			w.out = append(w.out, w.s.marker...)
		}
		pos, w.gone = sp.to, true
	}
	if pos < cut {
		w.out = append(w.out, w.text[pos:cut]...)
		pos, w.gone = cut, false
	}
	if _, err := w.to.Write(w.out); err != nil {
		w.err = err
	}
	// Decoding goes on where no escape is cut in two: after as many backslashes as all layers make of one, or several times as many,
	// counted from where the first one stood.
	keep := cut
	for keep > 0 && w.text[keep-1] == '\\' {
		keep--
	}
	keep += (cut - keep) &^ (1<<layers - 1)
	n := copy(w.text, w.text[keep:])
	clear(w.text[n:])
	w.text, w.done = w.text[:n], pos-keep
}
