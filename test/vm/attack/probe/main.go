// Probe tries to get out twenty times a second, by each of the plain means in turn, for as long as its standard input is open:
//
//	probe ADDR:PORT TEXT
//
// After every twenty tries it prints how many there were, how many of them were not refused (with EPERM, or a fast open with
// EOPNOTSUPP), and the longest time from one of them to the next; and at once which was not refused. It never waits for an
// answer. Whether anything arrived, only a receiver knows.
package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(2)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: probe ADDR:PORT TEXT")
	}
	at, err := netip.ParseAddrPort(args[0])
	if err != nil {
		return err
	}
	to, text := &unix.SockaddrInet4{Addr: at.Addr().As4(), Port: int(at.Port())}, []byte(args[1])
	older, err := connectedUDP(to)
	if err != nil {
		return err
	}
	ways := []struct {
		name    string
		try     func() error
		instead error // how it may be refused beside EPERM
	}{
		{"tcp", func() error { return tcp(to, text) }, unix.EPERM},
		{"udp", func() error { return udp(to, text) }, unix.EPERM},
		{"older", func() error { return unix.Send(older, text, unix.MSG_DONTWAIT) }, unix.EPERM},
		{"fastopen", func() error { return fastopen(to, text) }, unix.EOPNOTSUPP},
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		ended <- err
	}()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	passed, last, longest := 0, time.Now(), time.Duration(0)
	for n := 1; ; n++ {
		began := time.Now()
		last, longest = began, max(longest, began.Sub(last))
		way := ways[n%len(ways)]
		if err := way.try(); !errors.Is(err, unix.EPERM) && !errors.Is(err, way.instead) {
			passed++
			fmt.Printf("passed %s %v\n", way.name, err)
		}
		if n%20 == 0 {
			fmt.Printf("tries %d %d %v\n", n, passed, longest)
			longest = 0
		}
		select {
		case err := <-ended:
			return err
		case <-tick.C:
		}
	}
}

func tcp(to unix.Sockaddr, text []byte) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	return unix.Send(fd, text, 0)
}

func udp(to unix.Sockaddr, text []byte) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, text, unix.MSG_DONTWAIT, to)
}

func fastopen(to unix.Sockaddr, text []byte) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, text, unix.MSG_FASTOPEN, to)
}

func connectedUDP(to unix.Sockaddr) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return 0, err
	}
	return fd, unix.Connect(fd, to)
}
