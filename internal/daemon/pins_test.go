package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// part has maps, and pins again what it is told to.
type part struct {
	dir   string
	maps  []string
	names []string
}

func (p *part) Pins() []string { return p.maps }

func (p *part) Restore() error {
	for _, name := range p.names {
		if err := os.WriteFile(filepath.Join(p.dir, name), nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Each pin that is gone is seen, and pinned again; it is told until all are back.
func TestEachPin(t *testing.T) {
	names := []string{"claims", "grants", "egress_events"}
	all := &part{t.TempDir(), names, names}
	if err := all.Restore(); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		var told []string
		mends := &part{all.dir, names[1:], nil}
		p := newPins(all.dir, func(text string) { told = append(told, text) }, mends, &part{all.dir, names[:2], nil}) // one is of both
		if err := errors.Join(p.Check(), p.Keep()); err != nil || len(told) > 0 {
			t.Fatalf("all are there: %v, %q", err, told)
		}
		if err := os.Remove(filepath.Join(all.dir, name)); err != nil {
			t.Fatal(err)
		}
		want := "the pins are gone (" + name + ")"
		if err := p.Check(); err == nil || err.Error() != want {
			t.Errorf("%s is gone: %v", name, err)
		}
		for range 2 {
			if err := p.Keep(); err == nil || err.Error() != want {
				t.Errorf("%s is not pinned again: %v", name, err)
			}
		}
		mends.names = []string{name}
		if err := errors.Join(p.Keep(), p.Check()); err != nil {
			t.Errorf("%s is pinned again: %v", name, err)
		}
		if len(told) != 2 || !strings.HasPrefix(told[0], want+": ") || !strings.HasPrefix(told[1], "the pins are back") {
			t.Errorf("%s: told %q", name, told)
		}
	}
	if err := newPins(filepath.Join(all.dir, "none"), nil, all).Check(); err == nil || err.Error() != "the pins are gone" {
		t.Errorf("all are gone: %v", err)
	}
}

// Pins are looked at again when their directory has changed, and while it may change without that it shows.
func TestPinsAreLookedAtAfterAChange(t *testing.T) {
	all := &part{dir: t.TempDir(), maps: []string{"a"}, names: []string{"a"}}
	if err := all.Restore(); err != nil {
		t.Fatal(err)
	}
	p := newPins(all.dir, func(string) {}, all)
	for p.now() == (version{}) { // until the directory is old enough
		time.Sleep(unclear / 10)
	}
	if err := p.Keep(); err != nil || p.whole == (version{}) {
		t.Fatalf("all are there, and the directory is old: %v, %v", err, p.whole)
	}
	info, err := os.Stat(all.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(all.dir, "a")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(all.dir, info.ModTime(), info.ModTime()); err != nil { // as touch -r
		t.Fatal(err)
	}
	if p.now() != (version{}) {
		t.Error("a directory that has just changed may change again at the same time")
	}
	if err := errors.Join(p.Keep(), p.Check()); err != nil {
		t.Errorf("what is gone is not pinned again: %v", err)
	}
}
