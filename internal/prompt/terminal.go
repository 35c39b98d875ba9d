package prompt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/gate"
)

// What the terminal is told.
const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h" // the other screen, no cursor, no wrapping, and what is pasted is marked
	leave = "\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l"
	home  = "\x1b[H"
	rest  = "\x1b[K" // clears the rest of the line, and what is in the last column when a line is full: before a line, never after it
)

// Options are how Top shows and answers.
type Options struct {
	By    string                       // who answers
	Grant func(event.GrantInfo) string // words a grant
	Words func(gate.Question) string   // of questions of other machines: no containers are seen, and an approval is for once; nil: show.Question
}

// Draws says whether f is a terminal of this kind on which any place can be written to.
func Draws(f *os.File, kind string) bool {
	width, height, err := term.GetSize(int(f.Fd()))
	return err == nil && width > 0 && height > 0 && kind != "" && kind != "dumb"
}

// Top shows the sensor on the terminal in and out, and answers what is confirmed there, until q is pressed or ctx ends. It returns the
// first error of the sensor when there is nothing to show yet.
func Top(ctx context.Context, s Overview, o Options, in, out *os.File) (err error) {
	if _, err := s.Pending(ctx); err != nil {
		return err
	}
	_, err = s.Answer(ctx, "", gate.Reply{}) // who may not answer is told so before it is seen that this is no question
	t := &terminal{sensor: s, by: o.By, in: in, out: out, kick: make(chan struct{}, 1)}
	t.grant, t.words, t.looks = o.Grant, o.Words, control.Code(err) == control.Denied
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("take over the terminal: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		_, werr := out.WriteString(leave)
		err = errors.Join(err, werr, term.Restore(int(in.Fd()), before))
		t.answers.Wait()
		err = errors.Join(err, t.untold())
		cancel()
	}()
	if _, err := out.WriteString(enter); err != nil {
		return fmt.Errorf("write to the terminal: %w", err)
	}
	// bubbletea reads keys and hands them over one after the other. It draws nothing: when it would, nobody could tell what is on the screen.
	t.loop = tea.NewProgram(t, tea.WithInput(in), tea.WithOutput(out), tea.WithoutRenderer(), tea.WithoutSignalHandler(), tea.WithoutCatchPanics())
	t.ctx = ctx
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGWINCH, unix.SIGCONT)
	defer signal.Stop(signals)
	go t.wake(signals)
	go news(ctx, s, t.kick)
	go watch(ctx, func(before []gate.Question) update { return overlook(ctx, s, before) }, t.kick, func(u update) { t.loop.Send(u) })
	if _, err := t.loop.Run(); err != nil {
		return fmt.Errorf("read the terminal: %w", err)
	}
	return t.err
}

// terminal is a model on a terminal.
type terminal struct {
	model
	ctx     context.Context
	loop    *tea.Program
	sensor  Overview
	by      string
	in, out *os.File
	kick    chan struct{}
	answers sync.WaitGroup // that are being given
	done    bool
	err     error // that ended it
	bad     struct {
		sync.Mutex
		list refused // that was on no screen
	}
}

// refused are answers that were not taken.
type refused []string

// Init implements tea.Model.
func (t *terminal) Init() tea.Cmd { return nil }

// View implements tea.Model.
func (t *terminal) View() tea.View { return tea.View{} }

// Update implements tea.Model. What it has changed is on the screen when it returns, before the next key is looked at.
func (t *terminal) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if t.done {
		return t, nil // the key was not meant for this
	}
	switch msg := msg.(type) {
	case update:
		t.take(msg)
	case refused:
		for _, text := range msg {
			t.note("%s", text)
			t.answered = ""
		}
		t.bad.Lock()
		t.bad.list = slices.DeleteFunc(t.bad.list, func(text string) bool { return slices.Contains(msg, text) })
		t.bad.Unlock()
	case tea.PasteMsg:
		t.paste(msg.Content)
	case tea.KeyPressMsg:
		orders, quit := t.key(msg.String())
		if t.done = quit; quit {
			return t, tea.Quit
		}
		if len(orders) > 0 {
			t.answers.Go(func() {
				bad := t.answer(orders)
				t.bad.Lock()
				t.bad.list = append(t.bad.list, bad...)
				t.bad.Unlock()
				t.loop.Send(bad)
			})
		}
	case os.Signal:
		if msg == unix.SIGCONT { // somebody stopped it, and a shell took the terminal back
			if _, t.err = term.MakeRaw(int(t.in.Fd())); t.err == nil {
				_, t.err = t.out.WriteString(enter)
			}
		}
	}
	if t.err == nil {
		t.err = t.draw()
	}
	if t.done = t.err != nil; t.done {
		return t, tea.Quit
	}
	return t, nil
}

// wake has the screen drawn again for each signal and each second, and ends all with ctx.
func (t *terminal) wake(signals <-chan os.Signal) {
	clock := time.NewTicker(time.Second)
	defer clock.Stop()
	for {
		select {
		case sig := <-signals:
			t.loop.Send(sig)
		case now := <-clock.C:
			t.loop.Send(now)
		case <-t.ctx.Done():
			t.loop.Quit()
			return
		}
	}
}

// answer gives answers, and has the list read again, which tells that the questions have ended.
func (t *terminal) answer(orders []order) refused {
	var bad refused
	for _, o := range orders {
		o.reply.By = t.by
		if _, err := t.sensor.Answer(t.ctx, o.id, o.reply); err != nil {
			bad = append(bad, o.id+": "+err.Error())
		}
	}
	kick(t.kick)
	return bad
}

// untold is what was refused and is on no screen, since a key ended it at once.
func (t *terminal) untold() error {
	var errs []error
	for _, text := range t.bad.list {
		errs = append(errs, errors.New(event.Visible(text)))
	}
	return errors.Join(errs...)
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
