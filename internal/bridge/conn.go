package bridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"weir/internal/bridge/wire"
	"weir/internal/linux"
)

const (
	lineTime   = 10 * time.Second // for a line that has begun to arrive, and for an answer to be taken
	lingerTime = time.Second      // for what a client still sends, so that it sees the answer
)

var errLong = errors.New("too long")

// client is one connection.
type client struct {
	server  *Server
	conn    *net.UnixConn
	peer    peer
	usage   *usage // of the container that it connected from
	writing sync.Mutex
}

func (s *Server) serve(conn *net.UnixConn) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Now()) })
	defer stop()
	p, err := peerOf(conn)
	if err != nil {
		s.logger.WithError(err).Warn("a client of the bridge was turned away")
		return
	}
	defer p.fd.Close()
	c := &client{server: s, conn: conn, peer: p}
	container := ""
	if who, err := s.host.Who(p.pid); err == nil && p.alive() {
		container = who.Container.ID
	}
	if c.usage = s.enter(container); c.usage == nil {
		c.write(deny("", textManyConns))
		c.linger()
		return
	}
	defer s.leave(container, c.usage)
	c.read(ctx, cancel)
}

// read takes requests until the client has said all, then waits until they are answered.
func (c *client) read(ctx context.Context, cancel context.CancelFunc) {
	in := bufio.NewReaderSize(c.conn, 4<<10)
	flight := make(chan struct{}, maxFlight)
	var running sync.WaitGroup
	for ctx.Err() == nil {
		if _, err := in.Peek(1); err != nil {
			break
		}
		c.conn.SetReadDeadline(time.Now().Add(lineTime))
		line, long, err := c.line(in, func() bool { return c.server.room(c.usage) })
		free := func() {
			if long {
				c.server.free(c.usage)
			}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			free()
			if reason := lineReason(err); reason != "" && ctx.Err() == nil {
				c.write(deny("", reason))
				c.linger()
			}
			break
		}
		c.conn.SetReadDeadline(time.Time{})
		if ctx.Err() != nil { // the deadline that ended the reading may just have been taken back
			free()
			break
		}
		if blank(line) {
			free()
			continue
		}
		if !c.wait(ctx, flight) {
			free()
			cancel()
			break
		}
		if !c.wait(ctx, c.usage.flight) {
			<-flight
			free()
			cancel()
			break
		}
		running.Go(func() {
			defer func() {
				<-c.usage.flight
				<-flight
			}()
			defer free()
			if r, ok := c.server.asksOwn(line); ok {
				c.write(c.server.tools.Call(ctx, c.who, r, func(waits string) {
					c.write(wire.CallAnswer{Answer: wire.Answer{RequestID: r.RequestID}, Progress: waits})
				}))
				return
			}
			if asksCall(line) {
				c.write(c.server.call(ctx, line, c.who))
				return
			}
			c.write(c.server.Answer(ctx, line, c.who))
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		running.Wait()
	}()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			if linux.HungUp(c.conn) {
				cancel() // nobody waits any more
			}
		}
	}
}

// wait takes a place; false: nobody waits for it any more.
func (c *client) wait(ctx context.Context, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case places <- struct{}{}:
			return true
		case <-ctx.Done():
			return false
		case <-tick.C:
			if linux.HungUp(c.conn) {
				return false
			}
		}
	}
}

// line reads one line, its newline left out; long tells that it holds the room of a long one, which room takes. The last may lack the newline: then
// the error is io.EOF.
func (c *client) line(in *bufio.Reader, room func() bool) (line []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > wire.MaxLine {
			return nil, long, errLong
		}
		if !long && len(line)+len(part) > maxShort {
			if !room() {
				return nil, false, errBusy
			}
			long = true
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], long, nil
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			return line, long, err
		}
	}
}

var errBusy = errors.New("busy")

func lineReason(err error) string {
	var late net.Error
	switch {
	case errors.Is(err, errLong):
		return textLong
	case errors.Is(err, errBusy):
		return textBusy
	case errors.As(err, &late) && late.Timeout():
		return textSlow
	}
	return ""
}

func blank(line []byte) bool {
	return len(bytes.Trim(line, " \t\r")) == 0
}

// write sends an answer; a client that does not take it is cut off.
func (c *client) write(a any) {
	line, err := json.Marshal(a)
	if err != nil {
		c.conn.Close()
		return
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	c.conn.SetWriteDeadline(time.Now().Add(lineTime))
	if _, err := c.conn.Write(append(line, '\n')); err != nil {
		c.conn.Close()
	}
}

// linger lets a client that is still sending see its answer: closing with unread input would reset the connection.
func (c *client) linger() {
	c.conn.CloseWrite()
	c.conn.SetReadDeadline(time.Now().Add(lingerTime))
	// what it sends is of no use any more
	_, _ = io.Copy(io.Discard, io.LimitReader(c.conn, 2*wire.MaxLine))
}
