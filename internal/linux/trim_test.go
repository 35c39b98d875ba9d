package linux

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestUnchanged(t *testing.T) {
	type got struct {
		Begin, End uintptr
		OK         bool
	}
	const file = "/usr/local/bin/my weir"
	for _, c := range []struct {
		name, line string
		want       got
	}{
		{"code", "00400000-00a1f000 r-xp 00000000 fe:00 1234   /usr/local/bin/my weir\n", got{0x400000, 0xa1f000, true}},
		{"constants", "00a1f000-01000000 r--p 0061f000 fe:00 1234   /usr/local/bin/my weir\n", got{0xa1f000, 0x1000000, true}},
		{"data", "01000000-01090000 rw-p 00c00000 fe:00 1234   /usr/local/bin/my weir\n", got{}},
		{"shared", "01000000-01090000 r--s 00c00000 fe:00 1234   /usr/local/bin/my weir\n", got{}},
		{"other file", "7f0000000000-7f0000600000 r--p 00000000 00:15 99   /sys/kernel/btf/vmlinux\n", got{}},
		{"other name", "00400000-00a1f000 r-xp 00000000 fe:00 1234   /tmp/usr/local/bin/my weir2\n", got{}},
		{"heap", "c000000000-c000400000 rw-p 00000000 00:00 0 \n", got{}},
		{"guard", "00400000-00a1f000 ---p 00000000 fe:00 1234   /usr/local/bin/my weir\n", got{}},
		{"broken", "zz-00a1f000 r-xp 00000000 fe:00 1234   /usr/local/bin/my weir\n", got{}},
		{"empty", "", got{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, e, ok := unchanged(c.line, file)
			if !ok {
				b, e = 0, 0
			}
			if diff := cmp.Diff(c.want, got{b, e, ok}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEvery(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		TrimEvery(ctx, time.Nanosecond, func(err error) { t.Error(err) })
	}()
	cancel()
	<-done
}

// What was let go of comes back: the program goes on.
func TestTrim(t *testing.T) {
	if err := TrimMemory(); err != nil {
		t.Fatal(err)
	}
	TestUnchanged(t)
}
