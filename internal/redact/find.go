package redact

import "bytes"

// finder finds any of several texts by the algorithm of Wu and Manber: it skips as far as the shortest of them allows.
type finder struct {
	forms  []form
	window int // bytes of each form that are hashed; all forms have them
	skip   []uint8
	ending map[uint16][]int // forms, by the last two bytes of their window
}

func newFinder(forms []form) *finder {
	f := &finder{forms: forms, window: 255, skip: make([]uint8, 1<<16), ending: map[uint16][]int{}}
	for _, form := range forms {
		f.window = min(f.window, len(form.text))
	}
	for i := range f.skip {
		f.skip[i] = uint8(f.window - 1)
	}
	for n, form := range forms {
		for i := 2; i <= f.window; i++ {
			at := pair(form.text[i-2], form.text[i-1])
			f.skip[at] = min(f.skip[at], uint8(f.window-i))
		}
		at := pair(form.text[f.window-2], form.text[f.window-1])
		f.ending[at] = append(f.ending[at], n)
	}
	return f
}

func pair(a, b byte) uint16 { return uint16(a)<<8 | uint16(b) }

// find calls hit for every place of every form, in the order of their windows.
func (f *finder) find(text []byte, hit func(n, from, to int)) {
	skip := f.skip[:1<<16]
	for end := f.window; end <= len(text); {
		at := pair(text[end-2], text[end-1])
		if s := skip[at]; s > 0 {
			end += int(s)
			continue
		}
		from := end - f.window
		for _, n := range f.ending[at] {
			if bytes.HasPrefix(text[from:], f.forms[n].text) {
				hit(n, from, from+len(f.forms[n].text))
			}
		}
		end++
	}
}

func (f *finder) longest() int {
	most := 0
	for _, form := range f.forms {
		most = max(most, len(form.text)+2) // and its edges
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
}
