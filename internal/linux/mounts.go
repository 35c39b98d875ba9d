package linux

import (
	"fmt"
	"strings"
)

var mountEscapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// PathWithin says whether a path, of a file system or of cgroups, is dir or lies below it.
func PathWithin(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// MountsBelow lists the mount points below a directory, of what /proc/PID/mountinfo has.
func MountsBelow(mountinfo, dir string) []string {
	return mountsThat(mountinfo, func(_, at string) bool { return at != dir && PathWithin(at, dir) })
}

// MountsOf lists the mount points of a file system, by its device's number as the kernel has it (20 bits of minor).
func MountsOf(mountinfo string, device uint32) []string {
	number := fmt.Sprintf("%d:%d", device>>20, device&(1<<20-1))
	return mountsThat(mountinfo, func(of, _ string) bool { return of == number })
}

func mountsThat(mountinfo string, ok func(device, at string) bool) []string {
	var found []string
	for line := range strings.Lines(mountinfo) {
		fields := strings.Split(line, " ") // the kernel escapes no other white space of a path
		if len(fields) < 5 {
			continue
		}
		if at := mountEscapes.Replace(fields[4]); ok(fields[2], at) {
			found = append(found, at)
		}
	}
	return found
}
