package vm

import (
	"flag"
	"slices"
	"testing"
)

// Each job runs once, below its kernel, and begins in its turn.
func TestInOrder(t *testing.T) {
	kernels := []Kernel{{Version: "1"}, {Version: "2"}}
	var began []job
	atATime := flag.Lookup("test.parallel").Value.String()
	if err := flag.Set("test.parallel", "1"); err != nil { // else two may begin at once
		t.Fatal(err)
	}
	defer func() { _ = flag.Set("test.parallel", atATime) }()
	want := []job{{1, "b"}, {0, "b"}, {0, "c"}, {1, "a"}}
	t.Run("all", func(t *testing.T) {
		inOrder(t, kernels, want, func(t *testing.T, j job) {
			if name := "TestInOrder/all/" + kernels[j.kernel].Version + "/" + j.group; t.Name() != name {
				t.Errorf("%s is not %s", t.Name(), name)
			}
			began = append(began, j)
		})
	})
	if !slices.Equal(began, want) {
		t.Errorf("began %v, want %v", began, want)
	}
}
