package linux

import "strings"

var mountEscapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// MountsBelow lists the mount points below a directory, of what /proc/PID/mountinfo has.
func MountsBelow(mountinfo, dir string) []string {
	var found []string
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		if at := mountEscapes.Replace(fields[4]); strings.HasPrefix(at, strings.TrimSuffix(dir, "/")+"/") {
			found = append(found, at)
		}
	}
	return found
}
