package cgroup

import "testing"

func TestBelow(t *testing.T) { // B28
	for _, c := range []struct {
		path, parent string
		want         bool
	}{
		{"/weir/g-1", "/weir/g-1", true},
		{"/weir/g-1/nested", "/weir/g-1", true},
		{"/weir/g-10", "/weir/g-1", false},
		{"/weir", "/weir/g-1", false},
		{"/", "/weir", false},
		{"/weir/g-1", "/", true},
	} {
		if got := Below(c.path, c.parent); got != c.want {
			t.Errorf("Below(%q, %q) = %v", c.path, c.parent, got)
		}
	}
}

func TestDir(t *testing.T) {
	for path, want := range map[string]string{
		"/weir": Root + "/weir", "weir/": Root + "/weir", "/": Root, "/../../etc": Root + "/etc",
	} {
		if got := Dir(path); got != want {
			t.Errorf("Dir(%q) = %q, want %q", path, got, want)
		}
	}
}
