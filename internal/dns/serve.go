package dns

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

const (
	maxQuery  = 4096             // bytes, by UDP
	maxConns  = 32               // TCP connections of a container at the same time
	idleFor   = 10 * time.Second // a TCP connection without a question
	maxWaits  = 128              // UDP questions that wait for a name server
	udpBuffer = 256 << 10
)

// ServeUDP answers what comes until conn is closed.
func (r *Resolver) ServeUDP(ctx context.Context, conn *net.UDPConn) {
	var wg sync.WaitGroup
	defer wg.Wait()
	_ = conn.SetReadBuffer(udpBuffer) // a smaller one does
	waits := make(chan struct{}, maxWaits)
	buf := make([]byte, maxQuery)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // of an answer that could not be delivered
		}
		if r.quick(buf[:n]) {
			if answer := r.Answer(ctx, buf[:n], true); answer != nil {
				_, _ = conn.WriteToUDPAddrPort(answer, from)
			}
			continue
		}
		select {
		case waits <- struct{}{}:
		default:
			r.opts.Counts.failed.Add(1)
			continue
		}
		query := append([]byte{}, buf[:n]...)
		wg.Go(func() {
			defer func() { <-waits }()
			if answer := r.Answer(ctx, query, true); answer != nil {
				_, _ = conn.WriteToUDPAddrPort(answer, from) // the asker may have gone
			}
		})
	}
}

// quick says that a question is answered without asking anybody, so that most need no goroutine.
func (r *Resolver) quick(query []byte) bool {
	name, ok := nameIn(query)
	return !ok || r.kindOf(name) != look
}

// nameIn reads the name of a message's first question, where it is written plainly.
func nameIn(query []byte) (string, bool) {
	if len(query) < headerSize || binary.BigEndian.Uint16(query[4:]) != 1 {
		return "", false
	}
	var name []byte
	for rest := query[headerSize:]; ; {
		if len(rest) == 0 || rest[0] > 63 || len(rest) <= int(rest[0]) {
			return "", false
		}
		n := int(rest[0])
		if n == 0 {
			return canonical(string(name)), true
		}
		if len(name) > 0 {
			name = append(name, '.')
		}
		name = append(name, rest[1:1+n]...)
		rest = rest[1+n:]
	}
}

// ServeTCP answers who connects until l is closed.
func (r *Resolver) ServeTCP(ctx context.Context, l net.Listener) {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conns := make(chan struct{}, maxConns)
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // no descriptors are left
			continue
		}
		select {
		case conns <- struct{}{}:
		default:
			conn.Close()
			continue
		}
		wg.Go(func() {
			defer func() { <-conns }()
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			defer stop()
			defer conn.Close()
			r.serve(ctx, conn)
		})
	}
}

// serve answers one question after the other, each after its length.
func (r *Resolver) serve(ctx context.Context, conn net.Conn) {
	buf := make([]byte, 2+maxQuery)
	for {
		if conn.SetDeadline(time.Now().Add(idleFor)) != nil {
			return
		}
		if _, err := io.ReadFull(conn, buf[:2]); err != nil {
			return
		}
		n := int(binary.BigEndian.Uint16(buf))
		if n > maxQuery {
			r.opts.Counts.malformed.Add(1)
			return
		}
		if _, err := io.ReadFull(conn, buf[2:2+n]); err != nil {
			return
		}
		answer := r.Answer(ctx, buf[2:2+n], false)
		if answer == nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}
