package control

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTerminalName(t *testing.T) {
	for want, device := range map[string]uint64{
		"": 0, "pts/0": unix.Mkdev(136, 0), "pts/300": unix.Mkdev(136, 300), "tty2": unix.Mkdev(4, 2), "ttyS0": unix.Mkdev(4, 64), "device 5:1": unix.Mkdev(5, 1),
	} {
		if got := terminal(int(device)); got != want {
			t.Errorf("%#x: %q, want %q", device, got, want)
		}
	}
}

// G17: sudo takes the environment away; the session is found at an ancestor.
func TestSSHSessionOfAnAncestorG17(t *testing.T) {
	cmd := exec.Command("sh", "-c", `env -i sh -c 'echo $$; read wait' ; true`)
	cmd.Env = append(os.Environ(), "SSH_CONNECTION=192.0.2.9 50000 192.0.2.1 22\x1b[2J")
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
	defer cmd.Wait()
	defer in.Close()
	var buf [32]byte
	n, _ := out.Read(buf[:])
	pid := 0
	for _, c := range strings.TrimSpace(string(buf[:n])) {
		pid = pid*10 + int(c-'0')
	}
	o := peer{pid: pid, uid: 7}.origin()
	if o.SSH != "192.0.2.9 50000 192.0.2.1 22??2J" || o.PID != pid || *o.UID != 7 || o.Via != "control" || !strings.Contains(o.Exe, "sh") {
		t.Errorf("%+v", o)
	}
	if o := (peer{pid: -1}).origin(); o.SSH != "" || o.Exe != "" || o.Terminal != "" {
		t.Errorf("a peer that is gone: %+v", o)
	}
}
