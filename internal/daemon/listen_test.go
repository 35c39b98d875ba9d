package daemon

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/control"
	"weir/internal/policy"
)

// Groups are found by name or number, and a policy with one that is not there is refused.
func TestRolesOf(t *testing.T) {
	got, err := rolesOf(policy.Control{Look: []string{"root", "70001"}, Answer: []string{"0"}})
	if diff := cmp.Diff(control.Roles{Look: []uint32{0, 70001}, Answer: []uint32{0}}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, name := range []string{"no-such-group", "4294967295", "4294967296", "-1"} {
		if got, err := rolesOf(policy.Control{Taint: []string{name}}); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
