package commands

import (
	"strings"
	"testing"
)

// The catalogue is read strictly: each of these lines is refused, with its number.
func TestCatalogueIsStrict(t *testing.T) {
	const good = "let all reads\ntable t a x\ntable t a y\ntable t b\nfamily text Text\ncat\n\tis local any\n\twhy $all; prints\n\tsub x\n\t\tis grey\nfamily wrappers Wrappers\nnice\n\tshort n:\n"
	c, err := readCatalogue(good)
	if err != nil || c.plain["cat"].Why != "reads; prints" || c.plain["cat"].Sub[0].Names != "x" || c.wrappers["nice"].Short != "n:" || len(c.families) != 1 {
		t.Fatalf("%+v, %v", c, err)
	}
	if b, ok := c.tables["t"]["b"]; c.tables["t"]["a"] != "x y" || b != "" || !ok {
		t.Errorf("%v", c.tables)
	}
	for _, line := range []string{
		"\tclass local", "\tis loca", "\tis local anny", "\tis local short", "\tany x", "\tvalue reed -o", "\trest data read", "\tlead data x", "\trefuse -x", "\tmax 0", "\tmax many", "\tskip -1", "\tskips letters",
		"\tcheck nothing", "\tlanguage go", "\tfacts fast", "\twhy", "\twhy $nothing", "\twhy $nothing; more", "\t\tis local", "\tsub y\n\t\t\tis local", "alone --version", "family\n\tis local",
	} {
		text := strings.Replace(good, "\twhy $all", line+"\n\twhy $all", 1)
		if _, err := readCatalogue(text); err == nil || !strings.HasPrefix(err.Error(), "catalogue.txt:") {
			t.Errorf("%q: %v", line, err)
		}
	}
	if _, err := readCatalogue("cat\n"); err == nil {
		t.Error("an entry without a family was accepted")
	}
}

// BenchmarkCatalogue: reading it, which every start that judges a command pays once.
func BenchmarkCatalogue(b *testing.B) {
	for b.Loop() {
		if _, err := readCatalogue(catalogueText); err != nil {
			b.Fatal(err)
		}
	}
}
