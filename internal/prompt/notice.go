package prompt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"weir/internal/event"
	"weir/internal/gate"

	"weir/internal/linux"
	"weir/internal/show"
)

// How many lines a container can cause.
const (
	mostNotices = 5                // in a row,
	refill      = 10 * time.Second // and then one more each time
)

const (
	slowest   = 10 * time.Second // between two looks, where the sensor is slow
	writeTime = time.Second      // for a line on a terminal that is stopped
)

// Notify writes one line to tty, which a container's command uses too, for each question of the container, one when it has ended, and
// one for what was refused without a question, until ctx ends. A question that ends before it was seen gets no line. Failures are not told: the next look tries again.
// tty is nil without a terminal. With desktop it is called, at most once in refill, when questions wait that it was not called for yet; it says nothing of them: other
// programs of the person's can read what comes to a desktop, and the container chose the words of a question.
func Notify(ctx context.Context, s Sensor, container string, tty *os.File, desktop func(context.Context) error) {
	n := &notifier{
		sensor: s, container: container, tty: tty, limit: rate.NewLimiter(rate.Every(refill), mostNotices),
		desktop: desktop, rare: rate.NewLimiter(rate.Every(refill), 1),
	}
	events, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop() // after the last look: what the command did at its end is told too
	if tty != nil {
		go n.follow(events)
	}
	for ctx.Err() == nil {
		pause := n.look(ctx, false)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	n.look(last, true)
}

type notifier struct {
	sensor    Sensor
	container string
	tty       *os.File
	limit     *rate.Limiter
	width     int
	group     int             // in the terminal's foreground; 0: not known
	told      []gate.Question // that have a line and wait; Gone when that was told
	known     map[string]bool // ids that wait and need no line any more
	refused   refusals

	desktop func(context.Context) error // nil: there is none
	rare    *rate.Limiter
	shown   map[string]bool // ids that desktop was called for
}

// look writes what has changed, and returns when to look again. last: the container's command has ended.
func (n *notifier) look(ctx context.Context, last bool) time.Duration {
	calm := n.calm() // else what is still so then is told then
	if !calm && n.desktop == nil {
		return every
	}
	start := time.Now()
	u := next(ctx, n.sensor, n.told)
	pause := min(max(every, 20*time.Since(start)), slowest) // a container may have many and long questions
	if u.err != nil {
		return pause
	}
	if calm {
		n.write(u, last)
	}
	if !last && n.desktop != nil {
		n.show(ctx, u.list)
	}
	return pause
}

// show calls desktop for questions that it was not called for.
func (n *notifier) show(ctx context.Context, list []gate.Question) {
	shown, fresh := map[string]bool{}, false
	for _, q := range list {
		if q.Container.ID == n.container && !q.Gone {
			shown[q.ID] = true
			fresh = fresh || !n.shown[q.ID]
		}
	}
	if fresh && n.rare.Allow() && n.desktop(ctx) == nil {
		n.shown = shown
	}
}

// write tells the terminal what has changed.
func (n *notifier) write(u update, last bool) {
	n.told = slices.DeleteFunc(n.told, func(q gate.Question) bool {
		i := slices.IndexFunc(u.ended, func(e gate.Question) bool { return e.ID == q.ID })
		return i >= 0 && n.say(ending(u.ended[i], last)) == nil
	})
	var fresh []gate.Question
	known := map[string]bool{}
	for _, q := range u.list {
		switch {
		case n.known[q.ID]:
			known[q.ID] = true
			n.check(q, last)
		case q.Container.ID == n.container && (!last || !q.Held && q.Text == ""): // nothing waits any more
			fresh = append(fresh, q)
		}
	}
	n.known = known
	n.tell(fresh, last)
	n.refuse()
}

// check tells once when who asked a question that waits has gone.
func (n *notifier) check(q gate.Question, last bool) {
	i := slices.IndexFunc(n.told, func(t gate.Question) bool { return t.ID == q.ID })
	if last || i < 0 || !q.Gone || n.told[i].Gone {
		return
	}
	if n.say(gone(q)) == nil {
		n.told[i].Gone = true
	}
}

// tell writes a line for each, or one for the rest of many.
func (n *notifier) tell(fresh []gate.Question, last bool) {
	for i, q := range fresh {
		if !n.limit.Allow() {
			return // the next look tries again
		}
		if rest := fresh[i:]; len(rest) > 1 && n.limit.Tokens() < 1 {
			if n.say(fmt.Sprintf("weir: and %d more questions wait: weir pending", len(rest)), "", "") == nil {
				for _, q := range rest {
					n.known[q.ID] = true
				}
			}
			return
		}
		if n.say(asking(q, n.interrupts(q.Process), last)) != nil {
			return
		}
		n.known[q.ID] = true
		n.told = append(n.told, q)
	}
}

// interrupts says whether Ctrl-C on the terminal ends a process.
func (n *notifier) interrupts(p event.Process) bool {
	stat, err := linux.ReadStat(p.PID)
	return err == nil && linux.SameStart(stat.Start, p.Start) && stat.Group == n.group && !linux.Ignores(p.PID, unix.SIGINT)
}

// gone is the line of a question for whose answer nobody waits any more, in three parts.
func gone(q gate.Question) (head, middle, tail string) {
	what := caller(q.Process)
	switch {
	case q.Tool:
		what = event.Visible(q.Text)
	case q.Text != "":
		what = event.Command([]string{q.Text}, 0, 0)
	}
	return "weir: " + event.Visible(q.ID) + ": ", what, " no longer waits; if it is approved, run it again"
}

// asking is the line of a question that waits, in three parts: the container made the one in the middle. interrupts: Ctrl-C ends who asks.
func asking(q gate.Question, interrupts, last bool) (head, middle, tail string) {
	id := event.Visible(q.ID)
	waiting := "weir: waiting for an answer to " + id + " ("
	goal := caller(q.Process) + " → " + strings.TrimSuffix(q.Destination.String(), "/tcp")
	switch {
	case q.Gone:
		return gone(q)
	case q.Tool:
		return waiting, "to call " + event.Visible(q.Text), ")"
	case q.Text != "":
		return waiting, "to run " + event.Command([]string{q.Text}, 0, 0), ")"
	case q.Destination == event.Destination{}:
		return waiting, "to run " + caller(q.Process), ")"
	case q.Held && interrupts:
		return waiting, goal, "); Ctrl-C gives up"
	case q.Held:
		return waiting, goal, ")"
	case last:
		return "weir: " + id + ": ", goal, " was refused"
	}
	return "weir: " + id + ": ", goal, " was refused; if it is approved, run it again"
}

// ending is the line of a question that has ended, in three parts.
func ending(q gate.Question, last bool) (head, middle, tail string) {
	head = "weir: " + event.Visible(q.ID)
	switch {
	case q.Outcome == gate.Timeout && q.Held && !q.Gone:
		return head + ": nobody answered in time" + after(q) + "; ", caller(q.Process), " was refused"
	case q.Outcome == gate.Timeout:
		return head + ": nobody answered in time" + after(q), "", ""
	case !last:
		return head + " ", show.Outcome(q), show.Again(q)
	}
	return head + " ", show.Outcome(q), ""
}

// after says what failed before a person was asked.
func after(q gate.Question) string {
	if q.Failed == "" {
		return ""
	}
	return " (" + event.Visible(string(q.Failed)) + ")"
}

// caller is the program that asked, short and visible.
func caller(p event.Process) string {
	name := p.Comm
	if p.Exe != nil {
		name = filepath.Base(p.Exe.Path)
	}
	return event.Command([]string{name}, 32, 0)
}

// say writes one line over the one that the cursor is in. What is too long loses the hint after the semicolon first, then the end of the
// middle.
func (n *notifier) say(head, middle, tail string) error {
	if show.Columns(head+middle+tail) > n.width {
		tail, _, _ = strings.Cut(tail, ";")
	}
	middle = show.Shorten(middle, n.width-show.Columns(head+tail))
	line := "\r" + rest + show.Shorten(head+middle+tail, n.width) + "\r\n"
	// In the background of a terminal with tostop, writing stops the whole process group, the command too, unless the thread that writes
	// blocks the signal. To ignore it would do as well, but the command would inherit that.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before unix.Sigset_t
	stop := unix.Sigset_t{Val: [16]uint64{1 << (unix.SIGTTOU - 1)}}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &stop, &before); err != nil {
		return fmt.Errorf("block SIGTTOU: %w", err)
	}
	defer unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
	if err := n.tty.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return fmt.Errorf("write to the terminal: %w", err)
	}
	if k, err := n.tty.WriteString(line); k == 0 {
		return fmt.Errorf("write to the terminal: %w", err)
	}
	return nil
}

// calm says whether a line disturbs nobody, and notes how wide it may be and who is in the foreground. A program that takes Ctrl-C as a key draws the whole screen, or
// passes all on to another machine.
func (n *notifier) calm() bool {
	calm := false
	conn, err := n.tty.SyscallConn() // an error without a terminal
	if err != nil {
		return false
	}
	err = conn.Control(func(fd uintptr) {
		mode, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
		calm = err == nil && mode.Lflag&unix.ISIG != 0
		if n.group, err = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP); err != nil {
			n.group = 0
		}
		n.width = 80
		if size, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
			n.width = int(size.Col)
		}
		n.width-- // in the last column some terminals begin the next line
	})
	return err == nil && calm
}
