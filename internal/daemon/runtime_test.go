package daemon

import (
	"strings"
	"testing"
)

// The layouts are those that Docker, podman, nerdctl and CRI-O document and make.
func TestOf(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	const user = "/user.slice/user-1000.slice/user@1000.service/user.slice/"
	for _, c := range []struct {
		path, runtime string
		none          bool
	}{
		{"/docker/" + id, "docker", false},                                                   // cgroupfs driver
		{"/system.slice/docker-" + id + ".scope", "docker", false},                           // systemd driver
		{user + "docker-" + id + ".scope", "docker", false},                                  // rootless
		{"/agents/" + id, "", false},                                                         // --cgroup-parent: Docker's or a Kubernetes runtime's
		{"/agents.slice/docker-" + id + ".scope", "docker", false},                           // --cgroup-parent, systemd driver
		{"/machine.slice/libpod-" + id + ".scope", "podman", false},                          // systemd
		{"/libpod_parent/libpod-" + id, "podman", false},                                     // cgroupfs
		{"/machine.slice/machine-libpod_pod_" + id + ".slice", "", true},                     // a pod
		{user + "libpod-" + id + ".scope", "podman", false},                                  // rootless
		{user + "user-libpod_pod_" + id + ".slice/libpod-" + id + ".scope", "podman", false}, // rootless, in a pod
		{"/machine.slice/libpod-conmon-" + id + ".scope", "", true},                          // podman's monitor, no container
		{"/system.slice/nerdctl-" + id + ".scope", "containerd", false},
		{"/kubepods.slice/kubepods-pod0a_1b.slice/cri-containerd-" + id + ".scope", "containerd", false},
		{"/kubepods.slice/kubepods-pod0a_1b.slice/crio-" + id + ".scope", "cri-o", false},
		{"/kubepods.slice/kubepods-pod0a_1b.slice/crio-conmon-" + id + ".scope", "", true},
		{"/kubepods/burstable/pod0a-1b/" + id, "", false},
		{"/system.slice/docker.service", "", true},
		{"/system.slice/docker-" + id[1:] + ".scope", "", true},
		{"/system.slice/docker-" + strings.ToUpper(id) + ".scope", "", true},
		{"/weir/g-abc234", "", true},
		{"/", "", true},
		{"", "", true},
	} {
		runtime, got := runtimeOf(c.path)
		want := id
		if c.none {
			want = ""
		}
		if runtime != c.runtime || got != want {
			t.Errorf("%s: %q, %q; want %q, %q", c.path, runtime, got, c.runtime, want)
		}
	}
}
