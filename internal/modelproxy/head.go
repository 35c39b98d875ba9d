package modelproxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxHead    = 32 << 10 // bytes of a request's head
	maxHeaders = 100
)

// listener hands out connections whose first request has a head that can be read in one way only. The server takes one request of each.
type listener struct {
	net.Listener
	tell func(code Code, pid int)
}

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, pid: pidOf(c), tell: l.tell}, nil
}

// pidOf is who connected to a Unix socket; 0: not known.
func pidOf(c net.Conn) int {
	if own, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = own.NetConn()
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return 0
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	err = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	if err != nil {
		return 0
	}
	return pid
}

// conn shows nothing of a head before it was judged.
type conn struct {
	net.Conn
	pid    int
	tell   func(code Code, pid int)
	judged bool
	left   []byte // that was read and not handed on
}

// Read implements net.Conn. A connection whose head is refused ends.
func (c *conn) Read(b []byte) (int, error) {
	if !c.judged {
		c.judged = true
		head, code, err := readHead(c.Conn)
		if code != "" {
			c.refuse(code)
			return 0, io.EOF
		}
		if err != nil {
			return 0, err
		}
		c.left = head
	}
	if len(c.left) > 0 {
		n := copy(b, c.left)
		c.left = c.left[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

func (c *conn) refuse(code Code) {
	c.tell(code, c.pid)
	text, status := code.answer(), meanings[code].status
	if c.SetWriteDeadline(time.Now().Add(time.Second)) != nil {
		return
	}
	fmt.Fprintf(c.Conn, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", status, http.StatusText(status), len(text), text)
}

// readHead reads until the head has ended; what follows of the body may be behind it.
func readHead(r io.Reader) (head []byte, code Code, err error) {
	buf := make([]byte, 0, 4096)
	var lines []string
	for at := 0; ; {
		end := bytes.IndexByte(buf[at:], '\n')
		switch {
		case end >= 0:
			line, whole := bytes.CutSuffix(buf[at:at+end], []byte("\r"))
			if !whole {
				return nil, Malformed, nil
			}
			at += end + 1
			if len(line) == 0 {
				return buf, judgeHead(lines), nil
			}
			if lines = append(lines, string(line)); len(lines) > 1+maxHeaders {
				return nil, TooLarge, nil
			}
			continue
		case len(buf) >= maxHead:
			return nil, TooLarge, nil
		}
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, len(buf))
		}
		n, err := r.Read(buf[len(buf):min(cap(buf), maxHead)])
		buf = buf[:len(buf)+n]
		if n > 0 || err == nil {
			continue
		}
		if errors.Is(err, os.ErrDeadlineExceeded) && len(buf) > 0 {
			return nil, Slow, nil
		}
		return nil, "", err
	}
}

// judgeHead takes what RFC 9112 leaves no room for reading in two ways: no folded line, no white space before a colon, no other line end, one
// Host, and one length. A body in chunks is refused whole: clients of these APIs know how long theirs is.
func judgeHead(lines []string) Code {
	if len(lines) == 0 {
		return Malformed
	}
	method, rest, ok1 := strings.Cut(lines[0], " ")
	target, version, ok2 := strings.Cut(rest, " ")
	switch {
	case !ok1 || !ok2 || version != "HTTP/1.1" || strings.ContainsFunc(target, invisible) || !isToken(method):
		return Malformed
	case method == http.MethodConnect:
		return Method
	case !strings.HasPrefix(target, "/"):
		return Host // a whole URL, or *
	}
	seen := map[string]int{}
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(line, ":")
		if !ok || !isToken(name) || strings.ContainsFunc(value, func(r rune) bool { return r != '\t' && r != ' ' && invisible(r) }) {
			return Malformed
		}
		name = strings.ToLower(name)
		seen[name]++
		if name == "connection" && strings.Contains(strings.ToLower(value), "upgrade") {
			return Upgrade
		}
		if length := strings.Trim(value, " \t"); name == "content-length" && (length == "" || len(length) > 18 || strings.Trim(length, "0123456789") != "") {
			return Malformed
		}
	}
	switch {
	case seen["host"] != 1 || seen["content-length"] > 1 || seen["content-length"] > 0 && seen["transfer-encoding"] > 0:
		return Malformed
	case seen["transfer-encoding"] > 0 || seen["trailer"] > 0:
		return NoLength
	case seen["upgrade"]+seen["http2-settings"] > 0:
		return Upgrade
	}
	return ""
}

func invisible(r rune) bool { return r <= ' ' || r > '~' }

func isToken(s string) bool { return s != "" && strings.Trim(s, letters+"!#$%&'*+-.^_`|~") == "" }
