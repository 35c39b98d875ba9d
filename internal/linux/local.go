package linux

import "slices"

var localNames = []string{"localhost", "ip6-localhost", "ip6-loopback", "localhost.localdomain", "host.docker.internal"}

// LocalName tells whether a name, in lower case without its last dot, stands in hosts files for this machine, or for the one
// that a container runs on.
func LocalName(name string) bool { return slices.Contains(localNames, name) }
