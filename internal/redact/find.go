package redact

import "bytes"

// finder finds any of several texts by the algorithm of Wu and Manber: it skips as far as the shortest of them allows. Upper and lower case of
// ASCII, and white space within, are passed over where a form allows it.
type finder struct {
	forms  []form
	window int              // bytes of each form that are hashed; all forms have them
	skip   []uint8          // by the last two bytes of a window, in any case; blank says that one of them is white space
	ending map[uint16][]int // forms, by the last two bytes of their window, in lower case
	beside [1 << 13]byte    // bits of all pairs of bytes that forms have beside each other, in lower case
}

// blank is set in skips of pairs with white space.
const blank = 0x80

// found is where a form stands.
type found struct {
	form     int
	from, to int
	exact    bool // in its own case
}

func newFinder(forms []form) *finder {
	f := &finder{forms: forms, window: blank - 1, skip: make([]uint8, 1<<16), ending: map[uint16][]int{}}
	for _, form := range forms {
		f.window = min(f.window, len(form.text))
	}
	for i := range f.skip {
		f.skip[i] = uint8(f.window - 1)
	}
	for n, form := range forms {
		forms[n].again = repeats(form.text)
		for i := 2; i <= f.window; i++ {
			a, b := form.text[i-2], form.text[i-1]
			for _, at := range [4]uint16{pair(a, b), pair(other[a], b), pair(a, other[b]), pair(other[a], other[b])} {
				f.skip[at] = min(f.skip[at], uint8(f.window-i))
			}
		}
		at := pair(lower[form.text[f.window-2]], lower[form.text[f.window-1]])
		f.ending[at] = append(f.ending[at], n)
		for i := 1; i < len(form.text); i++ {
			at := pair(lower[form.text[i-1]], lower[form.text[i]])
			f.beside[at>>3] |= 1 << (at & 7)
		}
	}
	for a := range 256 {
		for b := range 256 {
			if space[a] || space[b] {
				f.skip[pair(byte(a), byte(b))] |= blank
			}
		}
	}
	return f
}

func pair(a, b byte) uint16 { return uint16(a)<<8 | uint16(b) }

// lower is each byte as a small letter of ASCII, other in the other case, space whether it is white space.
var lower, other, space = func() (l, o [256]byte, s [256]bool) {
	for i := range 256 {
		l[i], o[i] = byte(i), byte(i)
	}
	for c := byte('a'); c <= 'z'; c++ {
		l[c-'a'+'A'], o[c-'a'+'A'], o[c] = c, c, c-'a'+'A'
	}
	for _, c := range "\t\n\v\f\r " {
		s[c] = true
	}
	return l, o, s
}()

// search is one pass of a finder over a text.
type search struct {
	*finder
	text    []byte
	anyCase bool // also forms that count in their own case only
	hit     func(found)
	reached []reached // of each form: where it was begun in one piece, and with white space
	pieces  pieces
	steps   int // bytes compared, for tests
}

// reached is how far a form was compared. One that begins within need not be compared there again, so that a text costs the same
// whatever repeats in it.
type reached struct {
	from, to int // of text
	first, n int // bytes of the form: before from, and before to
	gaps     int // white space from from to to
}

// find calls hit for every place of every form, in the order of their windows. anyCase: also of forms that count in their own case only.
func (f *finder) find(text []byte, anyCase bool, hit func(found)) {
	s := search{finder: f, text: text, anyCase: anyCase, hit: hit}
	s.run()
}

func (f *search) run() {
	text, skip := f.text, f.skip[:1<<16]
	for end := f.window; end <= len(text); {
		s := skip[pair(text[end-2], text[end-1])]
		if s-1 < blank-1 { // neither 0 nor blank
			end += int(s)
			continue
		}
		step := int(s &^ blank)
		if step == 0 {
			f.at(end-f.window, pair(lower[text[end-2]], lower[text[end-1]]), false)
		}
		if s >= blank { // what ends here may have white space in it
			if !space[text[end-1]] {
				before := end - 2
				for before >= 0 && space[text[before]] {
					before--
				}
				if before >= 0 {
					step = min(step, int(skip[pair(text[before], text[end-1])]))
				}
			} else {
				step = 1
			}
		}
		if step == 0 {
			if from, last := f.apart(end); from >= 0 {
				f.at(from, last, true)
			}
		}
		end += max(step, 1)
	}
}

