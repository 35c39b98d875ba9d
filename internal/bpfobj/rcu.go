package bpfobj

import (
	"time"

	"golang.org/x/sys/unix"
)

// WaitRCU waits until no program runs any more that began before: what it may have read, and what has been replaced since, can be deleted then.
func WaitRCU() {
	const global = 1 // MEMBARRIER_CMD_GLOBAL waits for an RCU grace period, see membarrier(2)
	if _, _, err := unix.Syscall(unix.SYS_MEMBARRIER, global, 0, 0); err != 0 {
		time.Sleep(100 * time.Millisecond) // with nohz_full there is none
	}
}
