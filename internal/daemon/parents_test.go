package daemon

import "testing"

// A sensor makes what systemd and runtimes make themselves, not what is somebody's own.
func TestMakeable(t *testing.T) {
	for _, c := range []struct {
		path            string
		slice, makeable bool
	}{
		{"/machine.slice", true, true},
		{"/kubepods.slice/kubepods-burstable.slice", true, true},
		{"/kubepods", false, true}, // cgroupfs driver
		{"/docker", false, true},
		{"/weir", false, true},
		{"/system.slice/containerd.service", false, false},
		{"/user.slice/user-1000.slice/user@1000.service/user.slice", false, false}, // rootless podman
		{"/machine.slice/libpod-0123.scope", false, false},
	} {
		if isSlice(c.path) != c.slice || makeable(c.path) != c.makeable {
			t.Errorf("%s: slice %v, makeable %v", c.path, isSlice(c.path), makeable(c.path))
		}
	}
}
