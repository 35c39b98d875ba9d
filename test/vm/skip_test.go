package vm

import "testing"

func TestSkip(t *testing.T) {
	both, long, user := Group{Long: "^TestA$/^b$", Newest: "^TestC$"}, Group{Long: "^TestA$"}, Group{Newest: "^TestC$"}
	for _, c := range []struct {
		group    Group
		failures string
		load     string
		newest   bool
		want     string
	}{
		{both, "", "", true, "^TestA$/^b$"},
		{both, "", "", false, "^TestC$|^TestA$/^b$"},
		{both, "1", "", false, ""},
		{long, "", "", false, "^TestA$"},
		{long, "", "200,2000,10000", true, ""},
		{user, "", "", false, "^TestC$"},
		{user, "", "", true, ""},
		{Group{}, "", "", false, ""},
	} {
		t.Setenv(failureEnv, c.failures)
		t.Setenv(loadEnv, c.load)
		if got := c.group.skip(c.newest); got != c.want {
			t.Errorf("%+v, newest %v, failures %q, load %q: leaves out %q, %q expected", c.group, c.newest, c.failures, c.load, got, c.want)
		}
	}
}
