//go:build vmguest

package exec

import (
	"bufio"
	"os"
	osexec "os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir/internal/linux"
)

// A process of another pid namespace names memory by ids of its own.
func TestB30MemoryFromInnerNamespace(t *testing.T) {
	cmd := osexec.Command("unshare", "-pfm", "--mount-proc", "bash", "-euc", "sleep 1000 & exec 3</proc/$!/mem; echo $!; trap 'kill $!' EXIT; read x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	inner, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	shell := child(t, cmd.Process.Pid)
	sleep := child(t, shell)
	if ids, err := linux.InnerPIDs(sleep); err != nil || !slices.Equal(ids, []int{sleep, inner}) {
		t.Errorf("ids %v (%v), want %d outside and %d inside", ids, err, sleep, inner)
	}
	if got, err := linux.MemFDs(shell); err != nil || !slices.Contains(got, sleep) || slices.Contains(got, shell) {
		t.Errorf("memory of %v is open (%v), want that of %d", got, err, sleep)
	}
	in.Close()
	if err := cmd.Wait(); err == nil { // read fails at the end of its input
		t.Error("the shell did not end with its input")
	}
}

func child(t *testing.T, pid int) int {
	t.Helper()
	id := strconv.Itoa(pid)
	data, err := os.ReadFile("/proc/" + id + "/task/" + id + "/children")
	if err != nil {
		t.Fatal(err)
	}
	first, err := strconv.Atoi(strings.Fields(string(data) + " none")[0])
	if err != nil {
		t.Fatalf("process %d has no child", pid)
	}
	return first
}
