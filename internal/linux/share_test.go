package linux

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSharing(t *testing.T) {
	other := exec.Command("sleep", "60")
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); _ = other.Process.Kill(); _ = other.Wait() }()
	threads, err := Threads(os.Getpid())
	if err != nil || len(threads) < 2 {
		t.Fatalf("threads %v: %v", threads, err)
	}
	for _, what := range []int{Memory, Descriptors} {
		got := Sharing([]int{threads[0], other.Process.Pid, threads[1], unix.Getppid()}, what)
		if len(got) != 1 || len(got[0]) != 2 || !slices.Contains(got[0], threads[0]) || !slices.Contains(got[0], threads[1]) {
			t.Errorf("%d: %v, want the threads %v alone", what, got, threads[:2])
		}
	}
}
