package toolguard

import (
	"strings"
	"testing"
)

// rules.txt is read strictly: each of these lines is refused, with its number.
func TestRulesAreStrict(t *testing.T) {
	const good = "list a x, y\nlet b words(x)\nrule c\n\tgroup commands\n\ton z $a: (b | arg($a)) & !flag(-, long)\n\tchanges logs\n"
	rules, err := InstalledNames().vocabulary().readRules(good)
	if err != nil || len(rules) != 1 || strings.Join(rules[0].On[0].Names, " ") != "z x y" || len(rules[0].On) != 1+len(onChanges(logs)) {
		t.Fatalf("%+v, %v", rules, err)
	}
	for _, line := range []string{
		"\tgroup other", "\twhy", "\tbecause x", "\tfiles $nothing", "\tchanges nothing", "\tedits nothing", "\tfound nothing x", "\ton a: nothing", "\ton a: has(nothing)", "\ton a: words(x", "\ton a: words(x))", "\ton a: (always",
		"\ton a: always &", "\ton a: always and always", "\ton a: touches(nothing)", "\ton a: touches(logs, logs)", "\ton a: flag(long)", "\ton a: flag(a, b, c)", "\ton a: enables(a, b)", "\ton a: nothing(x)", "\ton a: from()", "\ton a", "laws x",
	} {
		_, err := InstalledNames().vocabulary().readRules(good + line + "\n")
		if err == nil || !strings.HasPrefix(err.Error(), "rules.txt:7: ") {
			t.Errorf("%q: %v", line, err)
		}
	}
	if _, err := InstalledNames().vocabulary().readRules("\twhy x\n"); err == nil {
		t.Error("a line without a rule was accepted")
	}
}
