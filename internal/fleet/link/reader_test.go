package link

import (
	"testing"

	"github.com/nats-io/nats.go"
)

// TestReader: of what comes again, in whole or in part, only what is new is read.
func TestReader(t *testing.T) {
	r := reader{}
	for i, c := range []struct {
		node, from, to, lines, want string
	}{
		{"n1", "f/0", "f/6", "ab\ncd\n", "ab\ncd\n"},
		{"n1", "f/0", "f/6", "ab\ncd\n", ""},
		{"n2", "f/0", "f/6", "ab\ncd\n", "ab\ncd\n"}, // another node's
		{"n1", "f/3", "f/9", "cd\nef\n", "ef\n"},
		{"n1", "f/0", "f/3", "ab\n", ""},
		{"n1", "g/0", "g/3", "gh\n", "gh\n"},
		{"n1", "f/6", "f/9", "ef\n", ""},                   // late
		{"n1", "f/9", "f/5000000", "{lost}\n", "{lost}\n"}, // a line that was too long
		{"n1", "f/9", "f/5000000", "{lost}\n", ""},
		{"n1", "g/3", "h/0", "{lost}\n", "{lost}\n"}, // a gap
		{"n1", "x", "y", "forged\n", ""},
		{"n1", "f/-1", "f/6000000", "forged\n", ""},
		{"n1", "f/1", "f/7000000", "short\n", "short\n"},
	} {
		if got := string(r.take(c.node, nats.Header{headerFrom: {c.from}, headerTo: {c.to}}, []byte(c.lines))); got != c.want {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
	}
}
