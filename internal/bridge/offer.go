package bridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"weir/internal/bridge/wire"
)

// Tools are tools of the sensor's own, which agents call over MCP.
type Tools interface {
	// Owns says whether a tool is one of them, by the name an agent calls it.
	Owns(tool string) bool
	// Announce takes what a hook tells of a call that is about to be made, and says why it is denied; empty: it may be made.
	Announce(who Asker, r wire.Request) string
	// Serve answers one client until it hangs up or ctx ends. who says who it is, anew with each call.
	Serve(ctx context.Context, who func() (Asker, error), conn io.ReadWriteCloser) error
}

// Offer serves tools to clients whose first line is JSON-RPC. It is called before Listen.
func (s *Server) Offer(t Tools) { s.tools = t }

// owned handles the announcement of a call of an own tool; ok tells that it was one. What is announced is the call that the stages before saw,
// and no shell command is one, whatever tool its request names beside it.
func (s *Server) owned(c *called) (reason string, ok bool) {
	if s.tools == nil || c.command != "" || c.carried || !s.tools.Owns(c.tool) {
		return "", false
	}
	r := c.told
	r.ToolName, r.ToolInput = c.tool, c.input
	reason = s.tools.Announce(c.who, r)
	if reason == "" {
		return "", true
	}
	// Where the mode denies nothing, the call is still not announced, so that it is denied when it is made.
	reason, denied := s.builtIn(c.who, c.tool, "tool_refused", reason, reason)
	if !denied {
		return "", true
	}
	return reason, true
}

// speaksMCP says whether a line is a message of MCP.
func speaksMCP(line []byte) bool {
	var head struct {
		Version string `json:"jsonrpc"`
	}
	return bytes.Contains(line, []byte(`"jsonrpc"`)) && json.Unmarshal(line, &head) == nil && head.Version == "2.0"
}

// serveTools hands the rest of the connection to the tools, a line at a time.
func (c *client) serveTools(ctx context.Context, first []byte, long bool, in *bufio.Reader) {
	s := &stream{client: c, ctx: ctx, in: in, flight: make(chan struct{}, maxFlight), open: map[jsonrpc.ID]bool{}}
	defer s.end()
	if err := s.take(first, long); err != nil {
		return
	}
	if !c.server.enterTools(c.usage) {
		c.write(deny("", textManyConns))
		c.linger()
		return
	}
	defer c.server.leaveTools(c.usage)
	if err := c.server.tools.Serve(ctx, c.who, s); err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		c.server.logger.WithError(err).Debug("a client of the tools went away")
	}
}
