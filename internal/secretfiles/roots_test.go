package secretfiles

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"weir/internal/policy"
)

// G2: that a mount namespace has too many secret files is told once, and again when another list finds it so.
func TestUntoldG2(t *testing.T) {
	tooMany := errors.New("too many")
	r := newRoot()
	r.found[1] = nodes{inode{number: 7}: {Self: 1}}
	f := &Files{roots: map[uint64]*root{9: r}}
	for i, step := range []struct {
		do   func()
		err  error
		told bool
	}{
		{nil, tooMany, true},
		{nil, tooMany, false},
		{nil, unix.ESRCH, false}, // its process has ended
		{nil, tooMany, false},
		{nil, nil, false},
		{nil, tooMany, true},
		{func() { f.unfind(2) }, tooMany, true},
		{nil, tooMany, false},
	} {
		if step.do != nil {
			step.do()
		}
		if err := f.keep(r, 100, nil, glance{whole: true}, step.err); err != nil {
			t.Errorf("step %d: %v", i, err)
		}
		if err := f.Untold(); errors.Is(err, tooMany) != step.told {
			t.Errorf("step %d: told %v", i, err)
		}
	}
	if len(r.found[1]) != 1 {
		t.Error("what was found before is gone")
	}
}

// G2: what was found for a list counts for the next one until a mount namespace has answered, by the names that both have, and for the old one
// again if the next is not put in force.
func TestOutdatedG2(t *testing.T) {
	file, dir, own := inode{number: 7}, inode{number: 8}, inode{number: 9}
	slow, quick := newRoot(), newRoot()
	f := &Files{roots: map[uint64]*root{0: quick, 9: slow}, lists: map[uint32]*list{}}
	slow.found[1] = nodes{file: {Self: 1}, dir: {Names: 1<<0 | 1<<1}}
	was := maps.Clone(slow.found[1])
	f.lists[1] = &list{names: []string{"c", "b"}}
	undo := f.outdate(1, []string{"a", "b"})
	if diff := cmp.Diff(nodes{file: {Self: 1}, dir: {Names: 1 << 1}}, f.wanted(1), cmp.AllowUnexported(inode{})); diff != "" {
		t.Errorf("before it has answered: %s", diff)
	}
	undo()
	if diff := cmp.Diff(was, f.wanted(1), cmp.AllowUnexported(inode{})); diff != "" {
		t.Errorf("the next list is not in force: %s", diff)
	}
	f.outdate(1, []string{"a", "b"})
	f.lists[1] = &list{names: []string{"b"}}
	f.outdate(1, []string{"c", "b"}) // and it still has not answered
	f.lists[1] = &list{names: []string{"x", "b", "a"}}
	if got := f.wanted(1)[dir].Names; got != 1<<1|1<<2 {
		t.Errorf("after two lists: names %b", got)
	}
	lists := maps.Clone(f.lists)
	before := f.wanted(1)
	if err := f.keep(slow, 100, lists, glance{found: map[uint32]nodes{1: {}}}, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, f.wanted(1), cmp.AllowUnexported(inode{})); diff != "" {
		t.Errorf("after it has answered in part: %s", diff)
	}
	if err := f.keep(slow, 100, lists, glance{found: map[uint32]nodes{1: {own: {Self: 1}}}, whole: true}, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(nodes{own: {Self: 1}}, f.wanted(1), cmp.AllowUnexported(inode{})); diff != "" || !f.stale {
		t.Errorf("after it has answered: stale %v, %s", f.stale, diff)
	}
}

// Who renames files all the time does not hide a listed one that a link leads to by ".." (B92).
func TestB92Renames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"x", "y", "z"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	key := filepath.Join(dir, "y", "key")
	if err := errors.Join(os.WriteFile(key, nil, 0o600), os.Symlink("../y/key", filepath.Join(dir, "x", "link"))); err != nil {
		t.Fatal(err)
	}
	v := viewAt(t, dir)
	var ended sync.WaitGroup
	over := make(chan struct{})
	defer ended.Wait()
	defer close(over)
	for i := range 4 {
		a, b := filepath.Join(dir, "z", fmt.Sprint("a", i)), filepath.Join(dir, "z", fmt.Sprint("b", i))
		if err := os.WriteFile(a, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		ended.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					_, _ = unix.Rename(a, b), unix.Rename(b, a)
				}
			}
		})
	}
	id := idOf(t, key)
	for i := range 8000 {
		v.failed = false
		found, err := v.resolve([]policy.SecretFile{{Dir: "/x", Name: "link", Text: "/x/link"}})
		if err != nil || found[id].Self != 1 && !v.failed {
			t.Fatalf("look %d: found %v, %v", i, found, err)
		}
	}
}
