//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"weir/test/vm/handover"
)

// units are what systemd boots to: no more than the basic system, and the job.
var units = map[string]string{
	"weir-vm.target":  "[Unit]\nRequires=basic.target weir-vm.service\nAfter=basic.target\nAllowIsolate=yes\n",
	"weir-vm.service": "[Service]\nType=exec\nExecStart=" + handedOver + " " + handover.JobMode + "\nStandardError=journal+console\nTimeoutStopSec=5\n",
}

// handedOver is where systemd finds init: the first one stood in the initramfs.
const handedOver = "/run/" + handover.InitName

// becomeSystemd returns only if it failed.
func becomeSystemd() error {
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(handedOver, self, 0o755)
	}
	if err != nil {
		return fmt.Errorf("hand over to systemd: %w", err)
	}
	const dir = "/run/systemd/system"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("hand over to systemd: %w", err)
	}
	for name, text := range units {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("hand over to systemd: %w", err)
		}
	}
	args := []string{"systemd", "--unit=weir-vm.target", "--show-status=no", "--log-level=notice", "--log-target=journal"}
	err = unix.Exec("/lib/systemd/systemd", args, []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"})
	return fmt.Errorf("hand over to systemd: %w", err)
}
