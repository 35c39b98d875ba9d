package link

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"weir/internal/control"
	"weir/internal/fleet"
	"weir/internal/policy"
)

// obedient takes orders as a sensor with a policy and a clock does.
type obedient struct {
	control.Backend
	mu    sync.Mutex
	fleet policy.Fleet
	ahead time.Duration // of its clock
	took  []string
	fails string // this mode
}

func (o *obedient) Signed(_ context.Context, signed control.Signed) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, err := fleet.Open(signed, o.fleet, "n1", time.Now().Add(o.ahead))
	if err != nil {
		return "", control.Errorf(control.Denied, "refused: %w", err)
	}
	if s.Mode == o.fails {
		return "", errors.New("the disk is full")
	}
	o.took = append(o.took, s.By+" "+s.Mode)
	return "the mode is " + s.Mode, nil
}

// TestStandingOrders: a seal stands until its node takes it: neither what the node lacks meanwhile, nor what others put, nor a full bucket is its end.
func TestStandingOrders(t *testing.T) {
	s, _ := hub(t)
	sensor := &obedient{}
	sensor.fleet.Prefix = "weir"
	keys := map[string]ed25519.PrivateKey{}
	for name, role := range map[string]string{"alice": policy.RoleSeal, "bob": policy.RoleAnswer, "carol": policy.RoleMode} {
		file := filepath.Join(t.TempDir(), name)
		public, err := fleet.NewKey(file)
		if err == nil {
			keys[name], err = fleet.ReadKey(file)
		}
		if err != nil {
			t.Fatal(err)
		}
		sensor.fleet.Operators = append(sensor.fleet.Operators, policy.Operator{Name: name, Key: public, Roles: []string{role}})
	}
	operators := sensor.fleet.Operators
	change := func(clock time.Duration, operators []policy.Operator) {
		sensor.mu.Lock()
		defer sensor.mu.Unlock()
		sensor.ahead, sensor.fleet.Operators = clock, operators
	}
	client := serve(t, sensor)
	var said []string
	o := &orders{Servers: s, Node: Node{Name: "n1", Sensor: client, Say: func(text string) { said = append(said, text) }}}
	looks := func(why string, want ...string) {
		t.Helper()
		sensor.mu.Lock()
		sensor.took = nil
		sensor.mu.Unlock()
		if err := o.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(sensor.took, want) {
			t.Errorf("%s: it took %q, want %q; it said %q", why, sensor.took, want, said)
		}
	}
	put := func(who, mode, node string, counts time.Duration) {
		t.Helper()
		now := time.Now()
		signed, err := fleet.Sign(keys[who], fleet.Statement{Node: node, Signed: now, Expires: now.Add(counts), Mode: mode, Why: "x"})
		if err == nil {
			err = s.Order(t.Context(), node, signed, 0, nil)
		}
		if err != nil && err != context.DeadlineExceeded {
			t.Fatal(err)
		}
	}

	put("alice", "seal", s.Every(), fleet.MostSeal)
	put("bob", "enforce", s.Every(), time.Hour)
	put("bob", "seal", s.Every(), fleet.MostSeal)
	put("bob", "observe", "n1", time.Hour)
	put("alice", "enforce", s.Every(), time.Hour)
	put("carol", "seal", "n1.example.org", time.Hour) // of another node
	change(-24*time.Hour, operators)
	looks("its clock is a day behind")
	before := len(said)
	change(-24*time.Hour+time.Minute, operators) // which is in what is refused
	looks("again")
	if before != 5 || len(said) != before {
		t.Errorf("%d orders were told, then more: %q", before, said)
	}
	change(0, operators[:0])
	looks("its policy has no operator")
	change(0, operators)
	looks("nothing is lacking", "alice seal")
	looks("it was taken")
	o = &orders{Servers: o.Servers, Node: o.Node} // a new start
	looks("a new link", "alice seal")
	put("carol", "enforce", "n1", time.Hour)
	looks("another order", "carol enforce")

	// An order that fails keeps no other from the sensor, and is tried again.
	put("carol", "observe", "n1", time.Hour)
	o = &orders{Servers: o.Servers, Node: o.Node}
	sensor.mu.Lock()
	sensor.fails, sensor.took = "observe", nil
	sensor.mu.Unlock()
	if err := o.take(t.Context()); err == nil || !slices.Equal(sensor.took, []string{"alice seal"}) {
		t.Errorf("it took %q, %v", sensor.took, err)
	}
	change(0, operators)
	sensor.fails = ""
	looks("it works again", "carol observe")

	// An order that expired is brought no more.
	before = len(said)
	put("bob", "seal", "n1", -time.Second)
	looks("an order that has expired")
	for range 2 {
		change(-time.Hour, operators)
		looks("again")
	}
	if len(said) != before+1+4 || slices.ContainsFunc(said[before+1:], func(text string) bool { return text == said[before] }) {
		t.Errorf("it said %q", said[before:])
	}

	// A bucket that somebody has filled takes a new order.
	stream, err := s.js.Stream(t.Context(), "KV_weir_orders")
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.MaxBytes = 64 << 10
	if _, err := s.js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	for size := 8 << 10; size > 0; size /= 2 {
		for i := range 10 { // a bucket that refuses what is too much refuses some
			_, _ = s.js.Publish(t.Context(), fmt.Sprintf("$KV.weir_orders.seal.x%d.other%d", i, size), bytes.Repeat([]byte("x"), size))
		}
	}
	change(0, operators)
	put("alice", "seal", "n1", fleet.MostSeal)
	looks("a full bucket", "alice seal")
	if _, err := s.js.KeyValue(t.Context(), "weir_orders"); err != nil { // tools that read buckets read it
		t.Error(err)
	}
}
