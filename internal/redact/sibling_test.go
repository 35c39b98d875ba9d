package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// swapped has every letter of ASCII in the other case.
func swapped(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return r
	}, s)
}

// wrapped puts something behind every n bytes.
func wrapped(s string, n int, gap string) string {
	var parts []string
	for ; len(s) > n; s = s[n:] {
		parts = append(parts, s[:n])
	}
	return strings.Join(append(parts, s), gap)
}

func reversed(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}

func entities(s, format string) string {
	var b strings.Builder
	for _, r := range s {
		fmt.Fprintf(&b, format, r)
	}
	return b.String()
}

// changed gives what servers make of a secret besides encodings.
func changed(secret string) map[string]string {
	b64 := base64.StdEncoding.EncodeToString([]byte("user:" + secret))
	all := map[string]string{
		"upper": strings.ToUpper(secret), "lower": strings.ToLower(secret), "title": strings.ToTitle(secret), "swapped": swapped(secret), "canonical": textproto.CanonicalMIMEHeaderKey(secret),
		"base64, upper": strings.ToUpper(b64), "base64, lower": strings.ToLower(b64), "base64, canonical": textproto.CanonicalMIMEHeaderKey(base64.RawURLEncoding.EncodeToString([]byte(secret))),
		"hex, mixed":     wrapped(strings.ToUpper(hex.EncodeToString([]byte(secret))), 1<<20, "")[:7] + hex.EncodeToString([]byte(secret))[7:],
		"percent, mixed": strings.ToLower(everyByte(secret)[:9]) + everyByte(secret)[9:], "percent, upper": strings.ToUpper(url.QueryEscape(secret)), "percent, lower": strings.ToLower(url.QueryEscape(secret)),
		"json, upper": ascii(strings.ToUpper(secret)), "html, decimal": entities(secret, "&#%d;"), "html, hexadecimal": entities(secret, "&#x%x;"), "html, HEX": entities(secret, "&#X%X;"),
		"html, bare": entities(secret, "&#%d"), "html, zeros": entities(secret, "&#%07d;"), "html, upper": html.EscapeString(strings.ToUpper(secret)),
		"html, named": strings.NewReplacer("_", "&lowbar;", "/", "&sol;", "+", "&plus;", "=", "&equals;", "@", "&commat;", "&", "&amp;").Replace(secret),
		"reversed":    reversed(secret), "reversed, upper": strings.ToUpper(reversed(secret)), "C": entities8(secret),
		"spaced": wrapped(secret, 1, " "), "halved": wrapped(secret, len(secret)/2, " "), "lines": wrapped(secret, 5, "\n"), "folded": wrapped(secret, 7, "\r\n\t "), "far apart": wrapped(secret, len(secret)/2, strings.Repeat(" ", 70)),
		"spaced, upper": wrapped(strings.ToUpper(secret), 3, "  "), "base64, lines": wrapped(b64, 9, "\r\n"), "base64, 4": wrapped(b64, 4, "\n    "), "hex, spaced": wrapped(hex.EncodeToString([]byte(secret)), 2, " "),
		"HEX, words": wrapped(strings.ToUpper(hex.EncodeToString([]byte(secret))), 4, " "), "base64, lines in JSON": wrapped(b64, 9, `\n`), "base64, CRLF in JSON": wrapped(b64, 9, `\r\n`), "base64, lines in URL": wrapped(b64, 9, "%0A"),
	}
	return all
}

// entities8 is text as C and Python write bytes.
func entities8(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, `\x%02x`, s[i])
	}
	return b.String()
}

// F33, V5: whatever the case of letters, and in pieces with white space between.
func TestF33ChangedV5(t *testing.T) {
	long := random(400)
	for i := range long {
		long[i] = std[long[i]%64]
	}
	for _, secret := range []string{"ghp_0123456789abcdefghijKLMNOP", "p@ss/w+rd=\"é%41&<k>ñ'x", "sk-ant-Api03-Z_y9.x8", "correct horse battery staple", string(long)} {
		s := scrubber(t, []byte(secret))
		for name, text := range changed(secret) {
			for _, around := range [][2]string{{"before: ", " :after"}, {"", ""}, {"\n", "\n"}, {"<b>", "</b>"}, {`{"x":"`, `"}`}} {
				whole := around[0] + text + around[1]
				rest := 0 // what may be left of it
				if strings.HasPrefix(name, "base64") {
					rest = len("dXNlcj\r\n    =") // what stood before the secret, and the sign behind it
				}
				for _, step := range []int{len(whole), 1, 3} {
					out := through(s, whole, step)
					left := len(strings.ReplaceAll(out, s.Marker(), "")) - len(around[0]+around[1])
					if !strings.HasPrefix(out, around[0]) || !strings.HasSuffix(out, around[1]) || !strings.Contains(out, s.Marker()) || left > rest {
						t.Errorf("%.40q, %s, by %d: %.200q", secret, name, step, out)
					}
				}
			}
		}
	}
}

// F33: in names of headers the case of letters never counts.
func TestF33Name(t *testing.T) {
	for _, secret := range []string{"hunterpw", "ghp_0123456789abcdefghij", "abcdefgh-ijklmnop", "12345678x"} {
		s := scrubber(t, []byte(secret))
		for _, name := range []string{secret, textproto.CanonicalMIMEHeaderKey(secret), "X-" + strings.ToUpper(secret), strings.ToLower(secret), textproto.CanonicalMIMEHeaderKey("x-" + secret)} {
			if out := s.Name(name); !strings.Contains(out, s.Marker()) || strings.Contains(strings.ToLower(out), strings.ToLower(secret)) {
				t.Errorf("%q: %q", name, out)
			}
		}
		for _, name := range []string{"Content-Type", "X-Request-Id", "Strict-Transport-Security", "Hunter"} {
			if out := s.Name(name); out != name {
				t.Errorf("%q became %q", name, out)
			}
		}
	}
}

