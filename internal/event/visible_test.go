package event_test

import (
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"weir/internal/event"
)

func TestB51Visible(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", `curl -H 'A: b' "x\y" ~!@#$%^&*()`, `curl -H 'A: b' "x\y" ~!@#$%^&*()`},
		{"empty", "", ""},
		{"colour", "\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`},
		{"title", "\x1b]0;owned\a", `\x1b]0;owned\x07`},
		{"other controls", "a\x00b\bc\x7fd\n\r\te", `a\x00b\x08c\x7fd\n\r\te`},
		{"C1 control", "\u009b31m\u0085", `\u009b31m\u0085`},
		{"line separators", "a\u2028b\u2029c", `a\u2028b\u2029c`},
		{"bidi override", "file\u202etxt.exe", `file\u202etxt.exe`},
		{"bidi isolates and marks", "\u2066a\u2067b\u2068c\u2069\u200e\u200f\u061c", `\u2066a\u2067b\u2068c\u2069\u200e\u200f\u061c`},
		{"right to left", "1.2.3.4 \u05d0\u0627\U0001e900", `1.2.3.4 \u05d0\u0627\U0001e900`},
		{"zero width", "a\u200bb\u200cc\u200dd\u2060e\ufefff", `a\u200bb\u200cc\u200dd\u2060e\ufefff`},
		{"soft hyphen, joiner, fillers", "a\u00adb\u034fc\u115f\u1160\u3164\uffa0\u2800", `a\u00adb\u034fc\u115f\u1160\u3164\uffa0\u2800`},
		{"variation selectors", "a\ufe0fb\U000e0100", `a\ufe0fb\U000e0100`},
		{"tags", "x\U000e0041", `x\U000e0041`},
		{"spaces", "rm\u00a0-rf\u2003x\u3000y", `rm\u00a0-rf\u2003x\u3000y`},
		{"private and unassigned", "\ue000\u0378\U0010ffff", `\ue000\u0378\U0010ffff`},
		{"invalid UTF-8", "a\xff\xc0\x80\xed\xa0\x80b", `a\xff\xc0\x80\xed\xa0\x80b`},
		{"replacement character", "\ufffd", "\ufffd"},
		{"Cyrillic in Latin", "https://pаypal.com", `https://p\u0430ypal.com`},
		{"Greek in Latin", "gοοgle", `g\u03bf\u03bfgle`},
		{"all alike", "https://аррӏе.com", `https://\u0430\u0440\u0440\u04cf\u0435.com`},
		{"alike capitals", "ТОР", `\u0422\u041e\u0420`},
		{"Cyrillic word", "привет, мир", "привет, мир"},
		{"Greek word", "κόσμος", "κόσμος"},
		{"Chinese, Japanese, Korean", "日本語 カタカナ 한국어", "日本語 カタカナ 한국어"},
		{"accents", "é ü ł ñ ş ệ", "é ü ł ñ ş ệ"},
		{"combining accent", "cafe\u0301", "cafe\u0301"},
		{"combining accent on nothing", " \u0301", ` \u0301`},
		{"combining accent on what is escaped", "pа\u0301y", `p\u0430\u0301y`},
		{"stacked marks", "a\u0301\u0302\u0303\u0304b", "a\u0301\u0302\u0303\\u0304b"},
		{"Hangul in parts", "\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165 \uac00\u11ab \ua960\ud7b0\ud7cb", "\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165 \uac00\u11ab \ua960\ud7b0\ud7cb"},
		{"Hangul vowels alone", "\u1161\u1175 \u11ab \ud7b0\ud7cb\u0301", `\u1161\u1175 \u11ab \ud7b0\ud7cb\u0301`},
		{"Hangul vowels on a syllable", "한\u1161\u1175\u11ab가\u1161 日\u1161", `한\u1161\u1175\u11ab가\u1161 日\u1161`},
		{"too many Hangul vowels and finals", "\u1112\u1161\u1161\u11ab\u1112\u1161\u11ab\u11ab가\u11ab\u11ab", "\u1112\u1161\\u1161\\u11ab\u1112\u1161\u11ab\\u11ab가\u11ab\\u11ab"},
		{"Hangul vowel on what is escaped", "x\u1112\u1161 \u115f\u1161", `x\u1112\u1161 \u115f\u1161`},
		{"Hangul with stacked marks", "\u1112\u1161\u11ab\u0301\u0302", "\u1112\u1161\u11ab\u0301\\u0302"},
		{"struck out", "r\u0336m", `r\u0336m`},
		{"full width", "ｃｕｒｌ", `\uff43\uff55\uff52\uff4c`},
		{"mathematical", "𝐜url", `\U0001d41curl`},
		{"phonetic", "ɡoogle", `\u0261oogle`},
		{"numerals", "exampⅼe", `examp\u217ce`},
		{"slashes and dots", "a.com⁄b∕c／d．e․f﹒g⒈h", `a.com\u2044b\u2215c\uff0fd\uff0ee\u2024f\ufe52g\u2488h`}, // F13: browsers take the last two for dots
		{"colons and hyphens", "a∶b‐‑c", `a\u2236b\u2010\u2011c`},
		{"other digits", "1\u0967.0.0.1 १२", `1\u0967.0.0.1 १२`},
		{"symbols", "→ – “x” 🙂 €", "→ – “x” 🙂 €"},
	} {
		if got := event.Visible(c.in); got != c.want {
			t.Errorf("%s: Visible(%+q) = %+q, want %+q", c.name, c.in, got, c.want)
		}
	}
}

