package link

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"weir/internal/control"
)

// wondering wants to know of some identities, and keeps what it is told.
type wondering struct {
	control.Backend
	wants []control.Wanted
	told  []control.Elsewhere
	err   error
	has   []control.Container
}

func (c *wondering) Containers(context.Context) ([]control.Container, error) { return c.has, nil }

func (c *wondering) Moved(_ context.Context, told []control.Elsewhere) ([]control.Wanted, error) {
	c.told = told
	return c.wants, c.err
}

// failing servers fail once.
type failing struct {
	jetstream.JetStream
	err error
}

func (f *failing) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	if err := f.err; err != nil {
		f.err = nil
		return nil, err
	}
	return f.JetStream.Stream(ctx, name)
}

// TestAskOn: what cannot be found of one identity keeps nothing of another from the sensor, and what a sensor refuses is told no more.
func TestAskOn(t *testing.T) {
	s, _ := hub(t)
	bucket, err := s.js.KeyValue(t.Context(), s.taint())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 * maxNodes {
		if _, err := bucket.Put(t.Context(), taintOf("pod 2")+"n"+strconv.Itoa(i), []byte(`{"identity":"pod 2","taint":["secret"]}`)); err != nil {
			t.Fatal(err)
		}
	}
	s.js = &failing{s.js, errors.New("it is busy")}
	sensor := &wondering{wants: []control.Wanted{{Identity: "pod 1"}, {Identity: "pod 2"}}}
	a := &taints{Servers: s, Node: Node{Name: "node", Sensor: serve(t, sensor)}, told: map[string]told{}}
	if err := a.ask(t.Context()); err == nil {
		t.Error("it was busy")
	}
	sensor.wants, sensor.err = nil, control.Errorf(control.Usage, "too long")
	if err := a.ask(t.Context()); err == nil {
		t.Error("it was refused")
	}
	if len(sensor.told) != 1 || sensor.told[0].Identity != "pod 2" || !slices.Equal(sensor.told[0].Taint, []string{"secret"}) || len(sensor.told[0].Nodes) != maxNodes {
		t.Errorf("%+v", sensor.told)
	}
	if sensor.err = nil; a.ask(t.Context()) != nil || len(sensor.told) != 0 {
		t.Errorf("%+v", sensor.told)
	}
	for identity, want := range map[string]string{"pod 3": "[]", "agent a1": "[secret]"} { // an agent's earlier container ran here, too
		if _, err := bucket.Put(t.Context(), taintOf(identity)+a.Name, fmt.Appendf(nil, `{"identity":%q,"taint":["secret"]}`, identity)); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-time.Hour)
		if one, err := a.find(t.Context(), control.Wanted{Identity: identity, Forgotten: at}); err != nil || fmt.Sprint(one.Taint) != want {
			t.Errorf("%+v, %v, want %s", one, err, want)
		}
	}
	// What was told before somebody had it forgotten is not found, and what is told afterwards is.
	forgotten := time.Now()
	if _, err := bucket.Put(t.Context(), taintOf("pod 2")+"later", []byte(`{"identity":"pod 2","taint":["corruption"]}`)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at   time.Time
		want string
	}{{forgotten, "[corruption] [later]"}, {time.Now().Add(time.Minute), "[] []"}} {
		one, err := a.find(t.Context(), control.Wanted{Identity: "pod 2", Forgotten: c.at})
		if got := fmt.Sprint(one.Taint, " ", one.Nodes); err != nil || got != c.want {
			t.Errorf("%s, %v, want %s", got, err, c.want)
		}
	}
}

// TestTellAnew: one container of an agent was cleared by an order to forget, and another one was tainted with the same since: that is told, or it would
// count as forgotten.
func TestTellAnew(t *testing.T) {
	s, _ := hub(t)
	bucket, err := s.js.KeyValue(t.Context(), s.taint())
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	is := func(taint string, since time.Duration) control.Container {
		c := control.Container{Identity: "agent a1", Since: at.Add(since)}
		if taint != "" {
			c.Taint = []string{taint}
		}
		return c
	}
	sensor := &wondering{}
	a := &taints{Servers: s, Node: Node{Name: "node", Sensor: serve(t, sensor)}, told: map[string]told{}}
	for i, c := range []struct {
		has  []control.Container
		told uint64 // in all
	}{
		{[]control.Container{is("secret", 0)}, 1},
		{[]control.Container{is("secret", 0)}, 1},
		{[]control.Container{is("secret", 0), is("", 2)}, 1},
		{[]control.Container{is("", 2), is("secret", 1)}, 2},
		{[]control.Container{is("", 2), is("secret", 1)}, 2},
		{[]control.Container{is("", 2), is("", 3)}, 3},
	} {
		sensor.has = c.has
		if err := a.tell(t.Context()); err != nil {
			t.Fatal(err)
		}
		if e, err := bucket.Get(t.Context(), taintOf("agent a1")+"node"); err != nil || e.Revision() != c.told {
			t.Errorf("%d: %v, %v, want %d", i, e, err, c.told)
		}
	}
}
