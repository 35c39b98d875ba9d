package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"
)

// The names are those of all maps that the programs have pinned.
func TestNames(t *testing.T) {
	var objects, want []string
	for _, at := range []string{"../*/*_bpfel.o", "../*/*/*_bpfel.o"} {
		found, err := filepath.Glob(at)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, found...)
	}
	for _, object := range objects {
		spec, err := ebpf.LoadCollectionSpec(object)
		if err != nil {
			t.Fatal(err)
		}
		for name, m := range spec.Maps {
			if m.Pinning == ebpf.PinByName {
				want = append(want, name)
			}
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(slices.Compact(want), names); diff != "" {
		t.Errorf("- in %v + here\n%s", objects, diff)
	}
}

// part pins again what it is told to.
type part struct {
	dir   string
	names []string
}

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
	all := &part{t.TempDir(), names}
	if err := all.Restore(); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		var told []string
		mends := &part{all.dir, nil}
		p := newPins(all.dir, func(text string) { told = append(told, text) }, mends)
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
	if err := newPins(filepath.Join(all.dir, "none"), nil).Check(); err == nil || err.Error() != "the pins are gone" {
		t.Errorf("all are gone: %v", err)
	}
}
