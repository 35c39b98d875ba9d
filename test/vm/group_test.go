package vm

import "testing"

// A pattern for groups must not be taken for one of tests in them, which would run none.
func TestBelow(t *testing.T) {
	for _, c := range []struct{ pattern, want string }{
		{"TestVM", ""},
		{"TestVM/6.12/exec", ""},
		{"TestVM/6.12/exec/TestBurst", "TestBurst"},
		{"TestVM/6.12/exec/TestBurst/slow/x", "TestBurst/slow/x"},
		{"TestVM/[^/]*/failure", ""},
		{"TestVM/[^/]*/failure/TestDisk", "TestDisk"},
		{"TestVM/(6.1/x|6.12)/load/Test", "Test"},
	} {
		if got := below(c.pattern, 3); got != c.want {
			t.Errorf("%s: got %q, want %q", c.pattern, got, c.want)
		}
	}
}
