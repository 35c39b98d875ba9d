// Package link carries events and questions of a node to servers of NATS, and people's signed words from there to the sensor. It needs no
// rights but to look at the control socket, and nobody believes it: what it brings counts for who signed it.
//
// Events go in order, at least once, from the sensor's own log: the stream's last message of this node says where to go on. Readers drop
// what they have by its place in the log.
package link

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"weir/internal/event"
	"weir/internal/fleet"
	"weir/internal/linux"
	"weir/internal/policy"
)

const (
	connectTime = 10 * time.Second
	callTime    = 5 * time.Second // for an answer of a server
	questionAge = 24 * time.Hour  // that a bucket keeps one
)

// Servers are the servers that a policy names, as one connection.
type Servers struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	prefix string
}

// Connect connects, and goes on with it for ever once that was possible; with patience it begins also where no server can be reached yet.
// say is told of what changes, and may be called at the same time. The caller closes the Servers.
func Connect(p policy.Fleet, name string, patience bool, say func(string)) (*Servers, error) {
	if len(p.Servers) == 0 {
		return nil, errors.New("fleet.servers names no server")
	}
	options := []nats.Option{
		nats.Name(name), nats.Timeout(connectTime), nats.MaxReconnects(-1), nats.ReconnectWait(time.Second), nats.ReconnectJitter(500*time.Millisecond, time.Second),
		nats.ReconnectBufSize(-1), // what cannot be sent fails, and is sent anew in its order
		nats.PingInterval(20 * time.Second), nats.RetryOnFailedConnect(patience),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				say("disconnected: " + event.Plain(err))
			}
		}),
		nats.ConnectHandler(func(c *nats.Conn) { say("connected to " + c.ConnectedUrlRedacted()) }),
		nats.ReconnectHandler(func(c *nats.Conn) { say("connected again to " + c.ConnectedUrlRedacted()) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { say(event.Plain(err)) }),
	}
	if p.CAFile != "" {
		options = append(options, nats.RootCAs(p.CAFile))
	}
	own, err := account(p)
	if err != nil {
		return nil, err
	}
	options = append(options, own...)
	nc, err := nats.Connect(strings.Join(p.Servers, ","), options...)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", strings.Join(p.Servers, ", "), err)
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(callTime))
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("use JetStream: %w", err)
	}
	return &Servers{nc, js, p.Prefix}, nil
}

// Close ends the connection.
func (s *Servers) Close() { s.nc.Close() }

// account is how to log in, if the policy says so, and has answers of the servers come to where this account alone may listen.
func account(p policy.Fleet) ([]nats.Option, error) {
	if p.CredsFile == "" {
		return nil, nil
	}
	text, err := linux.ReadSecret(p.CredsFile)
	if err != nil {
		return nil, fmt.Errorf("fleet.creds_file: %w", err)
	}
	login, public := nats.UserCredentials(p.CredsFile), ""
	pair, err := nkeys.ParseDecoratedNKey([]byte(text))
	if err == nil {
		public, err = pair.PublicKey()
	}
	if err == nil && !strings.Contains(text, "USER JWT") {
		login, err = nats.NkeyOptionFromSeed(p.CredsFile)
	}
	if err != nil {
		return nil, errors.New("read fleet.creds_file: it has neither credentials nor the seed of an nkey")
	}
	return []nats.Option{login, nats.CustomInboxPrefix("_INBOX_" + public)}, nil
}

// Names at the servers.
func (s *Servers) events() string                { return s.prefix + "_events" }          // a stream
func (s *Servers) eventsOf(node string) string   { return s.prefix + ".events." + node }  // a subject of it
func (s *Servers) questions() string             { return s.prefix + "_questions" }       // a bucket
func (s *Servers) answersFor(node string) string { return s.prefix + ".answers." + node } // a subject

func (s *Servers) orders() string { return s.prefix + "_orders" } // a bucket

func (s *Servers) ordersNow() string { return s.prefix + ".orders" } // a subject

// Limits are those of what Init makes.
type Limits struct {
	Age      time.Duration
	Bytes    int64
	Replicas int
}

// Init makes the stream and the bucket, or gives those that are there these limits.
func (s *Servers) Init(ctx context.Context, l Limits) error {
	_, err := s.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: s.events(), Subjects: []string{s.eventsOf(">")}, Description: "Weir: the events of all nodes",
		MaxAge: l.Age, MaxBytes: l.Bytes, Discard: jetstream.DiscardOld, Replicas: l.Replicas, Compression: jetstream.S2Compression,
		AllowDirect: true, DenyDelete: true, DenyPurge: true,
	})
	if err != nil {
		return fmt.Errorf("make the stream %s: %w", s.events(), err)
	}
	_, err = s.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: s.questions(), Description: "Weir: the questions of all nodes", TTL: questionAge, MaxBytes: 256 << 20, Replicas: l.Replicas,
	})
	if err != nil {
		return fmt.Errorf("make the bucket %s: %w", s.questions(), err)
	}
	_, err = s.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: s.taint(), Description: "Weir: taint of containers, by what they are called on every node", TTL: taintAge, MaxBytes: 256 << 20, MaxValueSize: 1 << 10, Replicas: l.Replicas,
	})
	if err != nil {
		return fmt.Errorf("make the bucket %s: %w", s.taint(), err)
	}
	// It is a bucket that takes a new order also when it is full.
	_, err = s.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: "KV_" + s.orders(), Subjects: []string{"$KV." + s.orders() + ".>"}, Description: "Weir: the newest orders",
		MaxAge: fleet.MostSeal, MaxBytes: 64 << 20, MaxMsgsPerSubject: 1, Discard: jetstream.DiscardOld, Replicas: l.Replicas,
		AllowDirect: true, AllowRollup: true, DenyDelete: true,
	})
	if err != nil {
		return fmt.Errorf("make the bucket %s: %w", s.orders(), err)
	}
	return nil
}
