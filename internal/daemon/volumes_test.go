package daemon

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/container"
	"weir/internal/event"
	"weir/internal/policy"
)

// B34: what two containers share is the inner one of two directories, if one of them can write there.
func TestB34VolumeOf(t *testing.T) {
	for _, c := range []struct {
		a, b container.Place
		want string
	}{
		{container.Place{Who: "a", Dir: "/srv/p", Writes: true}, container.Place{Who: "b", Dir: "/srv/p"}, "/srv/p"},
		{container.Place{Who: "a", Dir: "/srv/p"}, container.Place{Who: "b", Dir: "/srv/p", Writes: true}, "/srv/p"},
		{container.Place{Who: "a", Dir: "/srv", Writes: true}, container.Place{Who: "b", Dir: "/srv/p"}, "/srv/p"},
		{container.Place{Who: "a", Dir: "/srv/p/q", Writes: true}, container.Place{Who: "b", Dir: "/srv/p"}, "/srv/p/q"},
		{container.Place{Who: "a", Dir: "/srv/p", Writes: true}, container.Place{Who: "b", Dir: "/srv/pq"}, ""},
		{container.Place{Who: "a", Dir: "/srv/p"}, container.Place{Who: "b", Dir: "/srv/p"}, ""},
		{container.Place{Who: "a", Dir: "/srv/p", Writes: true}, container.Place{Who: "a", Dir: "/srv/p", Writes: true}, ""},
		{container.Place{Who: "a", Dir: "/", Writes: true}, container.Place{Who: "b", Dir: "/srv/p", Writes: true}, ""},
		{container.Place{Who: "a", Writes: true}, container.Place{Who: "b", Writes: true}, ""},
	} {
		if got := volumeOf(c.a, c.b); got != c.want {
			t.Errorf("%+v and %+v: %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

// B34: exceptions count with all that is below, and ignore before report.
func TestB34Becomes(t *testing.T) {
	p := policy.Volumes{Shared: policy.Propagate, Report: []string{"/srv/told"}, Ignore: []string{"/srv/told/not", "/srv/cache"}}
	for dir, want := range map[string]string{
		"/srv": "propagate", "/srv/told": "report", "/srv/told/x": "report", "/srv/told/not/x": "ignore", "/srv/cache": "ignore", "/srv/cached": "propagate",
	} {
		if got := becomes(p, dir); got != want {
			t.Errorf("%s: %s, want %s", dir, got, want)
		}
	}
}

// B34: what is shared carries taint, is told once, or is let be, as the policy says.
func TestB34Compare(t *testing.T) {
	var log bytes.Buffer
	d := &daemon{log: newEventLog(event.NewJSONSink(&log))}
	for _, dir := range []string{"/srv/a", "/srv/told", "/srv/cache"} {
		for _, who := range []string{"one", "two", "three"} {
			d.sharing.places = append(d.sharing.places, container.Place{Who: who, Dir: dir, Writes: true})
		}
	}
	d.sharing.policy = policy.Volumes{Shared: policy.Propagate, Report: []string{"/srv/told"}, Ignore: []string{"/srv/cache"}}
	for range 2 {
		d.sharing.dirs = nil
		d.compare()
		if got := d.sharing.dirs; !slices.Equal(got, []string{"/srv/a"}) {
			t.Errorf("%q carry taint", got)
		}
	}
	d.log.Flush()
	if told := log.String(); strings.Count(told, "/srv/told is shared by one and two") != 1 || strings.Count(told, "is shared") != 1 {
		t.Error(told)
	}
}

// B34: a way is told nearest first, and is bounded.
func TestB34Because(t *testing.T) {
	at := time.Unix(1e9, 0)
	all := []event.Cause{
		{Bit: "corruption", At: at, Source: "tool", Tool: "WebFetch"},
		{Bit: "secret", At: at, Source: "volume", Why: "has read from /srv/a", From: make([]string, 2*most)},
	}
	got := because(all, "secret", "second (g-b)")
	if len(got) != 1+most || !strings.HasPrefix(got[0], "second (g-b): secret ") || !strings.Contains(got[0], "/srv/a") {
		t.Errorf("%q", got)
	}
	if got := because(all[:1], "secret", "x"); got != nil {
		t.Errorf("of nothing: %q", got)
	}
}
