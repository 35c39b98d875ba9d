package prompt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"weir/internal/event"
	"weir/internal/gate"

	"weir/internal/linux"
	"weir/internal/show"
)

// held is a question of the session g-1 that this process waits for.
func held(t *testing.T, id string) gate.Question {
	t.Helper()
	s, err := linux.ReadStat(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return gate.Question{
		ID: id, Container: event.Container{ID: "g-1"}, Held: true, State: gate.StatePending, Askers: 1,
		Process:     event.Process{PID: os.Getpid(), Start: s.Start, Exe: &event.File{Path: "/usr/bin/curl"}},
		Destination: event.Destination{Address: "192.0.2.1", Name: "example.org", Port: 443, Protocol: "tcp"},
	}
}

func ended(q gate.Question, o gate.Reason, by, why string) gate.Question {
	q.State, q.Outcome, q.By, q.Why = gate.StateDenied, o, by, why
	return q
}

// notify begins notices for g-1, and ends them.
func notify(t *testing.T, s *screen, fake *sensor) (stop func()) {
	t.Helper()
	tty, err := os.OpenFile(s.tty.Name(), os.O_WRONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan bool)
	go func() {
		defer close(done)
		defer tty.Close()
		Notify(ctx, fake, "g-1", tty, nil)
	}()
	return func() {
		cancel()
		<-done
	}
}

// F12: who sits at the terminal of a session sees that something waits, and how that ended.
func TestNotices(t *testing.T) {
	s, fake := newScreen(t), &sensor{}
	s.size(100, 24)
	defer notify(t, s, fake)()
	other := held(t, "zzzzzz")
	other.Container.ID = "g-2"
	text, tool, run, refused := held(t, "text22"), held(t, "tool22"), held(t, "run222"), held(t, "free22")
	text.Text, text.Held = "git push\nx", false
	tool.Text, tool.Held, tool.Tool = "Write a file", false, true
	run.Destination = event.Destination{}
	refused.Held = false
	gave, gone := held(t, "gave22"), text
	gave.Gone, gone.Gone, gone.ID = true, true, "gone22"
	for _, tc := range []struct {
		q       gate.Question
		asks    string
		outcome gate.Reason
		by, why string
		ends    string
	}{
		{
			held(t, "3prcek"), "waiting for an answer to 3prcek (curl → example.org:443)",
			gate.Approved, "root (alice)", "", "3prcek approved by root (alice)",
		},
		{
			held(t, "4prcek"), "waiting for an answer to 4prcek (curl → example.org:443)",
			gate.Denied, "root", "not \x1b[2Jhere", `4prcek denied by root: not \x1b[2Jhere`,
		},
	} {
		fake.set([]gate.Question{other, tc.q}, nil, nil)
		s.shows("\r\x1b[Kweir: " + tc.asks + "\r")
		fake.set([]gate.Question{other}, []gate.Question{ended(tc.q, tc.outcome, tc.by, tc.why)}, nil)
		s.shows("\r\x1b[Kweir: " + tc.ends + "\r")
	}
	for _, tc := range []struct {
		q                gate.Question
		interrupts, last bool
		outcome          gate.Reason
		asks, ends       string
	}{
		{held(t, "time22"), true, false, gate.Timeout, "waiting for an answer to time22 (curl → example.org:443); Ctrl-C gives up", "time22: nobody answered in time; curl was refused"},
		{refused, false, false, gate.Approved, "free22: curl → example.org:443 was refused; if it is approved, run it again", "free22 approved by root; run it again"},
		{refused, false, true, gate.Approved, "free22: curl → example.org:443 was refused", "free22 approved by root"},
		{refused, false, false, gate.Timeout, "free22: curl → example.org:443 was refused; if it is approved, run it again", "free22: nobody answered in time"},
		{gave, false, false, gate.Timeout, "gave22: curl no longer waits; if it is approved, run it again", "gave22: nobody answered in time"},
		{gave, true, false, gate.Approved, "gave22: curl no longer waits; if it is approved, run it again", "gave22 approved by root; run it again"},
		{gone, false, false, gate.Approved, `gone22: $'git push\nx' no longer waits; if it is approved, run it again`, "gone22 approved by root; run it again"},
		{text, false, false, gate.Approved, `waiting for an answer to text22 (to run $'git push\nx')`, "text22 approved by root"},
		{tool, false, false, gate.Denied, "waiting for an answer to tool22 (to call Write a file)", "tool22 denied by root"},
		{run, true, false, gate.LogFailed, "waiting for an answer to run222 (to run curl)", "run222 denied by root"},
	} {
		head, middle, tail := asking(tc.q, tc.interrupts, tc.last)
		if diff := cmp.Diff("weir: "+tc.asks, head+middle+tail); diff != "" {
			t.Error("asked (-want +got):\n" + diff)
		}
		head, middle, tail = ending(ended(tc.q, tc.outcome, "root", ""), tc.last)
		if diff := cmp.Diff("weir: "+tc.ends, head+middle+tail); diff != "" {
			t.Error("ended (-want +got):\n" + diff)
		}
	}
	if strings.Contains(s.text(), "zzzzzz") {
		t.Error("told of another session")
	}
}

// F12, B51: each line is one line of the terminal, and a container writes nothing but text to it.
func TestNoticesFit(t *testing.T) {
	s, fake := newScreen(t), &sensor{}
	s.size(60, 24)
	defer notify(t, s, fake)()
	q := held(t, "3prcek")
	q.Process.Exe.Path = "/tmp/\x1b[2J\n\u202e" + strings.Repeat("漢", 90)
	q.Destination.Name = strings.Repeat("a.", 120) + "org"
	fake.set([]gate.Question{q}, nil, nil)
	s.shows("weir: waiting for an answer to 3prcek (")
	fake.set(nil, []gate.Question{ended(q, gate.Denied, "root", strings.Repeat("w ", 200))}, nil)
	s.shows("…)\r\r\n\r\x1b[Kweir: 3prcek denied by root: w w w w w w w w w w w w w w …\r\r\n")
	if got := s.text(); got != "" {
		t.Errorf("more: %q", got)
	}
	n := notifier{tty: s.tty, width: 79}
	n.say(asking(held(t, "3prcek"), true, false)) // the width of most terminals is enough for what matters
	s.shows("weir: waiting for an answer to 3prcek (curl → example.org:443)\r")
	for _, parts := range [][3]string{{"weir: ", q.Process.Exe.Path, ""}, {strings.Repeat("漢", 90), "", ""}, {"", "", strings.Repeat("x", 90)}} {
		for _, width := range []int{0, 1, 20, 59} {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			n := notifier{tty: w, width: width}
			if err := n.say(parts[0], event.Visible(parts[1]), parts[2]); err != nil {
				t.Fatal(err)
			}
			w.Close()
			data, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			if line := strings.TrimPrefix(strings.TrimSuffix(string(data), "\r\n"), "\r\x1b[K"); show.Columns(line) > width {
				t.Errorf("%d columns: %q", width, line)
			}
		}
	}
}

// F12: many questions at once are few lines.
func TestNoticesFlood(t *testing.T) {
	s, fake := newScreen(t), &sensor{}
	var list []gate.Question
	for i := range 60 {
		list = append(list, held(t, fmt.Sprintf("flood%d", i)))
	}
	fake.set(list, nil, nil)
	stop := notify(t, s, fake)
	s.shows("weir: and 56 more questions wait: weir pending\r")
	for i := range 200 {
		list = append(list, held(t, fmt.Sprintf("later%d", i)))
	}
	fake.set(list, nil, nil)
	time.Sleep(3 * every)
	stop()
	if n := strings.Count(s.text(), "weir:"); n > 1 {
		t.Errorf("%d more lines: %q", n, s.text())
	}
}

// F12: nothing is written into what a program draws that has the terminal to itself, and nothing is forgotten meanwhile.
func TestNoticesLeaveScreensAlone(t *testing.T) {
	s, fake := newScreen(t), &sensor{}
	mode := s.mode()
	set := func(isig bool) {
		mode.Lflag &^= unix.ISIG
		if isig {
			mode.Lflag |= unix.ISIG
		}
		if err := unix.IoctlSetTermios(int(s.tty.Fd()), unix.TCSETS, mode); err != nil {
			t.Fatal(err)
		}
	}
	defer notify(t, s, fake)()
	a, b := held(t, "aaaaaa"), held(t, "bbbbbb")
	fake.set([]gate.Question{a}, nil, nil)
	s.shows("waiting for an answer to aaaaaa")
	s.shows("\n")
	set(false)
	fake.set([]gate.Question{b}, []gate.Question{ended(a, gate.Approved, "root", "")}, nil)
	time.Sleep(2 * every)
	if got := s.text(); got != "" {
		t.Errorf("written: %q", got)
	}
	set(true)
	s.shows("aaaaaa approved by root")
	s.shows("waiting for an answer to bbbbbb")
}

// F12: a restart of the sensor loses no line.
func TestNoticesSurviveTheSensor(t *testing.T) {
	s, fake := newScreen(t), &sensor{}
	stop := notify(t, s, fake)
	a, b := held(t, "aaaaaa"), held(t, "bbbbbb")
	fake.set([]gate.Question{a}, nil, nil)
	s.shows("waiting for an answer to aaaaaa")
	fake.set(nil, nil, errors.New("no sensor is running"))
	time.Sleep(2 * every)
	fake.set([]gate.Question{b}, []gate.Question{ended(a, gate.Denied, "root", "")}, nil)
	s.shows("aaaaaa denied by root\r")
	s.shows("waiting for an answer to bbbbbb")
	s.shows("\n")
	fake.set(nil, []gate.Question{ended(b, gate.Denied, "root", "no")}, nil)
	stop() // what ends as the command does is told, too
	s.shows("bbbbbb denied by root: no\r")
}

// F12: who has given up is told that the question stays.
func TestNoticeOfWhoGaveUp(t *testing.T) {
	s, fake := newScreen(t), &sensor{}
	q := held(t, "3prcek")
	fake.set([]gate.Question{q}, nil, nil)
	defer notify(t, s, fake)()
	s.shows("waiting for an answer to 3prcek")
	q.Gone = true
	fake.set([]gate.Question{q}, nil, nil)
	s.shows("weir: 3prcek: curl no longer waits; if it is approved, run it again\r")
	fake.set(nil, []gate.Question{ended(q, gate.Approved, "root", "")}, nil)
	s.shows("weir: 3prcek approved by root; run it again\r")
	if got := s.text(); strings.Contains(got, "waits") {
		t.Errorf("told twice: %q", got)
	}
}

// F12: Ctrl-C gives up what is in the foreground and does not ignore it.
func TestNoticeOfCtrlC(t *testing.T) {
	if os.Getenv("NOTICE_ASKER") != "" {
		tty, err := os.OpenFile("/dev/tty", os.O_WRONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		n := notifier{tty: tty}
		q := held(t, os.Getenv("NOTICE_ASKER"))
		if !n.calm() || n.say(asking(q, n.interrupts(q.Process), false)) != nil {
			t.Fatal("nothing was written")
		}
		return
	}
	s := newScreen(t)
	s.size(100, 24)
	cmd := exec.Command("bash", "-c", `ask() { NOTICE_ASKER=$1 "$0" -test.run '^TestNoticeOfCtrlC$'; }
ask front2; (trap '' INT; ask deaf22); set -m; ask back22 & wait -f; echo ended`, os.Args[0])
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.tty, s.tty, s.tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	s.shows("front2 (curl → example.org:443); Ctrl-C gives up\r")
	s.shows("deaf22 (curl → example.org:443)\r")
	s.shows("back22 (curl → example.org:443)\r")
	s.shows("ended")
}

// F12: in the background of a terminal with tostop nothing stops, and what is started meanwhile has the signal as ever.
func TestNoticesDoNotStop(t *testing.T) {
	if path := os.Getenv("NOTICE_STATUS"); path != "" {
		inBackground(t, path)
		return
	}
	s := newScreen(t)
	path := filepath.Join(t.TempDir(), "status")
	cmd := exec.Command("bash", "-c", `stty tostop; set -m; "$0" -test.run '^TestNoticesDoNotStop$' >"$1.log" 2>&1 & wait -f; echo ended`, os.Args[0], path)
	cmd.Env = append(os.Environ(), "NOTICE_STATUS="+path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.tty, s.tty, s.tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	s.shows("waiting for an answer to 3prcek")
	s.shows("ended")
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != "background\ntaken: false\n" {
		log, _ := os.ReadFile(path + ".log")
		t.Errorf("%s\n%s", got, log)
	}
}

// inBackground writes a notice, and to path whether a child has SIGTTOU ignored or blocked.
func inBackground(t *testing.T, path string) {
	tty, err := os.OpenFile("/dev/tty", os.O_WRONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	var group int
	conn, err := tty.SyscallConn()
	if err == nil {
		err = conn.Control(func(fd uintptr) { group, err = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) })
	}
	if err != nil {
		t.Fatal(err)
	}
	report := "foreground"
	if group != unix.Getpgrp() {
		report = "background"
	}
	n := notifier{tty: tty}
	if !n.calm() {
		t.Fatal("the terminal is not calm")
	}
	if err := n.say(asking(held(t, "3prcek"), true, false)); err != nil {
		t.Fatal(err)
	}
	status, err := exec.Command("cat", "/proc/self/status").Output()
	if err != nil {
		t.Fatal(err)
	}
	taken := false
	for line := range strings.Lines(string(status)) {
		var set uint64
		name, value, _ := strings.Cut(line, ":")
		if name == "SigBlk" || name == "SigIgn" {
			if _, err := fmt.Sscanf(strings.TrimSpace(value), "%x", &set); err != nil {
				t.Fatal(err)
			}
			taken = taken || set&(1<<(unix.SIGTTOU-1)) != 0
		}
	}
	if err := os.WriteFile(path, fmt.Appendf(nil, "%s\ntaken: %t\n", report, taken), 0o600); err != nil {
		t.Fatal(err)
	}
}

// F12: a terminal that takes nothing delays nobody for long.
func TestNoticesOnAStoppedTerminal(t *testing.T) {
	far, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	defer tty.Close()
	if err := pty.Setsize(far, &pty.Winsize{Cols: 80, Rows: 24}); err != nil {
		t.Fatal(err)
	}
	own, err := os.OpenFile(tty.Name(), os.O_WRONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if err := unix.IoctlSetInt(int(tty.Fd()), unix.TCXONC, unix.TCOOFF); err != nil {
		t.Fatal(err)
	}
	n := notifier{tty: own}
	n.calm()
	start := time.Now()
	if err := n.say("weir: x", "", ""); err == nil || time.Since(start) > 10*writeTime {
		t.Error(err, time.Since(start))
	}
	if err := unix.IoctlSetInt(int(tty.Fd()), unix.TCXONC, unix.TCOON); err != nil {
		t.Fatal(err)
	}
	if err := n.say("weir: y", "", ""); err != nil {
		t.Error(err)
	}
}
