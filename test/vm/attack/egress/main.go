package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Exit codes, see the package comment.
const (
	exitUsage   = 2
	exitRefused = 3
)

// attempt is one way out. The error names the step that was refused.
type attempt func(c *call) error

// call is one attempt under way: what the flags say of it.
type call struct {
	to     string // IP address and port, or what the family calls its addresses
	say    []byte
	wait   string // the step to pause after
	by     string // the means to send with, once a socket is connected
	dev    string
	from   string
	mac    string
	path   string
	cgroup string
	then   string
	full   bool
	listen bool
	sqpoll bool
	write  bool
	pid    int
	fd     int
	use    int
	n      int
	family int
	kind   int
	proto  int
	mem    uint64
	after  time.Duration

	in  *bufio.Reader
	out io.Writer
	all map[string]attempt
}

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, in io.Reader, out, errs io.Writer) int {
	all := attempts()
	if len(args) == 0 || all[args[0]] == nil {
		fmt.Fprintf(errs, "usage: egress ATTEMPT -to ADDR:PORT -say TEXT [flags]; attempts: %s\n", strings.Join(slices.Sorted(maps.Keys(all)), " "))
		return exitUsage
	}
	c := &call{in: bufio.NewReader(in), out: out, all: all}
	var say string
	f := flag.NewFlagSet(args[0], flag.ContinueOnError)
	f.SetOutput(errs)
	f.StringVar(&c.to, "to", "", "destination: `ADDR:PORT`, a Unix path, @name, CID:PORT or a service number")
	f.StringVar(&say, "say", "egress", "what to send")
	f.StringVar(&c.wait, "wait", "", "pause after this step: socket, connect or open")
	f.StringVar(&c.by, "by", "write", "how to send on a connected socket")
	f.StringVar(&c.dev, "dev", "", "network device")
	f.StringVar(&c.from, "from", "", "source address")
	f.StringVar(&c.mac, "mac", "ff:ff:ff:ff:ff:ff", "destination on the link")
	f.StringVar(&c.path, "path", "", "a file or Unix socket")
	f.StringVar(&c.cgroup, "cgroup", "", "cgroup directory to enter")
	f.BoolVar(&c.full, "full", false, "leave the socket no memory for options")
	f.StringVar(&c.then, "then", "tcp", "attempt to make afterwards")
	f.BoolVar(&c.listen, "listen", false, "wait for the other side to connect")
	f.BoolVar(&c.sqpoll, "sqpoll", false, "let a kernel thread submit")
	f.BoolVar(&c.write, "write", false, "put the text into the file at -path")
	f.IntVar(&c.pid, "pid", 0, "process to use")
	f.IntVar(&c.fd, "fd", 3, "descriptor to use")
	f.IntVar(&c.use, "use", -1, "use this descriptor instead of a new socket")
	f.IntVar(&c.n, "n", 1, "how often")
	f.IntVar(&c.family, "family", 0, "socket family")
	f.IntVar(&c.kind, "type", 0, "socket type")
	f.IntVar(&c.proto, "proto", 0, "socket protocol")
	f.Uint64Var(&c.mem, "mem", 0, "address in the other process")
	f.DurationVar(&c.after, "after", 0, "wait so long first")
	if err := f.Parse(args[1:]); err != nil || f.NArg() > 0 {
		fmt.Fprintln(errs, "egress: give flags only after the attempt")
		return exitUsage
	}
	c.say = []byte(say)
	if err := all[args[0]](c); err != nil {
		fmt.Fprintf(out, "refused: %v%s\n", err, errnoName(err))
		return exitRefused
	}
	fmt.Fprintln(out, "ok")
	return 0
}

func attempts() map[string]attempt {
	all := map[string]attempt{}
	for _, m := range []map[string]attempt{
		tcpAttempts(), udpAttempts(), rawAttempts(), linkAttempts(), familyAttempts(), unixAttempts(), memoryAttempts(), processAttempts(), fileAttempts(), kernelAttempts(), reachAttempts(), terminalAttempts(), nativeAttempts(), loopbackAttempts(),
	} {
		maps.Copy(all, m)
	}
	return all
}

func errnoName(err error) string {
	var e unix.Errno
	if !errors.As(err, &e) {
		return ""
	}
	return " (" + unix.ErrnoName(e) + ")"
}

// step names what err belongs to.
func step(name string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// done is called after each step that can be paused after.
func (c *call) done(name string) error {
	if c.wait != name {
		return nil
	}
	return c.pause()
}

func (c *call) pause() error {
	fmt.Fprintln(c.out, "opened")
	return c.proceed()
}

// proceed waits for a line.
func (c *call) proceed() error {
	if _, err := c.in.ReadString('\n'); err != nil {
		return fmt.Errorf("wait for a line: %w", err)
	}
	return nil
}

// open makes a socket, or takes the one of -use, and pauses if that was asked.
func (c *call) open(family, kind, proto int) (int, error) {
	if c.use >= 0 {
		return c.use, c.done("socket")
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return -1, step("socket", err)
	}
	return fd, c.done("socket")
}