// F33: short secrets that may be words or numbers are not found in ordinary text.
func TestF33OrdinaryTextStays(t *testing.T) {
	for _, c := range [][2]string{
		{"password", "PASSWORD Password passWord pass word drowssap"}, {"therapist", "the rapist THERAPIST"}, {"desserts", "stressed"}, {"12345678", "1234 5678 12 34 56 78"},
		{"summer2024", "summer 2024 summer\n2024"}, {"Location", "location LOCATION"}, {"no-store", "No-Store"},
		{"ghp_0123456789abcdefghij", "ghp_ 0123456789 abcdefghi ghp_0123456789abcdefghi\nk ghp_0123456789ab-cdefghij"},
		{"ghp_0123456789abcdefghij", "ghp_0123456789" + strings.Repeat(" ", 200) + "abcdefghij"},
	} {
		s := scrubber(t, []byte(c[0]))
		for _, step := range []int{1, 5, 1 << 20} {
			if out := through(s, c[1], step); out != c[1] {
				t.Errorf("%q: %q became %q", c[0], c[1], out)
			}
		}
	}
}

// kinds is what servers escape a text with, each of which may stand around another.
var kinds = map[string]func(string) string{
	"query": url.QueryEscape, "path": url.PathEscape, "every byte": everyByte, "lower": func(s string) string { return lowerPercent(url.QueryEscape(s)) },
	"html": html.EscapeString, "decimal": func(s string) string { return entities(s, "&#%d;") }, "zeros": func(s string) string { return entities(s, "&#x%012x;") },
	"json": func(s string) string { b, _ := json.Marshal(s); return string(b) }, "ascii": ascii, "C": entities8,
	"octal": func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			fmt.Fprintf(&b, `\%03o`, s[i])
		}
		return b.String()
	},
	"Python": func(s string) string { return entities(s, `\U%08x`) }, "JavaScript": func(s string) string { return entities(s, `\u{%x}`) }, "Rust": func(s string) string { return entities(s, `\u{%06X}`) },
}

// F33: escaped once, twice and three times, by one way or several.
func TestF33Layers(t *testing.T) {
	for _, secret := range []string{"ghp_0123456789abcdefghijKLMNOP", "p@ss/w+rd=\"é%41&<k>ñ'x", "a b+c d%20e/f\\u0041"} {
		s := scrubber(t, []byte(secret))
		check := func(name, text string) {
			t.Helper()
			whole := `"before": ` + text + "\n:after"
			for _, step := range []int{len(whole), 5} {
				out := through(s, whole, step)
				if !strings.HasPrefix(out, `"before": `) || !strings.HasSuffix(out, "\n:after") || !strings.Contains(out, s.Marker()) || len(out) > len(whole) && len(text) > 60 {
					t.Errorf("%s, %s, by %d: %.200q from %.200q", secret, name, step, out, whole)
				}
			}
		}
		for first, inner := range kinds {
			check(first, inner(secret))
			for second, outer := range kinds {
				check(first+" in "+second, outer(inner(secret)))
				for _, third := range []string{"query", "html", "json"} {
					if text := kinds[third](outer(inner(secret))); len(text) <= mostEscaped*len(secret) {
						check(first+" in "+second+" in "+third, text)
					}
				}
			}
		}
		if !strings.Contains(secret, "%") {
			check("one character, twice", "%25"+everyByte(secret[:1])[1:]+url.QueryEscape(secret[1:]))
		}
		check("bare, zeros", entities(secret, "&#0000000000000000000%d"))
		check("slashes, twice", strings.ReplaceAll(url.PathEscape(secret), "%", `\\u0025`))
		check("ampersands, twice", strings.ReplaceAll(entities(secret, "&#%d;"), "&", `\u0026amp;`))
	}
}

// F33: what has escapes in escapes costs a few passes, not more with its length.
func TestF33LayersCost(t *testing.T) {
	s := scrubber(t, []byte("ghp_0123456789abcdefghijKLMNOP"))
	for _, c := range []string{`\\\\u0067`, "%25252567", "&amp;amp;amp;#103;", `%255Cu0026amp;#103;`, `\`, "%25", "&amp;", "&#0", `\u{0`, `\\u0026%2526amp;%255C`} {
		text := []byte(strings.Repeat(c, 1<<18/len(c)))
		looked := s.looked(text)
		t.Logf("%s: %.1f", c, float64(looked)/float64(len(text)))
		if looked > 40*len(text) {
			t.Errorf("%s: %d bytes were looked at for %d", c, looked, len(text))
		}
	}
}

// looked is how many bytes are looked through for a text, of all layers.
func (s *Scrubber) looked(text []byte) int {
	var count func(text []byte, depth int) int
	count = func(text []byte, depth int) int {
		n := len(text)
		if depth == layers {
			return n
		}
		for _, e := range s.escapings {
			var d decoded
			for from, more := 0, true; more; {
				if from, more = e.next(&d, text, from, s); more {
					n += count(d.text, depth+1)
				}
			}
		}
		return n
	}
	return count(text, 0)
}
