package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"weir/test/vm/wire"
)

// receiver writes what arrives, from many goroutines.
type receiver struct {
	mu  sync.Mutex
	out *json.Encoder
}

func main() {
	dev := flag.String("dev", "", "sniff what arrives on this device")
	flag.Parse()
	if err := run(*dev, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "receiver:", err)
		os.Exit(1)
	}
}

func run(dev string, in io.Reader, out io.Writer) error {
	r := &receiver{out: json.NewEncoder(out)}
	missed := func() error { return nil }
	if dev != "" {
		fd, err := openSniffer(dev)
		if err != nil {
			return err
		}
		go r.sniff(fd)
		missed = func() error { return dropped(fd) }
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var o wire.Order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return fmt.Errorf("read order: %w", err)
		}
		answer := wire.Arrival{ID: o.ID}
		var err error
		switch o.Op {
		case "listen":
			answer.At, err = r.listen(o)
		case "dial":
			err = r.dial(o)
		default:
			err = fmt.Errorf("op %q: unknown", o.Op)
		}
		if err != nil {
			answer.Error = err.Error()
		}
		r.say(answer)
	}
	return errors.Join(lines.Err(), missed())
}

func (r *receiver) say(a wire.Arrival) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// nobody to tell if this fails: the test is gone
	_ = r.out.Encode(a)
}

// printable keeps ASCII text and makes dots of the rest.
func printable(b []byte) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '.'
		}
		return c
	}, string(b))
}