// harmless says what about s could deceive a reader, if anything.
func harmless(s string) string {
	if !utf8.ValidString(s) {
		return "invalid UTF-8"
	}
	for _, r := range s {
		switch {
		case !strconv.IsPrint(r):
			return "a character that does not print"
		case unicode.In(r, unicode.Bidi_Control, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
			return "an invisible character"
		case unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Adlam):
			return "text from right to left"
		}
	}
	return ""
}

func FuzzVisible(f *testing.F) {
	for _, s := range []string{"plain", "pаypal.com", "\x1b[2J\u009b", "a\u202eb\u200b", "\xff\xed\xa0\x80", "r\u0336m\u0301\u0302\u0303\u0304", "é日\u05d0\U000e0041", `\x1b$'`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := event.Visible(s)
		if wrong := harmless(got); wrong != "" {
			t.Errorf("Visible(%+q) = %+q has %s", s, got, wrong)
		}
		if harmless(s) == "" && isASCII(s) && got != s {
			t.Errorf("Visible(%q) = %q", s, got)
		}
		for field := range strings.FieldsFuncSeq(got, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) }) {
			latin := strings.ContainsFunc(field, func(r rune) bool { return r < 0x80 && unicode.IsLetter(r) })
			cyrillic := strings.ContainsFunc(field, func(r rune) bool { return unicode.Is(unicode.Cyrillic, r) && unicode.IsLetter(r) })
			if latin && cyrillic && !strings.Contains(got, `\`) { // an escape's last letters may touch a Cyrillic word
				t.Errorf("Visible(%+q) = %+q mixes scripts in %q", s, got, field)
			}
		}
		var b strings.Builder
		e := sample()[2]
		e.Question, e.Message, e.Container.Name, e.Process.Argv, e.Process.Exe.Path = s, s, s, []string{s, s}, s
		e.Destination.Address, e.Destination.Protocol = s, s
		if err := event.Print(&b, e); err != nil {
			t.Fatal(err)
		}
		line, ended := strings.CutSuffix(b.String(), "\n")
		if wrong := harmless(line); wrong != "" || !ended {
			t.Errorf("Print writes %+q: %s", line, wrong)
		}
	})
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}
