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

// find calls hit for every place of every form, in the order of their windows. anyCase: also of forms that count in their own case only.
func (f *finder) find(text []byte, anyCase bool, hit func(found)) {
	skip := f.skip[:1<<16]
	for end := f.window; end <= len(text); {
		s := skip[pair(text[end-2], text[end-1])]
		if s-1 < blank-1 { // neither 0 nor blank
			end += int(s)
			continue
		}
		step := int(s &^ blank)
		if step == 0 {
			f.at(text, end-f.window, pair(lower[text[end-2]], lower[text[end-1]]), anyCase, hit)
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
			if from, last := f.apart(text, end); from >= 0 {
				f.at(text, from, last, anyCase, hit)
			}
		}
		end += max(step, 1)
	}
}

// apart is where a window begins that ends at end and has white space in it, and its last two bytes besides that; -1: there is none.
func (f *finder) apart(text []byte, end int) (from int, last uint16) {
	left, gaps := f.window, 0
	for from = end; left > 0 && from > 0 && gaps <= gapsIn(f.window); {
		if from--; space[text[from]] {
			gaps++
			continue
		}
		if f.window-left < 2 {
			last = last>>8 | uint16(lower[text[from]])<<8
		}
		left--
	}
	if left > 0 || gaps == 0 {
		return -1, 0
	}
	return from, last
}

// gapsIn is how many bytes of white space may stand in n bytes of a form.
func gapsIn(n int) int { return 2*n + 64 }

// at calls hit for the forms that begin at from, by the last two bytes of their window.
func (f *finder) at(text []byte, from int, last uint16, anyCase bool, hit func(found)) {
	for _, n := range f.ending[last] {
		form := &f.forms[n]
		if bytes.HasPrefix(text[from:], form.text) {
			hit(found{n, from, from + len(form.text), true})
			continue
		}
		if !form.fold && !anyCase && !form.join {
			continue
		}
		if to, exact := form.reaches(text, from, anyCase); to > 0 {
			hit(found{n, from, to, exact})
		}
	}
}

// reaches is where a form ends that begins at from, as far as its case and white space within it do not count; 0: it does not stand there.
func (f *form) reaches(text []byte, from int, anyCase bool) (to int, exact bool) {
	exact, gaps := true, 0
	for i := 0; i < len(f.text); from++ {
		if from >= len(text) {
			return 0, false
		}
		c := text[from]
		switch {
		case c == f.text[i]:
			i++
		case lower[c] == lower[f.text[i]] && (f.fold || anyCase):
			exact = false
			i++
		case i > 0 && f.join && space[c] && gaps < gapsIn(len(f.text)):
			gaps++
		default:
			return 0, false
		}
	}
	return from, exact
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
	}
	clear(f.skip)
	clear(f.ending)
	clear(f.beside[:])
}
