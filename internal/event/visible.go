package event

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible returns s for a person who has to trust what it looks like (B51). Control
// characters, escapes, text from right to left and what sets its direction, invisible and other
// non-printing characters and bytes that are not UTF-8 become \n, \x1b, \u202e; so do letters
// and digits of another script in a word with Latin ones (p\u0430ypal.com), words of
// another script that look all Latin, variants of Latin letters, and look-alikes
// of the slash and dot. Backslashes of s stay as they are: the result is to be read, not to be
// read back. It is printable, one line, and the same for printable ASCII.
func Visible(s string) string {
	if plainASCII(s) {
		return s
	}
	var b strings.Builder
	escape(s, func(r rune) { b.WriteRune(r) }, func(text string) { b.WriteString(text) })
	return b.String()
}

func plainASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// escape walks s: as it is for what may be shown, escaped for the escape of all else.
func escape(s string, asIs func(rune), escaped func(string)) {
	for len(s) > 0 {
		n := 0 // length of a word: letters, digits and their marks
		for n < len(s) {
			r, size := utf8.DecodeRuneInString(s[n:])
			if !inWord(r) || r == utf8.RuneError && size == 1 {
				break
			}
			n += size
		}
		if n > 0 {
			escapeWord(s[:n], asIs, escaped)
			s = s[n:]
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			escaped(fmt.Sprintf(`\x%02x`, s[0]))
		case !strconv.IsPrint(r) || deceptive(r) || strings.ContainsRune(likeASCII, r):
			escaped(code(r))
		default:
			asIs(r)
		}
		s = s[size:]
	}
}

// inWord also holds invisible letters: they must not end a word's look-alike check.
func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// code is a character as a bash string in $” writes it.
func code(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// deceptive says that r prints, but shows nothing, hides what it stands on, or
// runs from right to left, which moves the text around it.
func deceptive(r rune) bool {
	return r >= 0x80 && (Unseen(r) || unicode.In(r, overlays, rightToLeft))
}

// Unseen says that r shows nothing: what Unicode calls default ignorable, with all that only steers the text around it (format characters,
// but for the few that print), variation selectors, fillers and tags, assigned or not (F38).
func Unseen(r rune) bool {
	return r >= 0x80 && unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// escapeWord handles a word without gaps.
func escapeWord(word string, asIs func(rune), escaped func(string)) {
	latin, digit, others, alike := false, false, 0, 0
	for _, r := range word {
		switch {
		case r < 0x80:
			latin = latin || !unicode.IsDigit(r)
			digit = digit || unicode.IsDigit(r)
		case unicode.Is(unicode.Latin, r):
			latin = true
		case unicode.IsLetter(r):
			others++
			if strings.ContainsRune(likeLatin, r) {
				alike++
			}
		}
	}
	strange := latin || others > 0 && others == alike
	marks, shown := 0, false // marks on the last base, and whether that was shown
	before := rune(0)        // the character before, if it was shown
	for _, r := range word {
		if Mark(r) {
			marks++
		} else {
			marks = 0
		}
		hide := !strconv.IsPrint(r) || deceptive(r) || unicode.Is(variants, r)
		switch {
		case r < 0x80 || hide:
		case unicode.Is(conjoining, r):
			hide = strange || !conjoins(before, r)
		case unicode.IsMark(r):
			hide = !shown || marks > maxMarks
		case unicode.IsLetter(r):
			hide = strange && !unicode.Is(unicode.Latin, r)
		case unicode.IsDigit(r):
			hide = strange || digit
		}
		if marks == 0 {
			shown = !hide
		}
		if hide {
			before = 0
			escaped(code(r))
		} else {
			before = r
			asIs(r)
		}
	}
}

// Mark says that r has no width of its own: it stands on the letter before it.
func Mark(r rune) bool { return unicode.IsMark(r) || unicode.Is(conjoining, r) }

// conjoining is Hangul vowels and final consonants that are parts of a syllable. Terminals show nothing for one that does not
// complete the syllable before it (F08).
var conjoining = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1160, Hi: 0x11ff, Stride: 1},
		{Lo: 0xd7b0, Hi: 0xd7ff, Stride: 1},
	},
}

// conjoins says whether r completes a Hangul syllable: a vowel after a leading consonant, a final consonant after a vowel, or after
// a syllable that has none.
func conjoins(before, r rune) bool {
	if vowel(r) {
		return before >= 0x1100 && before <= 0x115f || before >= 0xa960 && before <= 0xa97f
	}
	return vowel(before) || before >= 0xac00 && before <= 0xd7a3 && (before-0xac00)%28 == 0
}

func vowel(r rune) bool { return r >= 0x1160 && r <= 0x11a7 || r >= 0xd7b0 && r <= 0xd7c6 }

// maxMarks is how many marks one letter may carry: more run over the lines around it.
const maxMarks = 3

// overlays is marks that strike out or enclose what they stand on, and a blank.
var overlays = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x0334, Hi: 0x0338, Stride: 1},
		{Lo: 0x20d0, Hi: 0x20ff, Stride: 1},
		{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // an empty braille cell
	},
}

// rightToLeft is the blocks of Hebrew, Arabic and other scripts of that direction.
var rightToLeft = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x0590, Hi: 0x08ff, Stride: 1},
		{Lo: 0xfb1d, Hi: 0xfdff, Stride: 1},
		{Lo: 0xfe70, Hi: 0xfeff, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x10800, Hi: 0x10fff, Stride: 1},
		{Lo: 0x1e800, Hi: 0x1efff, Stride: 1},
	},
}

// variants is Latin letters and digits in a form that is not used to write a language
// and looks like the usual one: phonetic, small capital, numeral, full-width,
// mathematical, segmented.
var variants = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x01c0, Hi: 0x01c3, Stride: 1},
		{Lo: 0x0250, Hi: 0x02af, Stride: 1},
		{Lo: 0x1d00, Hi: 0x1dbf, Stride: 1},
		{Lo: 0x2100, Hi: 0x214f, Stride: 1},
		{Lo: 0xff10, Hi: 0xff19, Stride: 1},
		{Lo: 0xff21, Hi: 0xff3a, Stride: 1},
		{Lo: 0xff41, Hi: 0xff5a, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x1d400, Hi: 0x1d7ff, Stride: 1},
		{Lo: 0x1fbf0, Hi: 0x1fbf9, Stride: 1},
	},
}

const (
	// likeLatin is letters that look like Latin ones in common fonts: Cyrillic, Greek, Armenian.
	likeLatin = "аеорсухіјѕԁԛԝһӏѵҽү" + "АВЕКМНОРСТУХІЈЅԌԚԜҮӀѴҺ" +
		"οανρυϲϳ" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹͿ" +
		"օոսհցզքաԼՍՏՕ"
	// likeASCII is symbols that look like those of addresses and paths: / . : @ - _ \ and
	// numerals that look like letters.
	likeASCII = "⁄∕⧸╱／" + "․．｡﹒⒈⒉⒊⒋⒌⒍⒎⒏⒐⒑⒒⒓⒔⒕⒖⒗⒘⒙⒚⒛" + "∶：꞉" + "＠﹫" + "‐‑−﹣－" + "＿" + "∖⧵＼﹨" +
		"ⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩⅪⅫⅬⅭⅮⅯⅰⅱⅲⅳⅴⅵⅶⅷⅸⅹⅺⅻⅼⅽⅾⅿ"
)
