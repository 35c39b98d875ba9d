//go:build vmguest

package rig

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"weir/internal/gate"
	"weir/internal/linux"
)

// Late is how long something may take that must happen: the VM runs in software, often beside others.
const Late = time.Minute

// Place is an address in the world that only one test uses, and a text that only it sends there.
type Place struct {
	outside *Outside
	Port    int
	To      string // with the port
	Text    string
}

// Place makes one; nobody listens there.
func (o *Outside) Place() Place {
	port := o.Port()
	return Place{o, port, fmt.Sprintf("%s:%d", World4, port), fmt.Sprintf("text.%d.end", port)}
}

// Raw is a place that takes whatever comes over TCP, and answers nothing.
func (o *Outside) Raw(t testing.TB) Place {
	t.Helper()
	p := o.Place()
	o.World.Listen(t, "tcp", fmt.Sprintf("[::]:%d", p.Port))
	return p
}

// Web is a place that serves HTTP for as long as t runs.
func (o *Outside) Web(t testing.TB) Place {
	t.Helper()
	p := o.Place()
	listener, err := ListenIn("world", p.To)
	if err != nil {
		t.Fatalf("listen in the world: %v", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			fmt.Fprint(w, "answer")
		}
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends when it is closed
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return p
}

// ListenIn listens in a named network namespace: a socket stays where it was made.
func ListenIn(netns, at string) (l net.Listener, err error) {
	err = Within(netns, func() (err error) {
		l, err = net.Listen("tcp", at)
		return err
	})
	return l, err
}

// Within runs f in a named network namespace.
func Within(netns string, f func() error) error {
	there, err := os.Open("/run/netns/" + netns)
	if err != nil {
		return err
	}
	defer there.Close()
	return linux.InNetwork(there, f)
}

// URL says the text in its path.
func (p Place) URL() string { return "http://" + p.To + "/" + p.Text }

// Curl is a command that sends the text. Its own limit goes on while it is held.
func (p Place) Curl() []string { return []string{"curl", "-sS", "-m", "600", p.URL()} }

// Egress is the attack program's command line for an attempt that sends the text.
func (p Place) Egress(words string) []string {
	return append(append([]string{"egress"}, strings.Fields(words)...), "-to", p.To, "-say", p.Text)
}

// About says whether a question is about this place.
func (p Place) About(q gate.Question) bool { return int(q.Destination.Port) == p.Port }

// Nothing fails t if the text or any packet for this place arrived.
func (p Place) Nothing(t testing.TB) {
	t.Helper()
	p.outside.Nothing(t, Marks{}, p.Text, p.Port)
}

// Arrived fails t unless the text arrives.
func (p Place) Arrived(t testing.TB) {
	t.Helper()
	if !p.outside.WaitGot(p.Text, Late) {
		t.Errorf("%s did not arrive", p.Text)
	}
}

// Eventually ends t unless done comes true.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(Late); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not after %v", what, Late)
		}
	}
}
