//go:build vmguest

package rig

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/test/vm/wire"
)

// Receiver is a running receiver program. It remembers all that arrived.
type Receiver struct {
	in io.WriteCloser

	mu       sync.Mutex
	orders   int
	answers  map[int]wire.Arrival
	arrivals []wire.Arrival
	changed  chan struct{}
	listens  map[string]string
}

// Hear starts one that hears every packet on a device of this machine's own network namespace, for as long as t runs.
func Hear(t testing.TB, dev string) *Receiver {
	t.Helper()
	return receiver(t, "receiver", "-dev", dev)
}

// receiver starts the program, as argv says, for as long as t runs.
func receiver(t testing.TB, argv ...string) *Receiver {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := &Receiver{in: in, answers: map[int]wire.Arrival{}, changed: make(chan struct{}), listens: map[string]string{}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		r.read(out)
	}()
	t.Cleanup(func() {
		in.Close()
		<-read
		if err := cmd.Wait(); err != nil {
			t.Errorf("receiver: %v", err)
		}
	})
	return r
}

func (r *Receiver) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var a wire.Arrival
		err := json.Unmarshal(lines.Bytes(), &a)
		r.mu.Lock()
		switch {
		case err != nil:
			r.arrivals = append(r.arrivals, wire.Arrival{Via: "unreadable", Text: lines.Text()})
		case a.ID != 0:
			r.answers[a.ID] = a
		default:
			r.arrivals = append(r.arrivals, a)
		}
		close(r.changed)
		r.changed = make(chan struct{})
		r.mu.Unlock()
	}
}

// wait returns when done does, or reports false after d. done is called with the lock held.
func (r *Receiver) wait(d time.Duration, done func() bool) bool {
	late := time.After(d)
	for {
		r.mu.Lock()
		ok, changed := done(), r.changed
		r.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-late:
			return false
		}
	}
}

func (r *Receiver) send(t testing.TB, o wire.Order) int {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.orders++
	o.ID = r.orders
	if err := json.NewEncoder(r.in).Encode(o); err != nil {
		t.Fatalf("receiver: %v", err)
	}
	return o.ID
}

// Listen lets it listen, once for each place, and returns where if the kernel chose.
func (r *Receiver) Listen(t testing.TB, network, at string) string {
	t.Helper()
	key := network + " " + at
	if where, ok := r.listens[key]; ok {
		return where
	}
	id := r.send(t, wire.Order{Op: "listen", Net: network, At: at})
	var answer wire.Arrival
	if !r.wait(Late, func() bool { answer = r.answers[id]; return answer.ID != 0 }) {
		t.Fatalf("receiver: no answer to listen %s %s", network, at)
	}
	if answer.Error != "" {
		t.Fatalf("receiver: listen %s %s: %s", network, at, answer.Error)
	}
	r.listens[key] = answer.At
	return answer.At
}

// Dial lets it connect and read an answer. It does not wait for that.
func (r *Receiver) Dial(t testing.TB, network, at string) {
	t.Helper()
	r.send(t, wire.Order{Op: "dial", Net: network, At: at})
}

// Got reports whether text has arrived.
func (r *Receiver) Got(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.find(0, text, 0) != nil
}

// WaitGot waits until text has arrived, for d at most.
func (r *Receiver) WaitGot(text string, d time.Duration) bool {
	return r.wait(d, func() bool { return r.find(0, text, 0) != nil })
}

// waitPacket waits until a packet with text in it was heard, and so all packets before it: a socket may have it earlier.
func (r *Receiver) waitPacket(text string, d time.Duration) bool {
	looked := 0 // at so many: under load there are more all the time
	return r.wait(d, func() bool {
		fresh := r.arrivals[looked:]
		looked = len(r.arrivals)
		return slices.ContainsFunc(fresh, func(a wire.Arrival) bool { return a.Via == "packet" && strings.Contains(a.Text, text) })
	})
}

// Count says how many arrivals, of the first of at or later, contain text.
func (r *Receiver) Count(text string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, a := range r.arrivals {
		if strings.Contains(a.Text, text) {
			n++
		}
	}
	return n
}

// Mark is the number of arrivals so far.
func (r *Receiver) Mark() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.arrivals)
}

// find gives the first arrival after the mark that has text in it or, if port is set, is a packet of that port. The reset of a
// connection that is being cut says nothing and does not count.
func (r *Receiver) find(mark int, text string, port int) *wire.Arrival {
	const reset = 4
	for i := range r.arrivals[mark:] {
		a := &r.arrivals[mark+i]
		if strings.Contains(a.Text, text) {
			return a
		}
		if port != 0 && (a.Port == port || a.From == port) && (a.Flags&reset == 0 || a.Payload > 0) {
			return a
		}
	}
	return nil
}

func (r *Receiver) since(mark int) []wire.Arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]wire.Arrival{}, r.arrivals[mark:]...)
}
