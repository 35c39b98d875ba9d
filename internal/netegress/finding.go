package netegress

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"weir/internal/linux"
)

// SocketFindings names the open sockets of a container that send below the packet
// check: packet and raw sockets from before the taint (B17, B18). Their sends
// are refused all the same; a ring of one that is mapped is not seen.
func SocketFindings(path string) ([]string, error) {
	pids, err := linux.CgroupTree(path)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, pid := range pids {
		own, err := linux.SocketInodes(pid)
		if err != nil {
			continue // it is gone
		}
		// the column of the inode, counted from 0, in each table of sockets
		for table, column := range map[string]int{"packet": 8, "raw": 9, "raw6": 9} {
			inodes, err := socketTable(pid, table, column)
			if err != nil {
				return found, err
			}
			for _, inode := range inodes {
				if own[inode] {
					found = append(found, fmt.Sprintf("process %d has an open %s socket (inode %d)", pid, table, inode))
				}
			}
		}
	}
	return found, nil
}

func socketTable(pid int, table string, column int) ([]uint64, error) {
	f, err := os.Open("/proc/" + strconv.Itoa(linux.Living(pid)) + "/net/" + table)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read table of %s sockets: %w", table, err)
	}
	defer f.Close()
	var inodes []uint64
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > column {
			if inode, err := strconv.ParseUint(fields[column], 10, 64); err == nil {
				inodes = append(inodes, inode)
			}
		}
	}
	return inodes, nil
}

// Ties names what processes of a container have had in common with others since before it was guarded: whom they trace, and with whom
// they share descriptors or memory. What is done with that passes no hook (B98).
func Ties(path string) ([]string, error) {
	all, err := linux.PIDs()
	if err != nil {
		return nil, err
	}
	inside := map[int]bool{}
	for _, pid := range all {
		at, err := linux.CgroupOf(pid)
		inside[pid] = err == nil && linux.PathWithin(at, path)
	}
	var found []string
	for _, pid := range all {
		tracer, err := linux.Tracer(pid)
		if err != nil || tracer == 0 || inside[pid] {
			continue
		}
		if at, err := linux.CgroupOf(tracer); err == nil && linux.PathWithin(at, path) {
			found = append(found, fmt.Sprintf("process %d traces process %d outside", tracer, pid))
		}
	}
	for what, name := range map[int]string{linux.Memory: "memory", linux.Descriptors: "descriptors"} {
		for _, group := range linux.Sharing(all, what) {
			own := slices.IndexFunc(group, func(pid int) bool { return inside[pid] })
			other := slices.IndexFunc(group, func(pid int) bool { return !inside[pid] })
			if own >= 0 && other >= 0 {
				found = append(found, fmt.Sprintf("process %d shares its %s with process %d outside", group[own], name, group[other]))
			}
		}
	}
	return found, nil
}
