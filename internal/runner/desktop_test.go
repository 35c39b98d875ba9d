package runner

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
)

// notices is a desktop's notification service.
type notices chan []string

func (n notices) Notify(app string, _ uint32, icon, title, text string, _ []string, _ map[string]dbus.Variant, _ int32) (uint32, *dbus.Error) {
	n <- []string{app, icon, title, text}
	return 1, nil
}

// A notice arrives where a desktop listens on the session bus; where there is no bus, or another's, none is tried.
func TestDesktop(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "bus")
	who := Identity{uid: uint32(os.Getuid())}
	if _, ok := desktopAt(who, socket); ok {
		t.Error("a desktop where no bus is")
	}
	daemon := exec.Command("dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address", "--address=unix:path="+socket)
	out, err := daemon.StdoutPipe()
	if err == nil {
		err = daemon.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = daemon.Process.Kill(); _ = daemon.Wait() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil { // it listens
		t.Fatal(err)
	}
	desktop, ok := desktopAt(who, socket)
	if !ok {
		t.Fatal("no desktop")
	}
	if err := desktop.Show(t.Context(), "weir", "nobody hears this"); err == nil || !strings.Contains(err.Error(), "Notifications") {
		t.Errorf("shown where nobody listens: %v", err)
	}
	conn, err := dbus.Connect("unix:path=" + socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	got := make(notices, 1)
	if err := conn.Export(got, "/org/freedesktop/Notifications", "org.freedesktop.Notifications"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.RequestName("org.freedesktop.Notifications", 0); err != nil {
		t.Fatal(err)
	}
	if err := desktop.Show(t.Context(), "weir", "a command waits"); err != nil {
		t.Fatal(err)
	}
	if n := strings.Join(<-got, "|"); n != "weir||weir|a command waits" {
		t.Errorf("notice %q", n)
	}
	if _, ok := desktopAt(Identity{uid: who.uid + 1}, socket); ok {
		t.Error("a desktop that is another's")
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(socket, link); err != nil {
		t.Fatal(err)
	}
	if _, ok := desktopAt(who, link); ok {
		t.Error("a desktop behind a link")
	}
}
