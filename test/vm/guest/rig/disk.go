//go:build vmguest

package rig

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

const disk = "/mnt/small"

// Disk has the sensor's state and events, and can be filled and broken.
type Disk struct{ image string }

// NewDisk mounts one of so many MiB until t ends.
func NewDisk(t testing.TB, mib int) *Disk {
	t.Helper()
	d := &Disk{filepath.Join(t.TempDir(), "disk")}
	Must(t, fmt.Sprintf("modprobe loop && truncate -s %dM %s && mkfs.ext4 -q -m 0 %[2]s && mkdir -p %s %s %s", mib, d.image, disk, stateDir, filepath.Dir(eventFile)))
	d.Mount(t)
	t.Cleanup(func() { d.Unmount(t) })
	return d
}

// Mount mounts it again.
func (d *Disk) Mount(t testing.TB) {
	t.Helper()
	Must(t, "mount -o loop "+d.image+" "+disk+" && mkdir -p "+disk+"/state "+disk+"/log && mount --bind "+disk+"/state "+stateDir+
		" && mount --bind "+disk+"/log "+filepath.Dir(eventFile))
}

// Unmount takes it away.
func (d *Disk) Unmount(t testing.TB) {
	t.Helper()
	Must(t, "umount "+filepath.Dir(eventFile)+" "+stateDir+" "+disk)
}

// Break makes the kernel take it for broken.
func (d *Disk) Break(t testing.TB) { t.Helper(); Must(t, "sync; mount -o remount,abort "+disk) }

// Fill leaves no room, neither for blocks nor in what the log has of its last one. What the disk's own journal gives back after a while is
// filled too. run runs a command that the log would tell of.
func (d *Disk) Fill(t testing.TB, s *Sensor, run func()) {
	t.Helper()
	Must(t, "dd if=/dev/zero of="+disk+"/fill bs=1M 2>/dev/null; sync -f "+disk)
	full := 0
	Eventually(t, "the log is full", func() bool {
		Must(t, "dd if=/dev/zero bs=1k 2>/dev/null >>"+disk+"/fill2; sync -f "+disk)
		before := s.Counter(t, "lost_sink")
		run()
		full++
		for end := time.Now().Add(3 * time.Second); s.Counter(t, "lost_sink") == before; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				full = 0
				break
			}
		}
		return full == 4
	})
}

// Free makes room again.
func (d *Disk) Free(t testing.TB) { t.Helper(); Must(t, "rm "+disk+"/fill "+disk+"/fill2") }

// StoredTaint says whether a container's taint is on disk.
func StoredTaint(t testing.TB, name string) bool {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "state.db")
	Must(t, "cp "+stateDir+"/state.db "+copied)
	db, err := bbolt.Open(copied, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tainted := false
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("taint")).ForEach(func(_, data []byte) error {
			var r struct {
				Name  string
				Taint int
			}
			if err := json.Unmarshal(data, &r); err != nil {
				return err
			}
			tainted = tainted || r.Name == name && r.Taint != 0
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return tainted
}

// TidyLog takes out lines that a full disk took in part: whatever else is in the log must fit its schema. No sensor may run.
func TidyLog(t testing.TB) {
	t.Helper()
	data, err := os.ReadFile(eventFile)
	if err != nil {
		t.Fatal(err)
	}
	kept, torn := "", 0
	for line := range strings.Lines(string(data)) {
		if json.Valid([]byte(line)) {
			kept += line
		} else if strings.TrimSpace(line) != "" {
			torn++
		}
	}
	if torn > 2 {
		t.Errorf("%d lines are torn", torn)
	}
	if err := os.WriteFile(eventFile, []byte(kept), 0o600); err != nil {
		t.Fatal(err)
	}
}
