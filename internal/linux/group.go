package linux

import (
	"fmt"
	"os/user"
	"strconv"
)

// GroupNamed finds a group of users by its name in /etc/group, or takes name as its number.
func GroupNamed(name string) (uint32, error) {
	number := name
	if g, err := user.LookupGroup(name); err == nil {
		number = g.Gid
	}
	gid, err := strconv.ParseUint(number, 10, 32)
	if err != nil || uint32(gid) == ^uint32(0) {
		return 0, fmt.Errorf("there is no group %q", name)
	}
	return uint32(gid), nil
}
