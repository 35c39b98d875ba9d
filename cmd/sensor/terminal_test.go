package main

import (
	"bytes"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

// terminal is one of 100 columns that keeps what is written to it.
type terminal struct {
	far, tty *os.File
	mu       sync.Mutex
	shown    bytes.Buffer
}

func openTerminal(t *testing.T) *terminal {
	t.Helper()
	far, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		tty.Close()
		far.Close()
	})
	if err := pty.Setsize(far, &pty.Winsize{Cols: 100, Rows: 40}); err != nil {
		t.Fatal(err)
	}
	return &terminal{far: far, tty: tty}
}

// start starts cmd in a session of its own on the terminal.
func (p *terminal) start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.Stdin = p.tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := p.far.Read(buf)
			p.mu.Lock()
			p.shown.Write(buf[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
}

// text is what was written so far.
func (p *terminal) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown.String()
}
