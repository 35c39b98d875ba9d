//go:build vmguest

package failure

import (
	"os"
	"strings"
	"testing"

	"weir/internal/control"
	"weir/internal/event"
)

// badPolicy: a file with a mistake, one that names what is not there, and one that is not written to its end change nothing, and
// the log says why.
func (f *fixture) badPolicy(t *testing.T) {
	to := f.target(t)
	f.loaded(t, func() { write(t, whole(allow(to))) })
	defer f.loaded(t, func() { write(t, whole(policy)) })
	under := f.load(t, to)
	for _, bad := range []struct{ text, why string }{
		{whole("mode: observe\nalow: []\n"), `unknown key "alow"`},
		{whole("mode: observe\nguard:\n  parents: [/nowhere]\n"), "find cgroup /nowhere"},
		{"version: 1\nmode: observe\nevents:\n  file: /elsewhere\n", "events: changed"},
		{"", "the file is empty"},
	} {
		write(t, bad.text)
		f.sensor.Event(t, func(e event.Event) bool {
			return e.Kind == event.Error && strings.HasPrefix(e.Message, "policy refused") && strings.Contains(e.Message, bad.why)
		})
	}
	// a writer that takes its time: what stands there so far would open everything
	half, err := os.OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	if _, err := half.WriteString(whole(policy + "mode: observe\n")); err != nil {
		t.Fatal(err)
	}
	f.message(t, "open for writing")
	f.probe.Steady(t)
	if err := half.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if _, err := half.WriteAt([]byte(whole(allow(to))), 0); err != nil {
		t.Fatal(err)
	}
	f.loaded(t, func() { half.Close() })
	under.neverRefused(t)
	if st, err := client().Status(t.Context()); err != nil || st.Mode != "enforce" {
		t.Errorf("mode %q, %v", st.Mode, err)
	}
}

// mode: seal shuts in one step what is allowed, whether the policy's file or a person says so; what a person says outlives the
// daemon. A mode that is none changes nothing.
func (f *fixture) mode(t *testing.T) {
	to := f.target(t)
	f.loaded(t, func() { write(t, whole(allow(to))) })
	defer f.loaded(t, func() { write(t, whole(policy)) })
	under := f.load(t, to)
	if _, exit := f.sensor.Weir(t, "mode", "observ", "--why", "test"); exit != 2 {
		t.Errorf("weir mode observ: exit %d, want 2", exit)
	}
	under.open(t, "a mode that is none")
	under.neverRefused(t)

	under = f.load(t, to)
	f.loaded(t, func() { write(t, whole("mode: seal\n"+allow(to))) })
	under.shut(t, to, "sealed by the file")
	f.loaded(t, func() { write(t, whole(allow(to))) })
	under.open(t, "enforced by the file")
	f.sensor.Must(t, "mode", "seal", "--why", "test")
	under.shut(t, to, "sealed under load")
	under.stop(t)
	sealed := func(when string) {
		t.Helper()
		mark := f.world.Mark(t)
		if r := f.session.Run(t, to.Egress("tcp")...); r.Exit != 3 {
			t.Errorf("%s: %s", when, r)
		}
		f.world.Quiet(t, mark, to.Port)
	}
	sealed("sealed")
	f.sensor.Kill(t)
	sealed("sealed, without a daemon")
	under = f.load(t, to)
	f.sensor.Restart(t)
	if passed, refused := under.stop(t); passed != 0 || refused == 0 {
		t.Errorf("sealed, while a daemon starts: reached %d times, refused %d times", passed, refused)
	}
	sealed("sealed, with another daemon")
	f.sensor.Must(t, "mode", "enforce", "--why", "test")
	if r := f.session.Run(t, to.Egress("tcp")...); r.Exit != 0 {
		t.Errorf("enforced: %s", r)
	}
}

func client() *control.Client { return control.NewClient("/run/weir") }
