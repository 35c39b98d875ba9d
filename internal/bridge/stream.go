package bridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"weir/internal/linux"
)

// Limits on a client of the tools, beside those on lines.
const (
	maxOwnTools = 32 // connections of one container
	maxNotes    = 32 // messages in a second that get no answer
)

// stream is the connection of a client of the tools. The server that reads it keeps what it reads in a queue without bounds: so it is given whole
// lines only, and as many as may wait for their answers.
type stream struct {
	*client
	ctx    context.Context
	in     *bufio.Reader
	flight chan struct{} // requests of this connection without an answer
	rest   []byte        // of the line that is handed over
	note   bool          // that line needs no answer, and is long: its room is free when the next is asked for
	notes  int           // since
	since  time.Time

	reading sync.Mutex // while Read runs
	ended   bool       // nothing is read any more
	writing sync.Mutex // while a client takes an answer
	mu      sync.Mutex
	open    map[jsonrpc.ID]bool // requests without an answer; true: it has the room of a long line
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	for len(s.rest) == 0 {
		if s.ended {
			return 0, io.EOF
		}
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// next reads a line under the limits of the connection.
func (s *stream) next() error {
	if s.note {
		s.server.free(s.usage)
		s.note = false
	}
	if _, err := s.in.Peek(1); err != nil {
		return err
	}
	s.conn.SetReadDeadline(time.Now().Add(lineTime))
	line, long, err := s.line(s.in, s.room)
	if err != nil && !errors.Is(err, io.EOF) {
		if long {
			s.server.free(s.usage)
		}
		return err
	}
	s.conn.SetReadDeadline(time.Time{})
	return s.take(line, long)
}

// room waits a moment for the room of a long line: an agent whose connection is cut off has lost its tools.
func (s *stream) room() bool {
	for end := time.Now().Add(lineTime / 2); ; {
		if s.server.room(s.usage) {
			return true
		}
		if time.Now().After(end) || linux.HungUp(s.conn) || !pause(s.ctx) {
			return false
		}
	}
}

var (
	errTwice = errors.New("the id of a request is in use")
	errLine  = errors.New("a line is not one message")
	errEnded = errors.New("the connection has ended")
)

// message is the one message of a line, as the server will read it: what it answers has its place here, and batches are none.
func message(line []byte) (jsonrpc.Message, error) {
	if !json.Valid(line) { // the server ends a line at a carriage return, too, and takes what is behind it for the next
		return nil, errLine
	}
	return jsonrpc.DecodeMessage(line)
}

// take makes a line the next to be handed over, once there is room for what it asks.
func (s *stream) take(line []byte, long bool) error {
	free := func() {
		if long {
			s.server.free(s.usage)
		}
	}
	if line = bytes.TrimSpace(line); len(line) == 0 {
		free()
		return s.ctx.Err()
	}
	m, err := message(line)
	if err != nil {
		free()
		return err
	}
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		err = s.request(r.ID, long)
	} else {
		err = s.slow()
		s.note = long && err == nil
	}
	if err != nil {
		free()
		return err
	}
	s.rest = append(line, '\n')
	return nil
}

// request takes the place of a request, which its answer frees.
func (s *stream) request(id jsonrpc.ID, long bool) error {
	if !s.wait(s.flight) {
		return errEnded
	}
	if !s.wait(s.usage.open) {
		<-s.flight
		return errEnded
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.open[id]; twice {
		<-s.usage.open
		<-s.flight
		return errTwice
	}
	s.open[id] = long
	return nil
}

// wait takes a place; false: nobody waits for it any more.
func (s *stream) wait(places chan struct{}) bool {
	for {
		select {
		case places <- struct{}{}:
			return true
		case <-s.ctx.Done():
			return false
		case <-time.After(200 * time.Millisecond):
			if linux.HungUp(s.conn) {
				return false
			}
		}
	}
}

// slow lets through so many messages without an answer in a second, and none while the client does not take what it is sent.
func (s *stream) slow() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if now := time.Now(); now.Sub(s.since) >= time.Second {
		s.since, s.notes = now, 0
	}
	if s.notes++; s.notes <= maxNotes {
		return s.ctx.Err()
	}
	s.notes = 1
	select {
	case <-s.ctx.Done():
		return s.ctx.Err()
	case <-time.After(time.Until(s.since.Add(time.Second))):
	}
	s.since = time.Now()
	return nil
}

// Write implements io.Writer; a client that does not take its answers is cut off.
func (s *stream) Write(p []byte) (int, error) {
	if r, ok := answered(p); ok {
		s.mu.Lock()
		long, ok := s.open[r]
		delete(s.open, r) // before the client, which may use the id again, has the answer
		s.mu.Unlock()
		if ok {
			defer s.done(long)
		}
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	s.conn.SetWriteDeadline(time.Now().Add(lineTime))
	n, err := s.conn.Write(p)
	if err != nil {
		s.conn.Close()
	}
	return n, err
}

// answered is the request that a line answers.
func answered(line []byte) (jsonrpc.ID, bool) {
	m, err := jsonrpc.DecodeMessage(line)
	r, ok := m.(*jsonrpc.Response)
	if err != nil || !ok {
		return jsonrpc.ID{}, false
	}
	return r.ID, true
}

func (s *stream) done(long bool) {
	if long {
		s.server.free(s.usage)
	}
	<-s.usage.open
	<-s.flight
}

// end closes the connection and frees what was never answered.
func (s *stream) end() {
	s.conn.Close()
	s.reading.Lock()
	defer s.reading.Unlock()
	s.ended = true
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, long := range s.open {
		delete(s.open, id)
		s.done(long)
	}
	if s.note {
		s.server.free(s.usage)
		s.note = false
	}
}

// Close implements io.Closer.
func (s *stream) Close() error { return s.conn.Close() }

// enterTools counts a connection to the tools; false: the container has its share.
func (s *Server) enterTools(u *usage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.tools >= maxOwnTools {
		return false
	}
	u.tools++
	return true
}

func (s *Server) leaveTools(u *usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.tools--
}
