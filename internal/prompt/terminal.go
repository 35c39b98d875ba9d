package prompt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Keys that are more than one byte.
const (
	keyUp       = "\x1b[A"
	keyDown     = "\x1b[B"
	keyPageUp   = "\x1b[5~"
	keyPageDown = "\x1b[6~"
)

// What the terminal is told.
const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[?7l" // the other screen, no cursor, no wrapping
	leave = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	home  = "\x1b[H"
	rest  = "\x1b[K" // clears the rest of the line, and what is in the last column when a line is full: before a line, never after it
)

// Follow shows the questions on the terminal in and out, and answers what is
// confirmed there as by, until q is pressed or ctx ends. It returns the first error
// of the sensor when there is nothing to show yet.
func Follow(ctx context.Context, s Sensor, by string, in, out *os.File) (err error) {
	if _, err := s.Pending(ctx); err != nil {
		return err
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("take over the terminal: %w", err)
	}
	defer func() {
		_, werr := out.WriteString(leave)
		err = errors.Join(err, werr, term.Restore(int(in.Fd()), before))
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &terminal{
		sensor: s, by: by, in: in, out: out,
		keys: make(chan string), updates: make(chan update), kick: make(chan struct{}, 1), answers: make(chan string),
	}
	go watch(ctx, s, t.kick, t.updates)
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.read(ctx)
	}()
	defer func() { cancel(); <-done }() // before the terminal is put back
	return t.loop(ctx)
}

type terminal struct {
	model
	sensor  Sensor
	by      string
	in, out *os.File
	keys    chan string
	updates chan update
	kick    chan struct{}
	answers chan string // why an answer was not taken
}

func (t *terminal) loop(ctx context.Context) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGWINCH, unix.SIGCONT)
	defer signal.Stop(signals)
	clock := time.NewTicker(time.Second)
	defer clock.Stop()
	if _, err := t.out.WriteString(enter); err != nil {
		return fmt.Errorf("write to the terminal: %w", err)
	}
	for {
		if err := t.draw(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-clock.C:
		case sig := <-signals:
			if sig == unix.SIGCONT { // somebody stopped it, and a shell took the terminal back
				if _, err := term.MakeRaw(int(t.in.Fd())); err != nil {
					return fmt.Errorf("take over the terminal: %w", err)
				}
				if _, err := t.out.WriteString(enter); err != nil {
					return fmt.Errorf("write to the terminal: %w", err)
				}
			}
		case u := <-t.updates:
			t.take(u)
		case text := <-t.answers:
			t.note("%s", text)
		case k, ok := <-t.keys:
			if !ok {
				return nil // the terminal is gone
			}
			answer, quit := t.key(k)
			if quit {
				return nil
			}
			if answer != nil {
				go t.answer(ctx, *answer)
			}
		}
	}
}

// answer gives an answer, and has the list read again, which tells that the question has ended.
func (t *terminal) answer(ctx context.Context, o order) {
	o.reply.By = t.by
	if _, err := t.sensor.Answer(ctx, o.id, o.reply); err != nil {
		select {
		case t.answers <- o.id + ": " + err.Error():
		case <-ctx.Done():
			return
		}
	}
	select {
	case t.kick <- struct{}{}:
	default:
	}
}

func (t *terminal) draw() error {
	for {
		width, height, err := term.GetSize(int(t.out.Fd()))
		if err != nil {
			return fmt.Errorf("read the terminal's size: %w", err)
		}
		t.width, t.height, t.now = width, height, time.Now()
		var b strings.Builder
		b.WriteString(home)
		for i, line := range t.view() {
			if i > 0 {
				b.WriteString("\r\n")
			}
			b.WriteString(rest + line)
		}
		if _, err := t.out.WriteString(b.String()); err != nil {
			return fmt.Errorf("write to the terminal: %w", err)
		}
		if w, h, err := term.GetSize(int(t.out.Fd())); err == nil && w == width && h == height {
			t.saw()
			return nil
		}
	}
}

// read sends keys until ctx ends; it leaves unread what comes later.
func (t *terminal) read(ctx context.Context) {
	defer close(t.keys)
	buf := make([]byte, 256)
	for ctx.Err() == nil {
		poll := []unix.PollFd{{Fd: int32(t.in.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 100)
		if n == 0 || errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		if n, err = unix.Read(int(t.in.Fd()), buf); n <= 0 || err != nil {
			if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
				continue
			}
			return
		}
		for _, k := range split(buf[:n]) {
			select {
			case t.keys <- k:
			case <-ctx.Done():
				return
			}
		}
	}
}

// split separates what one read brought into keys.
func split(b []byte) []string {
	var keys []string
	for len(b) > 0 {
		n := 1
		switch {
		case b[0] == '\x1b' && len(b) > 2 && (b[1] == '[' || b[1] == 'O'):
			n = 2
			for n < len(b) && (b[n] < '@' || b[n] > '~') {
				n++
			}
			n = min(n+1, len(b))
		case b[0] >= utf8.RuneSelf:
			_, n = utf8.DecodeRune(b)
		}
		k := string(b[:n])
		if len(k) == 3 && k[1] == 'O' { // in the terminal's application mode
			k = "\x1b[" + k[2:]
		}
		if utf8.ValidString(k) {
			keys = append(keys, k)
		}
		b = b[n:]
	}
	return keys
}
