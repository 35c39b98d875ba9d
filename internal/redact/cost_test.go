package redact

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
)

// steps is how many bytes a search compares, for each byte of the text.
func steps(s *Scrubber, text []byte) float64 {
	search := search{finder: s.find, text: text, hit: func(found) {}}
	search.run()
	return float64(search.steps) / float64(len(text))
}

// F33: what repeats the beginning of a secret costs no more than its length, however long the secret is.
func TestF33Cost(t *testing.T) {
	const most = 16 // for each byte of the text, of about twenty forms together
	long := strings.Repeat("a", Most-1) + "b"
	pairs := strings.Repeat("ab", Most/2-1) + "ac"
	blanks := strings.Repeat("a ", Most/2-1) + "ab"
	for _, c := range []struct{ name, secret, text string }{
		{"other case", long, "A"}, {"own case", long, "a"}, {"with white space", long, "A "}, {"with much white space", long, "A" + strings.Repeat(" ", 100)}, {"with lines", long, strings.Repeat("a", 70) + "\r\n\t"},
		{"nearly", long, strings.Repeat("A", Most-1) + "x"}, {"found again and again", long, strings.Repeat("A", Most-1) + "B"},
		{"two", pairs, "AB"}, {"two, with white space", pairs, "A B"}, {"two, found", pairs[:Most-2], "AB"}, {"white space in it", blanks, "A "}, {"white space in it, more", blanks, "A  "}, {"white space in it, none", blanks, "A"},
		{"only white space", strings.Repeat(" ", Most-9) + "abcdefghi", " "}, {"base64", long, base64.StdEncoding.EncodeToString([]byte("aaa"))}, {"base64, apart", long, "Y W F h"},
		{"hexadecimal", long, "61"}, {"hexadecimal, apart", long, "6 1\n"}, {"UTF-16", long, "a\x00"}, {"window apart", long, strings.Repeat("a ", 126) + "a" + strings.Repeat(" ", 300)},
		{"a short one", "aaaaaaab", "A"}, {"no more white space than may be", long, strings.Repeat("A", 126) + strings.Repeat(" ", 317) + "A"},
	} {
		text := bytes.Repeat([]byte(c.text), (1<<20)/len(c.text))
		n := steps(scrubber(t, []byte(c.secret)), text)
		t.Logf("%s: %.1f", c.name, n)
		if n > most {
			t.Errorf("%s: %.1f steps for each byte, at most %d are wanted", c.name, n, most)
		}
	}
}

// Wherever one begins within another, both are found: what is compared already is not compared again.
func TestF33Overlaps(t *testing.T) {
	for _, c := range []struct{ secret, text, want string }{
		{"aaaaaaaaaaaaaaaaaaab", strings.Repeat("A", 50) + "B", strings.Repeat("A", 31) + "*"},
		{"aaaaaaaaaaaaaaaaaaab", strings.Repeat("A ", 50) + "B", strings.Repeat("A ", 31) + "*"},
		{"abababababababababac", strings.Repeat("AB", 20) + "ac", strings.Repeat("AB", 11) + "*"},
		{"abababababababababac", strings.Repeat("AB", 20) + "Ad" + strings.Repeat("a b", 9) + " ac", strings.Repeat("AB", 20) + "Ad*"},
		{"abcabcabcabcabcabcabc", strings.Repeat("ABC", 9), "*"},
		{"aabaaabaaaabaabaaab1", "aabaaabaaaAABAAABAAAABAABAAAB1", "aabaaabaaa*"},
		{"a a a a a a a a a a a a a a a a b", strings.Repeat("A ", 30) + "B", strings.Repeat("A ", 14) + "*"},
	} {
		s := scrubber(t, []byte(c.secret))
		if out := strings.ReplaceAll(s.String(c.text), s.Marker(), "*"); out != c.want {
			t.Errorf("%s in %s: %s, want %s", c.secret, c.text, out, c.want)
		}
	}
}
