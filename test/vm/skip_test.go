package vm

import "testing"

func TestSkip(t *testing.T) {
	both, long, user := Group{Long: "^TestA$/^b$", Newest: "^TestC$"}, Group{Long: "^TestA$"}, Group{Newest: "^TestC$"}
	for _, c := range []struct {
		group    Group
		failures string
		newest   bool
		want     string
	}{
		{both, "", true, "^TestA$/^b$"},
		{both, "", false, "^TestA$/^b$|^TestC$"},
		{both, "1", false, ""},
		{long, "", false, "^TestA$"},
		{user, "", false, "^TestC$"},
		{user, "", true, ""},
		{Group{}, "", false, ""},
	} {
		t.Setenv(failureEnv, c.failures)
		if got := c.group.skip(c.newest); got != c.want {
			t.Errorf("%+v, newest %v, failures %q: leaves out %q, %q expected", c.group, c.newest, c.failures, got, c.want)
		}
	}
}
