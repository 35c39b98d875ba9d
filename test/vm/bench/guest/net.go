//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The world is a network namespace at the other end of a pair of virtual Ethernet devices. What goes to allowed stays open under
// taint, what goes to denied does not.
const (
	allowed  = "10.77.0.2"
	denied   = "10.77.0.3"
	acceptAt = 7000 // closes what it accepts
	readAt   = 7001 // reads to the end, then closes
	dropAt   = 7002 // a datagram socket that nobody reads: its queue is full soon, and stays so
)

// Where programs lie in memory changes what a fork costs by 5 %: here it is always the same.
const setup = `
ip netns add world
sysctl -qw kernel.randomize_va_space=0
sysctl -qw net.ipv6.conf.default.disable_ipv6=1 net.ipv4.ip_local_port_range="10000 60999"
ip netns exec world sysctl -qw net.ipv6.conf.default.disable_ipv6=1
ip link add bv0 type veth peer name bv1 netns world
ip addr add 10.77.0.1/24 dev bv0
ip link set bv0 up
ip -n world addr add 10.77.0.2/24 dev bv1
ip -n world addr add 10.77.0.3/24 dev bv1
ip -n world link set lo up
ip -n world link set bv1 up
`

func makeNetwork() error {
	if out, err := exec.Command("bash", "-ec", setup).CombinedOutput(); err != nil {
		return fmt.Errorf("make the world: %w: %s", err, out)
	}
	return nil
}

// serve is one server of the world: accept, read, drop or dns. It says ready on standard output, and works alone, as what it serves.
func serve(args []string) error {
	if len(args) != 1 {
		return errors.New("serve: accept, read, drop or dns")
	}
	port := map[string]uint16{"accept": acceptAt, "read": readAt, "drop": dropAt, "dns": 53}[args[0]]
	kind := unix.SOCK_STREAM
	if args[0] == "drop" || args[0] == "dns" {
		kind = unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(unix.AF_INET, kind, 0)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	at := &unix.SockaddrInet4{Port: int(port)}
	if args[0] == "dns" {
		at.Addr = netip.MustParseAddr(nameServer).As4() // who asks takes answers from there only
	}
	if err := unix.Bind(fd, at); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	if kind == unix.SOCK_STREAM {
		if err := unix.Listen(fd, 1024); err != nil {
			return fmt.Errorf("serve: %w", err)
		}
	}
	buffer := make([]byte, 256<<10)
	pid, err := forkOnly()
	if err != nil {
		return err
	}
	if pid == 0 {
		// with its parent
		unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
		for args[0] == "drop" {
			unix.RawSyscall(unix.SYS_PAUSE, 0, 0, 0)
		}
		if args[0] == "dns" {
			serveNames(uintptr(fd), buffer)
			exit()
		}
		serveStreams(uintptr(fd), args[0] == "read", buffer)
		exit()
	}
	fmt.Println("ready")
	return reap(pid)
}

func serveStreams(fd uintptr, read bool, buffer []byte) {
	for {
		conn, _, errno := unix.RawSyscall(unix.SYS_ACCEPT, fd, 0, 0)
		if errno != 0 {
			return
		}
		for read {
			n, _, errno := unix.RawSyscall(unix.SYS_READ, conn, uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)))
			if errno != 0 || n == 0 {
				break
			}
		}
		hangUp(conn)
	}
}

// address is a destination as connect and sendto take it.
func address(at string, port uint16) *unix.RawSockaddrInet4 {
	a := &unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: netip.MustParseAddr(at).As4()}
	a.Port = binary.NativeEndian.Uint16([]byte{byte(port >> 8), byte(port)})
	return a
}
