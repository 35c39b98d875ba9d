// Package inside is the guard of tests that only a test VM may run: they load programs into the kernel, taint and kill. It owns
// the check and nothing else.
package inside

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"weir/test/vm/handover"
)

// Main is the TestMain of every guest package: it runs the tests, or ends the process with status 1 outside a test VM.
func Main(m *testing.M) {
	if err := Check(); err != nil {
		fmt.Fprintf(os.Stderr, "refuse to run: %v: these tests change the kernel's state; run them with go test ./test/vm\n", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// Check says why this is not a test VM, or nil if it is one.
func Check() error {
	cmdline, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return fmt.Errorf("read the kernel's command line: %w", err)
	}
	if !strings.Contains(" "+strings.TrimSpace(string(cmdline))+" ", " "+handover.KernelFlag+" ") {
		return errors.New("this is not a test VM (no " + handover.KernelFlag + " on the kernel's command line)")
	}
	// Where systemd is process 1, init is its service, and the parent of the tests.
	for _, pid := range []int{1, os.Getppid()} {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err != nil {
			return fmt.Errorf("read the name of process %d: %w", pid, err)
		}
		if strings.TrimSpace(string(comm)) == handover.InitName {
			return nil
		}
	}
	return errors.New("this is not a test VM (neither process 1 nor the parent is " + handover.InitName + ")")
}
