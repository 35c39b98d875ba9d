package show

import (
	"strings"
	"time"
	"unicode/utf8"

	"weir/internal/event"
)

// Columns is how many columns of a terminal a text may take, rather too many than too few: what is more than ASCII is wide in some
// terminals, and a mark stands alone in others.
func Columns(s string) int {
	n := 0
	for _, r := range s {
		n += columns(r)
	}
	return n
}

func columns(r rune) int {
	if r < utf8.RuneSelf {
		return 1
	}
	return 2
}

// Cut is the start of a line that fits. It parts no letter from its marks.
func Cut(s string, width int) string {
	used, letter := 0, 0
	for i, r := range s {
		if !event.Mark(r) {
			letter = i
		}
		if used += columns(r); used > width {
			return s[:letter]
		}
	}
	return s
}

// Shorten is a line that fits, and says so where it had to be cut.
func Shorten(s string, width int) string {
	if Columns(s) <= width {
		return s
	}
	return Cut(Cut(s, width-columns('…'))+"…", width)
}

// Wrap breaks a line into those that fit, all of it. Each but the first begins with indent blanks, so that none can pose as another
// line (B51).
func Wrap(s string, width, indent int) []string {
	indent = min(indent, max(width-minRoom, 0))
	var lines []string
	for first := true; s != "" || first; first = false {
		lead := strings.Repeat(" ", indent)
		if first {
			lead = ""
		}
		part := Cut(s, width-len(lead))
		if part == "" { // no room for what is wide
			_, n := utf8.DecodeRuneInString(s)
			part = s[:n]
		}
		lines, s = append(lines, lead+part), s[len(part):]
	}
	return lines
}

// minRoom is how many columns lines have at least besides their blanks: a letter and its marks.
const minRoom = 8

// Time is a time as people read it, in UTC.
func Time(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// Plural is one for 1, else many.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
