package toolguard

import (
	"os"
	"path/filepath"
	"testing"

	"weir/test/rewritetest"
)

// TestK10: the file is the switch; what cannot be looked at is on.
func TestK10(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "kill-switch")
	for _, on := range []bool{false, true, true, false, false, true} {
		if err := SetKillSwitch(path, on); err != nil {
			t.Fatal(err)
		}
		if KillSwitchOn(path) != on {
			t.Errorf("it is %v, want %v", !on, on)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !KillSwitchOn(filepath.Join(file, "kill-switch")) {
		t.Error("a path that leads nowhere is off")
	}
	if err := SetKillSwitch(filepath.Join(file, "kill-switch"), true); err == nil {
		t.Error("no error where nothing can be written")
	}
}

// K10: a switch that was reported on is on after a power cut.
func TestLastsK10(t *testing.T) {
	dir := t.TempDir()
	for _, on := range []bool{true, false} {
		if !rewritetest.Synced(t, dir, func() {
			if err := SetKillSwitch(filepath.Join(dir, "kill-switch"), on); err != nil {
				t.Error(err)
			}
		}) {
			t.Errorf("on %v: its directory was not synced", on)
		}
	}
}