// apart is where a window begins that ends at end and has white space in it, and its last two bytes besides that; -1: there is none.
// From a window before, it goes on: a text costs the same whatever repeats in it.
func (f *search) apart(end int) (from int, last uint16) {
	text, w := f.text, &f.pieces
	if end-w.to > f.window || w.to == 0 { // few bytes of a text are looked at: this is far from it
		*w = pieces{from: end, to: end}
		for w.n < f.window && w.from > 0 && w.gaps <= gapsIn(f.window) {
			f.steps++
			if w.from--; space[text[w.from]] {
				w.gaps++
				continue
			}
			if w.n < 2 {
				w.last = w.last>>8 | uint16(lower[text[w.from]])<<8
			}
			w.n++
		}
	}
	for ; w.to < end; w.to++ {
		f.steps++
		if c := text[w.to]; space[c] {
			w.gaps++
		} else {
			w.n++
			w.last = w.last<<8 | uint16(lower[c])
		}
	}
	for ; w.from < end && (w.n > f.window || w.gaps > gapsIn(f.window) || space[text[w.from]]); w.from++ {
		f.steps++
		if space[text[w.from]] {
			w.gaps--
		} else {
			w.n--
		}
	}
	if w.n < f.window || w.gaps == 0 {
		return -1, 0
	}
	return w.from, w.last
}

// pieces is a stretch of text with white space in it.
type pieces struct {
	from, to, n, gaps int    // n: other bytes than white space
	last              uint16 // the last two of these, in lower case
}

// gapsIn is how many bytes of white space may stand in n bytes of a form.
func gapsIn(n int) int { return 2*n + 64 }

// at calls hit for the forms that begin at from, by the last two bytes of their window; apart says that white space is in it.
func (f *search) at(from int, last uint16, apart bool) {
	for _, n := range f.ending[last] {
		form := &f.forms[n]
		switch {
		case apart && !form.join:
		case form.fold:
			if f.reached == nil {
				f.reached = make([]reached, 2*len(f.forms))
			}
			seen := &f.reached[2*n]
			if apart {
				seen = &f.reached[2*n+1]
			}
			if to, exact := f.reaches(form, from, seen); to > 0 {
				f.hit(found{n, from, to, exact})
			}
		default: // a short one
			to := from + len(form.text)
			if to > len(f.text) {
				continue
			}
			f.steps += len(form.text)
			exact := bytes.Equal(f.text[from:to], form.text)
			if exact || f.anyCase && sameFold(f.text[from:to], form.text) {
				f.hit(found{n, from, to, exact})
			}
		}
	}
}

func sameFold(a, b []byte) bool {
	for i := range a {
		if lower[a[i]] != lower[b[i]] {
			return false
		}
	}
	return true
}

// reaches is where a form ends that begins at from, as far as its case and white space within it do not count; 0: it does not stand there.
// exact says that it is known to be in its own case.
func (f *search) reaches(form *form, from int, seen *reached) (to int, exact bool) {
	text := f.text
	if lower[text[from]] != lower[form.text[0]] {
		return 0, false
	}
	i, gaps, pos := 0, 0, from
	exact = true
	if from < seen.to {
		for ; seen.from < from; seen.from++ {
			if f.steps++; form.join && space[text[seen.from]] {
				seen.gaps--
			} else {
				seen.first++
			}
		}
		if form.again[seen.first] < seen.n-seen.first {
			return 0, false
		}
		i, gaps, pos, exact = seen.n-seen.first, seen.gaps, seen.to, false
	}
	began := pos
	for ; i < len(form.text) && pos < len(text); pos++ {
		c := text[pos]
		if c == form.text[i] {
			i++
		} else if lower[c] == lower[form.text[i]] {
			exact = false
			i++
		} else if form.join && space[c] && gaps < gapsIn(len(form.text)) {
			gaps++
		} else {
			break
		}
	}
	f.steps += pos - began + 1
	*seen = reached{from, pos, 0, i, gaps}
	if i < len(form.text) {
		return 0, false
	}
	return pos, exact
}

// repeats says of each place in a text how far it goes on as at its beginning, in any case (the Z algorithm).
func repeats(text []byte) []int {
	z := make([]int, len(text))
	from, to := 0, 0
	for i := 1; i < len(text); i++ {
		if i < to {
			z[i] = min(to-i, z[i-from])
		}
		for i+z[i] < len(text) && lower[text[z[i]]] == lower[text[i+z[i]]] {
			z[i]++
		}
		if i+z[i] > to {
			from, to = i, i+z[i]
		}
	}
	z[0] = len(text)
	return z
}

// follows says whether two bytes stand beside each other in some form, in any case.
func (f *finder) follows(a, b byte) bool {
	at := pair(lower[a], lower[b])
	return f.beside[at>>3]>>(at&7)&1 == 1
}

func (f *finder) longest() int {
	most := 0
	for _, form := range f.forms {
		n := len(form.text) + 2 // and its edges
		if form.join {
			n += gapsIn(len(form.text))
		}
		most = max(most, n)
	}
	return most
}

// wipe zeroes the forms.
func (f *finder) wipe() {
	for _, form := range f.forms {
		clear(form.text)
		clear(form.again)
	}
	clear(f.skip)
	clear(f.ending)
	clear(f.beside[:])
}
