package vm

import (
	"io"
	"testing"
)

// A warning is trouble, but for a single step that the emulator made up.
func TestTrouble(t *testing.T) {
	const (
		step  = "[  237.500027] WARNING: CPU: 1 PID: 4484 at arch/x86/kernel/traps.c:1120 exc_debug_kernel+0xca/0x160\r\n"
		made  = "[  237.502059] RSP: 0000:fffffe5e8a67ff28 EFLAGS: 81680002\r\n" // as QEMU 7.2 left it
		real  = "[  237.502059] RSP: 0000:fffffe5e8a67ff28 EFLAGS: 00010046\r\n"
		other = "[  240.100000] WARNING: CPU: 0 PID: 7 at kernel/bpf/core.c:1 bpf_prog_free+0x1/0x2\r\n"
	)
	for _, tt := range []struct{ name, console, want string }{
		{"none", "[    0.0] Linux version 6.12\r\n", ""},
		{"made up", step + made + "[  245.396500] reboot: Power down\r\n", ""},
		{"a true step", step + real, step},
		{"no flags", step, step},
		{"another beside it", step + made + other + made, other},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &console{}
			_, _ = io.WriteString(c, tt.console)
			if got := c.trouble(); got+"\r\n" != tt.want && got != tt.want {
				t.Errorf("trouble = %q, want %q", got, tt.want)
			}
		})
	}
}
