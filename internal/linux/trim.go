package linux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// SmallPages has this process, and those that it starts, use no transparent huge
// pages: of 2 MiB each, a small heap uses a fraction.
func SmallPages() error {
	if err := unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("turn huge pages off: %w", err)
	}
	return nil
}

// worthTrimming is how much memory, in bytes, was handed out since the last time where trimming gives something back. It costs about
// 20 million instructions, with the pages that are read again.
const worthTrimming = 2 << 20

// TrimEvery trims again and again until ctx ends, where there was work since the last time: each burst leaves something.
// What fails is told.
func TrimEvery(ctx context.Context, period time.Duration, failed func(error)) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	handed := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	for last := uint64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		metrics.Read(handed)
		now := handed[0].Value.Uint64()
		if now-last < worthTrimming {
			continue
		}
		if err := TrimMemory(); err != nil {
			failed(err)
		}
		last = now
	}
}

// TrimMemory collects garbage, gives free memory back, and lets go of the program's own
// code and constants: what is still needed comes back from the page cache, where it
// is shared by all processes of this program, when it is touched next.
func TrimMemory() error {
	debug.FreeOSMemory()
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("read own mappings: %w", err)
	}
	var errs []error
	for line := range strings.Lines(string(maps)) {
		begin, end, ok := unchanged(line, self)
		if !ok {
			continue
		}
		_, _, errno := unix.Syscall(unix.SYS_MADVISE, begin, end-begin, unix.MADV_DONTNEED)
		if errno != 0 {
			errs = append(errs, fmt.Errorf("let go of own code: %w", errno))
		}
	}
	return errors.Join(errs...)
}

// unchanged gives the range of a mapping of file that nothing can have written to.
// What could be written to would be lost.
func unchanged(line, file string) (begin, end uintptr, ok bool) {
	// begin-end permissions offset device inode path; the path may have spaces
	fields := strings.Fields(line)
	if len(fields) < 6 || !strings.HasSuffix(strings.TrimSuffix(line, "\n"), " "+file) {
		return 0, 0, false
	}
	if mode := fields[1]; len(mode) != 4 || mode[0] != 'r' || mode[1] != '-' || mode[3] != 'p' {
		return 0, 0, false
	}
	from, to, _ := strings.Cut(fields[0], "-")
	b, err := strconv.ParseUint(from, 16, 64)
	e, err2 := strconv.ParseUint(to, 16, 64)
	return uintptr(b), uintptr(e), err == nil && err2 == nil && b < e
}
