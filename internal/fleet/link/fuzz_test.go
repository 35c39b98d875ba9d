package link

import (
	"bytes"
	"testing"

	"github.com/nats-io/nats.go"

	"weir/internal/event"
)

// FuzzTake: whatever a server sends, nothing is made up, and what was read is not read again.
func FuzzTake(f *testing.F) {
	f.Add("f/0", "f/6", []byte("ab\ncd\n"), "f/3", "f/9")
	f.Add("f/-1", "f/9223372036854775807", []byte("x\n"), "f/9223372036854775806", "g/0")
	f.Add("/", "a/b/1", []byte{}, "f/1", "f/0")
	f.Fuzz(func(t *testing.T, from, to string, lines []byte, from2, to2 string) {
		if p, ok := event.ParsePlace(from); ok {
			if again, ok := event.ParsePlace(p.String()); !ok || again != p {
				t.Fatalf("%q is %+v, and then %+v, %v", from, p, again, ok)
			}
		}
		r := reader{}
		for _, at := range [][2]string{{from, to}, {from2, to2}, {from, to}} {
			h := nats.Header{headerFrom: {at[0]}, headerTo: {at[1]}}
			if got := r.take("n", h, lines); !bytes.HasSuffix(lines, got) {
				t.Fatalf("%q of %q", got, lines)
			}
			a, ok := event.ParsePlace(at[0])
			b, ok2 := event.ParsePlace(at[1])
			if got := r.take("n", h, lines); ok && ok2 && a.File == b.File && got != nil {
				t.Fatalf("%q is read again", got)
			}
		}
	})
}
