//go:build vmguest

package egress

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weir/test/vm/guest/rig"
)

// openedBeforeGuard: a socket that a guarded command got from who started it was opened before there was a guard (B18, B22, B44).
func openedBeforeGuard(t *testing.T, world *rig.Outside) {
	for _, c := range []struct {
		name                string
		family, kind, proto int
		connected           bool
		argv                string
	}{
		{"tcp", unix.AF_INET, unix.SOCK_STREAM, 0, true, "send-fd -fd 0"},
		{"udp-connected", unix.AF_INET, unix.SOCK_DGRAM, 0, true, "send-fd -fd 0"},
		{"udp", unix.AF_INET, unix.SOCK_DGRAM, 0, false, "udp-sendto -use 0"},
		{"raw", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP, false, "raw-icmp -use 0"},
		{"packet", unix.AF_PACKET, unix.SOCK_RAW, 0, false, "packet -use 0 -dev " + rig.Dev},
		{"packet-ring", unix.AF_PACKET, unix.SOCK_RAW, 0, false, "packet-ring -use 0 -dev " + rig.Dev},
		{"xdp", unix.AF_XDP, unix.SOCK_RAW, 0, false, "xdp -use 0 -dev " + rig.Dev},
	} {
		t.Run(c.name, func(t *testing.T) {
			try := func(name string, guard ...string) (string, string, error) {
				port := world.Port()
				text := fmt.Sprintf("before.%s.%s.%d.end", c.name, name, port)
				at := fmt.Sprintf("[::]:%d", port)
				world.World.Listen(t, "tcp", at)
				world.World.Listen(t, "udp", at)
				fd, err := unix.Socket(c.family, c.kind|unix.SOCK_CLOEXEC, c.proto)
				if err != nil {
					t.Fatal(err)
				}
				socket := os.NewFile(uintptr(fd), "socket")
				defer socket.Close()
				if c.connected {
					if err := unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{10, 77, 0, 2}}); err != nil {
						t.Fatal(err)
					}
				}
				argv := append(guard, append([]string{"egress"}, strings.Fields(c.argv)...)...)
				cmd := exec.Command(argv[0], append(argv[1:], "-to", fmt.Sprintf("%s:%d", rig.World4, port), "-mac", world.MAC, "-say", text)...)
				var out bytes.Buffer
				cmd.Stdin, cmd.Stdout, cmd.Stderr = socket, &out, &out
				err = cmd.Run()
				return text, out.String(), err
			}
			text, out, err := try("guarded", "weir", "guard", "-q", "--taint", "secret", "--")
			if err == nil {
				t.Errorf("no step was refused: %s", out)
			}
			control, out, err := try("bare")
			if err != nil || !world.WaitGot(control, rig.Late) {
				t.Errorf("without the guard: %v: %s", err, out)
			}
			world.Nothing(t, rig.Marks{}, text, 0)
		})
	}
}
