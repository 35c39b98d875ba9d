package agenthook

import (
	"context"
	"errors"
	"io"
	"net"
	"time"
)

// lastWords is how long answers are waited for after the agent has closed its end.
const lastWords = 5 * time.Second

// MCP stands between an agent that starts servers of tools as programs and the sensor, which serves the tools: it copies bytes, holds no
// secret and knows nothing of what it copies.
func (w World) MCP(ctx context.Context) int {
	a := w.asker()
	dialer := net.Dialer{Timeout: dialTime}
	conn, err := dialer.DialContext(ctx, "unix", a.socket)
	if err != nil {
		w.say("weir mcp: the sensor cannot be reached (%v): is the agent started with weir guard, or the socket mounted into the container?", plain(err))
		return 1
	}
	defer conn.Close()
	unixConn := conn.(*net.UnixConn)
	if err := a.trust(unixConn); err != nil {
		w.say("weir mcp: %v", err)
		return 1
	}
	go func() {
		_, _ = io.Copy(conn, w.Stdin) // what is not taken is seen where it is read
		_ = unixConn.CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(lastWords))
	}()
	if _, err := io.Copy(w.Stdout, conn); err != nil && !errors.Is(err, net.ErrClosed) {
		var late net.Error
		if errors.As(err, &late) && late.Timeout() {
			return ok
		}
		w.say("weir mcp: the sensor ended the connection: %v", plain(err))
		return 1
	}
	return ok
}
