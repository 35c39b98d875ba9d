//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/gate"
)

// How much is measured of people who look and answer.
const (
	answered = 15 // questions, each way
	busy     = 50 // containers
	busyFor  = 8 * time.Second
	steadily = 260 // executions of each, more than it makes in that time
)

// deciding measures from a key or a click to the connect that it lets go on, and what weir top, a page of weir console and the daemon take
// while 50 containers execute programs.
func deciding(b *bed) (err error) {
	if err := os.MkdirAll("/sys/fs/cgroup"+crowd, 0o755); err != nil {
		return fmt.Errorf("make cgroup: %w", err)
	}
	if _, err := b.start("guard:\n  parents: [" + crowd + "]\n"); err != nil {
		return err
	}
	top, err := openTop()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, top.end()) }()
	page, err := openPage()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, page.end()) }()
	if err := b.singles([]single{
		{"keys", func(w *worker) error { return b.answers(w, "key_to_connect_ms", top.answer) }},
		{"clicks", func(w *worker) error { return b.answers(w, "click_to_connect_ms", page.answer) }},
	}); err != nil {
		return err
	}
	return b.watched(top.cmd.Process.Pid, page.cmd.Process.Pid)
}

// answers measures a connect that is held from the moment on in which a person has answered.
func (b *bed) answers(w *worker, name string, answer func(q gate.Question) (at int64, err error)) error {
	if _, err := b.client.Taint(context.Background(), "single", []string{"secret"}, "bench", ""); err != nil {
		return err
	}
	for range answered {
		if err := w.order("hold", acceptAt); err != nil {
			return err
		}
		q, err := b.asked()
		if err != nil {
			return err
		}
		at, err := answer(q)
		if err != nil {
			return fmt.Errorf("answer: %w", err)
		}
		line, err := w.line()
		if err != nil {
			return err
		}
		var took, ran, end int64
		if _, err := fmt.Sscan(line, &took, &ran, &end); err != nil {
			return fmt.Errorf("read %q: %w", line, err)
		}
		b.add(name, float64(end-at)/1e6)
	}
	_, err := b.client.Untaint(context.Background(), "single", []string{"secret"}, "bench", "measured")
	return err
}

// asked waits for the only question.
func (b *bed) asked() (gate.Question, error) {
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		switch list, err := b.client.Pending(context.Background()); {
		case err != nil:
			return gate.Question{}, err
		case len(list) == 1 && list[0].Held:
			return list[0], nil
		case time.Now().After(end):
			return gate.Question{}, fmt.Errorf("%d questions wait, and not the one of the held connect", len(list))
		}
	}
}

// watched measures who works while many containers execute programs, half of them tainted.
func (b *bed) watched(top, page int) (err error) {
	var all []*worker
	defer func() {
		for _, w := range all {
			err = errors.Join(err, w.end())
		}
	}()
	for i := range busy {
		name := fmt.Sprintf("%s/c%d", crowd, i)
		if err := os.MkdirAll("/sys/fs/cgroup"+name, 0o755); err != nil {
			return fmt.Errorf("make cgroup: %w", err)
		}
		w, err := newWorker("/sys/fs/cgroup"+name, exec.Command(self, "work"))
		if err != nil {
			return err
		}
		all = append(all, w)
		if i%2 == 0 {
			if _, err := b.client.Taint(context.Background(), name, []string{"secret"}, "bench", ""); err != nil {
				return err
			}
		}
	}
	if err := b.live(busy); err != nil {
		return err
	}
	b.settle()
	for _, w := range all {
		if err := w.order("steady", steadily); err != nil {
			return err
		}
	}
	time.Sleep(time.Second)
	if err := b.shares("busy_50", map[string]int{"daemon": b.daemon, "console": page, "top": top}); err != nil {
		return err
	}
	for _, w := range all {
		if _, err := w.answer(); err != nil {
			return err
		}
	}
	return nil
}

// shares measures how much of the processor each takes, and how many events come.
func (b *bed) shares(of string, pids map[string]int) error {
	before := map[string]int64{}
	first, err := events()
	if err != nil {
		return err
	}
	start := monotonic()
	for name, pid := range pids {
		before[name] = processorTime(pid)
	}
	time.Sleep(busyFor)
	took := float64(monotonic() - start)
	for name, pid := range pids {
		b.add(of+"_"+name+"_percent", 100*float64(processorTime(pid)-before[name])/took)
	}
	last, err := events()
	b.add(of+"_events_per_s", float64(last-first)/(took/1e9))
	return err
}

// events counts those that the log has.
func events() (int, error) {
	log, err := os.ReadFile(eventFile)
	if err != nil {
		return 0, fmt.Errorf("count events: %w", err)
	}
	return bytes.Count(log, []byte("\n")), nil
}

// topScreen is weir top on a terminal.
type topScreen struct {
	cmd    *exec.Cmd
	master *os.File

	mu   sync.Mutex
	text bytes.Buffer
}

