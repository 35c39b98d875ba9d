package daemon

import (
	"path"
	"strings"
)

// units are what runtimes put before a container's id in the name of its systemd scope, or of its cgroup (libpod).
var units = []struct{ prefix, runtime string }{
	{"docker-", "docker"}, {"libpod-", "podman"}, {"nerdctl-", "containerd"}, {"cri-containerd-", "containerd"}, {"crio-", "cri-o"},
}

// parents are cgroups that one runtime alone puts containers into, by their bare id.
var parents = map[string]string{"docker": "docker", "libpod_parent": "podman"}

// idBytes is the length of an id in hexadecimal digits, as all of these runtimes make it.
const idBytes = 64

// runtimeOf returns which runtime a cgroup was made by, and the id of the container. The runtime is empty where only the id is clear; both
// are where the cgroup is none of a container.
func runtimeOf(at string) (runtime, id string) {
	dir, base := path.Split(path.Clean(at))
	if isID(base) {
		return parents[path.Base(dir)], base
	}
	name := strings.TrimSuffix(base, ".scope")
	for _, u := range units {
		if id, ok := strings.CutPrefix(name, u.prefix); ok && isID(id) {
			return u.runtime, id
		}
	}
	return "", ""
}

func isID(s string) bool {
	return len(s) == idBytes && !strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) })
}
