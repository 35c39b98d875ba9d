package control

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"weir/internal/event"
	"weir/internal/linux"
)

// origin tells where the peer is. The kernel vouches for uid, pid and program;
// terminal and SSH session are those of the peer and its ancestors, as they say.
func (p peer) origin() *event.Origin {
	o := &event.Origin{Via: "control", UID: &p.uid, PID: p.pid}
	if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.pid)); err == nil {
		o.Exe = short(exe)
	}
	const ancestors = 32
	pid := p.pid
	for range ancestors {
		st, err := linux.ReadStat(pid)
		if err != nil || pid <= 1 {
			break
		}
		o.Terminal = cmp.Or(o.Terminal, terminal(st.TTY))
		if o.SSH = sshSession(pid); o.SSH != "" {
			break
		}
		pid = st.PPID // sudo takes SSH_CONNECTION away; the login shell has it
	}
	return o
}

// terminal names a terminal by its device number.
func terminal(device int) string {
	major, minor := unix.Major(uint64(device)), unix.Minor(uint64(device))
	switch {
	case device == 0:
		return ""
	case major >= 136 && major <= 143: // Documentation/admin-guide/devices.txt
		return fmt.Sprintf("pts/%d", (major-136)<<20|minor)
	case major == 4 && minor < 64:
		return fmt.Sprintf("tty%d", minor)
	case major == 4:
		return fmt.Sprintf("ttyS%d", minor-64)
	}
	return fmt.Sprintf("device %d:%d", major, minor)
}

// sshSession is SSH_CONNECTION of a process's first environment.
func sshSession(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return ""
	}
	for entry := range strings.SplitSeq(string(data), "\x00") {
		if value, ok := strings.CutPrefix(entry, "SSH_CONNECTION="); ok {
			return short(plain(value))
		}
	}
	return ""
}

func short(s string) string {
	const most = 256
	s = strings.ToValidUTF8(s, "?")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}
