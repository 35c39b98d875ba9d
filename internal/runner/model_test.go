package runner

import (
	"bufio"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/control"
)

// What one side sends reaches the other, both ways, also after one of them has ended.
func TestModelRelay(t *testing.T) {
	dir, err := os.MkdirTemp("", "weir") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all, err := io.ReadAll(c)
			if err == nil {
				_, err = io.WriteString(c, strings.ToUpper(string(all)))
			}
			c.Close()
			if err != nil {
				return
			}
		}
	}()
	out, in := io.Pipe()
	life, end := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Relay(path, life, in) }()
	at, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	ask := func() string {
		c, err := net.Dial("tcp", strings.TrimSpace(at))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "hello"); err == nil { // it may be cut at any time where nobody is there: then nothing comes
			_ = c.(*net.TCPConn).CloseWrite()
		}
		got, _ := io.ReadAll(c)
		return string(got)
	}
	for range 2 {
		if got := ask(); got != "HELLO" {
			t.Errorf("got %q", got)
		}
	}
	l.Close()
	if got := ask(); got != "" {
		t.Errorf("with nobody there: %q", got)
	}
	end.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestModelSocket(t *testing.T) {
	for _, at := range []string{"", "unix:", "unix:s", "0.0.0.0:0", "192.0.2.1:80", ":8080", "localhost:80", "127.0.0.1", "127.0.0.1:x"} {
		if _, _, err := (Model{Listen: at}).Socket(Identity{}); control.Code(err) != control.Usage {
			t.Errorf("%q: %v", at, err)
		}
	}
	socket, addr, err := Model{Listen: "[::1]:0"}.Socket(Identity{})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if !strings.HasPrefix(addr.String(), "[::1]:") {
		t.Error(addr)
	}
}