func openTop() (*topScreen, error) {
	master, slave, err := openTerminal()
	if err != nil {
		return nil, err
	}
	defer slave.Close()
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120}); err != nil {
		return nil, errors.Join(fmt.Errorf("size the terminal: %w", err), master.Close())
	}
	t := &topScreen{cmd: exec.Command(weir, "top"), master: master}
	t.cmd.Env = append(os.Environ(), "TERM=xterm")
	t.cmd.Stdin, t.cmd.Stdout, t.cmd.Stderr = slave, slave, os.Stderr
	if err := t.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start weir top: %w", err), master.Close())
	}
	go func() {
		part := make([]byte, 1<<16)
		for {
			n, err := master.Read(part)
			t.mu.Lock()
			t.text.Write(part[:n])
			t.mu.Unlock()
			if err != nil {
				return // nobody has it open any more
			}
		}
	}()
	return t, t.shows("q quit")
}

// shows waits until a text has come.
func (t *topScreen) shows(text string) error {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		t.mu.Lock()
		found := bytes.Contains(t.text.Bytes(), []byte(text))
		t.mu.Unlock()
		if found {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("weir top never shows %q", text)
		}
	}
}

// answer presses the keys, and gives the time of the last.
func (t *topScreen) answer(q gate.Question) (int64, error) {
	if err := t.shows("> " + q.ID); err != nil {
		return 0, err
	}
	if _, err := t.master.WriteString("a"); err != nil {
		return 0, err
	}
	if err := t.shows("approve " + q.ID + "?"); err != nil {
		return 0, err
	}
	at := monotonic()
	_, err := t.master.WriteString("y")
	return at, err
}

func (t *topScreen) end() error {
	err := t.cmd.Process.Signal(syscall.SIGTERM)
	return errors.Join(err, t.cmd.Wait(), t.master.Close())
}

// consolePage is weir console, and a browser's half of it without a browser.
type consolePage struct {
	cmd    *exec.Cmd
	at     string
	header http.Header
	live   io.ReadCloser

	mu    sync.Mutex
	shown map[string]string // digest of what is shown, by question
}

func openPage() (*consolePage, error) {
	p := &consolePage{cmd: exec.Command(weir, "console"), shown: map[string]string{}}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start weir console: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	at, token, found := strings.Cut(strings.TrimSpace(line), "/#")
	if err != nil || !found {
		return nil, fmt.Errorf("start weir console: it says %q: %w", line, err)
	}
	p.at, p.header = at, http.Header{"Origin": {at}, "Content-Type": {"application/json"}}
	entered, err := p.send("/enter", map[string]any{"token": token})
	if err != nil {
		return nil, err
	}
	defer entered.Body.Close()
	var k struct{ Key string }
	if err := json.NewDecoder(entered.Body).Decode(&k); err != nil {
		return nil, fmt.Errorf("enter the page: %w", err)
	}
	cookie, _, _ := strings.Cut(entered.Header.Get("Set-Cookie"), ";")
	p.header["Cookie"], p.header["X-Weir-Key"] = []string{cookie}, []string{k.Key}
	live, err := p.send("/live", map[string]any{})
	if err != nil {
		return nil, err
	}
	p.live = live.Body
	go p.follow()
	return p, nil
}

func (p *consolePage) send(path string, body map[string]any) (*http.Response, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("ask the console: %w", err)
	}
	r, err := http.NewRequest(http.MethodPost, p.at+path, bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("ask the console: %w", err)
	}
	r.Header = p.header
	answer, err := http.DefaultClient.Do(r)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("it says %s", answer.Status)
	}
	if err != nil {
		return nil, fmt.Errorf("ask the console for %s: %w", path, err)
	}
	return answer, nil
}

// follow reads what the page is sent.
func (p *consolePage) follow() {
	in := bufio.NewReader(p.live)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return // the page was closed
		}
		var state struct {
			Groups [][]struct{ ID, Shown string }
		}
		if data, is := strings.CutPrefix(line, "data: "); is && json.Unmarshal([]byte(data), &state) == nil {
			p.mu.Lock()
			for _, q := range slices.Concat(state.Groups...) {
				p.shown[q.ID] = q.Shown
			}
			p.mu.Unlock()
		}
	}
}

// answer sends what a click on yes sends, once the question was sent to the page.
func (p *consolePage) answer(q gate.Question) (int64, error) {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		p.mu.Lock()
		shown := p.shown[q.ID]
		p.mu.Unlock()
		if shown != "" {
			at := monotonic()
			answer, err := p.send("/answer", map[string]any{"id": q.ID, "shown": shown, "allow": true})
			if err == nil {
				err = answer.Body.Close()
			}
			return at, err
		}
		if time.Now().After(end) {
			return 0, errors.New("the page never shows the question")
		}
	}
}

func (p *consolePage) end() error {
	err := p.cmd.Process.Signal(syscall.SIGTERM)
	return errors.Join(err, p.live.Close(), p.cmd.Wait())
}
