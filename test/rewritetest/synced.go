// Package rewritetest sees in tests whether a directory was opened after a name in it had changed: only so can the change be synced.
package rewritetest

import (
	"encoding/binary"
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// changed are the events of names that are made, moved and removed.
const changed = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_DELETE

// Synced says whether do changed names in the directory and opened it after the last one.
func Synced(t *testing.T, dir string, do func()) bool {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if _, err := unix.InotifyAddWatch(fd, dir, changed|unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	do()
	buf := make([]byte, 64<<10)
	n, err := unix.Read(fd, buf)
	if errors.Is(err, unix.EAGAIN) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	any, synced := false, false
	for at := 0; at < n; {
		mask, name := binary.NativeEndian.Uint32(buf[at+4:]), binary.NativeEndian.Uint32(buf[at+12:])
		switch {
		case mask&changed != 0:
			any, synced = true, false
		case mask&unix.IN_ISDIR != 0 && name == 0:
			synced = any
		}
		at += unix.SizeofInotifyEvent + int(name)
	}
	return synced
}
