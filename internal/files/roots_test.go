package files

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// G2: that a mount namespace has too many secret files is told once, and again when another list finds it so.
func TestUntold(t *testing.T) {
	tooMany := errors.New("too many")
	r := &root{found: map[uint32]nodes{1: {inode{number: 7}: {Self: 1}}}}
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
		if err := f.keep(r, 100, nil, nil, inode{}, step.err); err != nil {
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
