//go:build vmguest

package egress

import (
	"bytes"
	"fmt"
	"net"
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

// changedFromInside: the kernel's own packets would carry what is done to a socket that was made outside (B109). s is the socket.
func changedFromInside(t *testing.T, world *rig.Outside, sensor *rig.Sensor) {
	tainted := sensor.Guard(t, "changes", "--taint", "secret")
	const fin, class = 1, 0x98
	connect := func(t *testing.T, fd, port int) {
		t.Helper()
		world.World.Listen(t, "tcp", fmt.Sprintf("[::]:%d", port))
		if err := unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{10, 77, 0, 2}}); err != nil {
			t.Fatal(err)
		}
	}
	serve := func(t *testing.T, fd, port int) {
		t.Helper()
		if err := unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			t.Fatal(err)
		}
	}
	dials := func(port int) net.Conn {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return nil
		}
		return c
	}
	for _, c := range []struct {
		name, call string
		before     func(t *testing.T, fd, port int)
		heard      func(t *testing.T, mark rig.Marks, fd, port int) bool
	}{
		{"option", "s.setsockopt(0, 1, 0x98)", connect, func(t *testing.T, mark rig.Marks, fd, port int) bool {
			if err := unix.Shutdown(fd, unix.SHUT_WR); err != nil {
				t.Fatal(err)
			}
			return world.Classes(t, mark, port)[class]
		}},
		{"shutdown", "s.shutdown(1)", connect, func(t *testing.T, mark rig.Marks, _, port int) bool { return world.Flags(t, mark, port)&fin != 0 }},
		{"bind", "s.bind(('127.0.0.1', port))", func(*testing.T, int, int) {}, func(t *testing.T, _ rig.Marks, fd, port int) bool {
			name, err := unix.Getsockname(fd)
			if err != nil {
				t.Fatal(err)
			}
			return name.(*unix.SockaddrInet4).Port == port
		}},
		{"listen", "s.listen(4)", serve, func(_ *testing.T, _ rig.Marks, _, port int) bool {
			conn := dials(port)
			if conn != nil {
				conn.Close()
			}
			return conn != nil
		}},
		{"accept", "s.accept()", func(t *testing.T, fd, port int) {
			serve(t, fd, port)
			if err := unix.Listen(fd, 4); err != nil {
				t.Fatal(err)
			}
			conn := dials(port)
			if conn == nil {
				t.Fatal("nobody listens")
			}
			t.Cleanup(func() { conn.Close() })
		}, func(t *testing.T, _ rig.Marks, fd, _ int) bool { // it waits no more
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			if err != nil {
				t.Fatal(err)
			}
			return n == 0
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			try := func(cgroup ...string) (bool, string, error) {
				t.Helper()
				port := world.Port()
				fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
				if err != nil {
					t.Fatal(err)
				}
				socket := os.NewFile(uintptr(fd), "socket")
				defer socket.Close()
				c.before(t, fd, port)
				mark := world.Mark(t)
				code := fmt.Sprintf("import socket; port, s = %d, socket.socket(fileno=0); %s", port, c.call)
				// it is moved before it becomes what it is to be, as a service manager does
				cmd := exec.Command("sh", append([]string{"-c", `for cgroup; do echo $$ >$cgroup/cgroup.procs; done; exec python3 -c "$CODE"`, "sh"}, cgroup...)...)
				cmd.Env = append(os.Environ(), "CODE="+code)
				cmd.Stdin = socket
				out, err := cmd.CombinedOutput()
				return c.heard(t, mark, fd, port), string(out), err
			}
			if heard, out, err := try(); !heard || err != nil {
				t.Errorf("without the guard: heard %v, %v: %s", heard, err, out)
			}
			if heard, out, err := try(tainted.Cgroup); heard || !strings.Contains(out, "PermissionError") {
				t.Errorf("heard %v, %v: %s", heard, err, out)
			}
		})
	}
}
