package linux

import (
	"os"
	"slices"
)

// What processes can have in common, as kcmp(2) numbers it.
const (
	Memory      = 1
	Descriptors = 2
)

// Sharing returns those of these processes that share something with another one, in groups. It may miss some that end meanwhile.
func Sharing(pids []int, what int) [][]int {
	// threads of the kernel and dead processes all have no memory and no descriptors
	pids = slices.DeleteFunc(slices.Clone(pids), func(pid int) bool {
		_, err := os.Readlink(file(pid, "exe"))
		return err != nil
	})
	compare := func(a, b int) int {
		switch order, err := kcmp(a, b, what); {
		case err == nil && order == 0:
			return 0
		case err == nil && order == 1:
			return -1
		}
		return 1
	}
	slices.SortFunc(pids, compare)
	var groups [][]int
	for len(pids) > 0 {
		n := 1
		for n < len(pids) && compare(pids[0], pids[n]) == 0 {
			n++
		}
		if n > 1 {
			groups = append(groups, pids[:n])
		}
		pids = pids[n:]
	}
	return groups
}
