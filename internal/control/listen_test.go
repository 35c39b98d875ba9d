package control

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// dial says whether l took a connection: what it refuses is closed without a byte.
func dial(t *testing.T, l net.Listener) (net.Conn, bool) {
	t.Helper()
	c, err := net.Dial(l.Addr().Network(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	n, _ := c.Read(make([]byte, 1))
	return c, n == 1
}

// greet answers each connection that is taken with one byte, until who called closes it.
func greet(t *testing.T, l net.Listener) {
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = c.Write([]byte{1})
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
}

// B27, G17: who is guarded, or cannot be known, is refused and told of.
func TestRulesG17(t *testing.T) {
	no := errors.New("guarded")
	me, other := uint32(os.Getuid()), uint32(os.Getuid()+1)
	for name, c := range map[string]struct {
		port  bool
		rules PeerRules
		takes bool
	}{
		"unix, nobody objects":   {false, PeerRules{}, true},
		"unix, taken":            {false, PeerRules{Process: func(int) error { return nil }}, true},
		"unix, guarded":          {false, PeerRules{Process: func(int) error { return no }}, false},
		"unix, its user":         {false, PeerRules{User: &me}, true},
		"unix, another user":     {false, PeerRules{User: &other, Process: func(int) error { return nil }}, false},
		"unix, its user guarded": {false, PeerRules{User: &me, Process: func(int) error { return no }}, false},
		"port, nobody objects":   {true, PeerRules{}, true},
		"port, taken":            {true, PeerRules{Socket: func(_, _ netip.AddrPort) error { return nil }}, true},
		"port, guarded":          {true, PeerRules{Socket: func(_, _ netip.AddrPort) error { return no }}, false},
		"port, only unix rules":  {true, PeerRules{Process: func(int) error { return no }}, true},
	} {
		told := make(chan bool, 1)
		c.rules.Told = func() { told <- true }
		l, err := ListenUnix(filepath.Join(t.TempDir(), "s"), 0o600)
		if c.port {
			l.Close()
			l, err = net.Listen("tcp", "127.0.0.1:0")
		}
		if err != nil {
			t.Fatal(err)
		}
		l = LimitListener(l, 2, c.rules)
		greet(t, l)
		if _, took := dial(t, l); took != c.takes {
			t.Errorf("%s: taken is %v", name, took)
		}
		if len(told) == 1 == c.takes {
			t.Errorf("%s: told is %v", name, len(told) == 1)
		}
	}
}

// Of the wrong kind of connection nothing is known.
func TestUnknownIsRefused(t *testing.T) {
	c, _ := net.Pipe()
	defer c.Close()
	if !(PeerRules{}).refuse(c) {
		t.Error("a pipe was taken")
	}
}

func TestLimit(t *testing.T) {
	l, err := ListenUnix(filepath.Join(t.TempDir(), "s"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	limit := LimitListener(l, 1, PeerRules{}).(*limited)
	greet(t, limit)
	first, took := dial(t, limit)
	if !took {
		t.Fatal("the first connection was refused")
	}
	if _, took := dial(t, limit); took {
		t.Error("a second connection was taken, though one is the most")
	}
	first.Close()
	limit.slots <- struct{}{} // waits until the slot is free
	<-limit.slots
	if _, took := dial(t, limit); !took {
		t.Error("refused, though the first connection is closed")
	}
}

func TestUnix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	old.SetUnlinkOnClose(false)
	old.Close()
	l, err := ListenUnix(path, 0o640)
	if err != nil {
		t.Fatal("a dead socket is in the way: ", err)
	}
	defer l.Close()
	if info, err := os.Stat(path); err != nil || info.Mode() != os.ModeSocket|0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := ListenUnix(filepath.Join(path, "x"), 0o600); err == nil {
		t.Error("listens below what is no directory")
	}
}
