package show

import (
	"regexp"
	"testing"

	"weir/internal/event"
)

// TestF13Defang: nothing in a text is a link any more, or the name of a place to go (F13).
func TestF13Defang(t *testing.T) {
	for s, want := range map[string]string{
		"fetch https://evil.example/a?b=1.2 now": "fetch https[:]//evil[.]example/a?b=1[.]2 now",
		"HTTP://[::1]/x":                         "HTTP[:]//[::1]/x",
		"evil.example, www.a.b.c.":               "evil[.]example, www[.]a[.]b[.]c.",
		"mailto:a@b.example javascript:alert(1)": "mailto[:]a[at]b[.]example javascript[:]alert(1)",
		"data:text/html,x":                       "data[:]text/html,x",
		"[click](http://a.b) ![](//a.b/i)":       "[click] (http[:]//a[.]b) ![] (//a[.]b/i)",
		"http&#58;//a&period;b":                  "http[&]#58;//a[&]period;b",
		"evil。example":                           "evil[.]example",
		"evil．example｡org":                       "evil[.]example[.]org",
		"www․evil․example":                       "www[.]evil[.]example",
		"пример.рф":                              "пример[.]рф",
		"10.0.0.1:443, example.org:443":          "10[.]0[.]0[.]1:443, example[.]org[:]443",
		"It sends a file. Really: no.":           "It sends a file. Really: no.",
		"a:b:c:d:e":                              "a[:]b[:]c[:]d[:]e",
	} {
		if got := Defang(s); got != want {
			t.Errorf("%q became %q, want %q", s, got, want)
		}
	}
}

func FuzzDefang(f *testing.F) {
	for _, s := range []string{"https://a.b.c", "..a..b", "a@b.c", "[.]", "a.[.]b", "x://y://z", "a:b:c", "&#58;&a;", "](](", "a。b.c", "][][", "a:[:b", "](@", "a.@0", "@(x)"} {
		f.Add(s)
	}
	alive := regexp.MustCompile(`://|@|[A-Za-z0-9][.。][A-Za-z0-9]|[A-Za-z]:[A-Za-z/]|\]\(|&#?[A-Za-z0-9]+;`)
	f.Fuzz(func(t *testing.T, s string) {
		s = event.Visible(s)
		once := Defang(s)
		if found := alive.FindString(once); found != "" {
			t.Errorf("%q became %q, in which %q is live", s, once, found)
		}
		if twice := Defang(once); twice != once {
			t.Errorf("%q, then %q", once, twice)
		}
	})
}
