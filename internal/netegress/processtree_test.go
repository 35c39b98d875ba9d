package netegress

import (
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/linux"
)

// state waits until a process is in a state, or has been waited for long enough.
func state(t *testing.T, pid int, want byte) {
	t.Helper()
	var got byte
	for range 6000 {
		st, err := linux.ReadStat(pid)
		if err != nil {
			t.Fatal(err)
		}
		if got = byte(st.State); got == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d is in state %c, want %c", pid, got, want)
}

// A process is woken and killed only if it is the one that was meant.
func TestSignalsAreForOneProcess(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	defer cmd.Process.Kill()
	st, err := linux.ReadStat(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	state(t, pid, 'T')
	other := st.Start + uint64(time.Hour)
	for _, do := range []func(int, uint64) error{sendContinue, killProcess} {
		if err := do(pid, other); err != nil {
			t.Error(err)
		}
		state(t, pid, 'T')
	}
	if err := sendContinue(pid, st.Start); err != nil {
		t.Error(err)
	}
	state(t, pid, 'S')
	if err := killProcess(pid, st.Start); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it was not killed")
	}
	if err := killProcess(pid, st.Start); err != nil {
		t.Errorf("one that has gone: %v", err)
	}
}
