package runner

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Desktop shows notices on the desktop of who called weir.
type Desktop struct {
	who Identity
	bus string // the session bus's address
}

// Desktop finds the session bus of who called sudo, where systemd puts it; false where there is none.
func (w World) Desktop() (Desktop, bool) {
	who, err := w.Identify("")
	if err != nil {
		return Desktop{}, false
	}
	return desktopAt(who, fmt.Sprintf("/run/user/%d/bus", who.uid))
}

func desktopAt(who Identity, socket string) (Desktop, bool) {
	var st unix.Stat_t
	if err := unix.Lstat(socket, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK || st.Uid != who.uid {
		return Desktop{}, false
	}
	return Desktop{who: who, bus: "unix:path=" + socket}, true
}

// Show shows a text (org.freedesktop.Notifications, version 1.2 of the desktop notifications specification), which may be markup there. It runs systemd's busctl as the
// person, since a session bus admits no other user.
func (d Desktop) Show(ctx context.Context, title, text string) error {
	const service = "org.freedesktop.Notifications"
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "busctl", "--address="+d.bus, "--", "call", service, "/org/freedesktop/Notifications", service,
		"Notify", "susssasa{sv}i", "weir", "0", "", title, text, "0", "0", "-1")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	if !d.who.Root() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: d.who.uid, Gid: d.who.gid, Groups: d.who.groups}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("show a notice on the desktop: %w: %s", err, out)
	}
	return nil
}
