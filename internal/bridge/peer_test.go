package bridge

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// G21: the signals with which Go interrupts its own threads make nobody look as if it had ended.
func TestAliveUnderSignalsG21(t *testing.T) {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		t.Fatal(err)
	}
	p := peer{os.Getpid(), os.NewFile(uintptr(fd), "pidfd")}
	defer p.fd.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tid := unix.Gettid()
	var done atomic.Bool
	defer done.Store(true)
	go func() {
		for !done.Load() {
			_ = unix.Tgkill(os.Getpid(), tid, unix.SIGURG)
		}
	}()
	for i := range 200_000 {
		if !p.alive() {
			t.Fatalf("this process has ended, says look %d", i)
		}
	}
}
