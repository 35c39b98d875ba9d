package gate

import (
	"testing"
	"time"

	"weir/internal/event"
)

// F11: a question keeps why its container was tainted when it was asked, also over a restart: what a person approved stays what they read.
func TestF11Causes(t *testing.T) {
	bubble(t, func(r *rig) {
		why := "opened /a"
		r.o.Causes = func(container string) []event.Cause {
			if container != "c1" {
				t.Errorf("asked of %q", container)
			}
			return []event.Cause{{Bit: "secret", At: time.Unix(1, 0).UTC(), Source: "file", Why: why}}
		}
		r.crash()
		c := r.ask(curl())
		why = "opened /b"
		r.crash()
		c.gives(Deny, Cancelled)
		if q := r.Pending()[0]; len(q.Causes) != 1 || q.Causes[0].Why != "opened /a" {
			t.Errorf("causes %+v", q.Causes)
		}
	})
}
