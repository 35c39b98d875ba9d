package gate

import (
	"testing"
)

// Each reason that a verdict may have belongs to a tier, and each code beside one to none.
func TestTiers(t *testing.T) {
	beside := map[Reason]bool{Unclaimed: true}
	for _, f := range Failures() {
		beside[f.Reason] = f.Then == Person
	}
	for _, r := range reasons() {
		if got := r.Tier(); (got == "") != beside[r] {
			t.Errorf("%s: tier %q, though beside a verdict is %v", r, got, beside[r])
		}
		if beside[r] && r.Decision() != Deny {
			t.Errorf("%s allows", r)
		}
	}
	for _, row := range Table() {
		if row.Reason != "" && (row.Reason.Decision() == Allow) != (row.Step == Pass) {
			t.Errorf("%s: %s, and the table says %s", row.Reason, row.Reason.Decision(), row.Step)
		}
	}
}
