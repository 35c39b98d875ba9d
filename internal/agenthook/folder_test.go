package agenthook

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/bridge/wire"
)

// TestReplaced: the sensor says every two seconds that it is there, in a new file each time. Who has opened the old one just then is not to take
// it for somebody else's.
func TestReplaced(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("only root can write as the sensor: run this test as root")
	}
	dir, sum := t.TempDir(), sha256.Sum256(nil)
	sign := func() error {
		temp := filepath.Join(dir, wire.TempPrefix)
		return errors.Join(os.WriteFile(temp, nil, 0o644), unix.Setxattr(temp, wire.Stamp, sum[:], 0), os.Rename(temp, filepath.Join(dir, wire.Alive)))
	}
	if err := sign(); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var signing sync.WaitGroup
	signing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := sign(); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(100 * time.Microsecond)
		}
	})
	for range 20_000 {
		if err := (folder{dir}).alive(); err != nil {
			t.Errorf("alive: %v", err)
			break
		}
	}
	close(stop)
	signing.Wait()
}
