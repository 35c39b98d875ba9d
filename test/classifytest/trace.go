package classifytest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// traced are the system calls that strace shows: what starts programs, what makes processes (to know whose they are), the marker,
// and whatever could reach out.
const traced = "execve,execveat,clone,clone3,fork,vfork,chdir,%network,io_uring_setup,ptrace,bpf,mount,unshare,setns"

// marker is in the line with which a command's subshell begins.
const marker = `chdir("/mnt/work/%d")`

var (
	markLine = regexp.MustCompile(`^chdir\("/mnt/work/(\d+)"`)
	forkLine = regexp.MustCompile(`^(?:<\.\.\. )?(?:clone3?|v?fork)\b.*= (\d+)$`)
	execLine = regexp.MustCompile(`^execve(?:at)?\((?:[A-Z_0-9]+, )?"((?:[^"\\]|\\.)*)"`)
	// What is no concern of ours: glibc asks a name cache that is not there, and bash -c asks whether a socket is its input.
	quietLine = regexp.MustCompile(`^(chdir|clone3?|v?fork|<\.\.\. |\+\+\+|---|getpeername\(0, |socket\(AF_UNIX, SOCK_STREAM\|SOCK_CLOEXEC\|SOCK_NONBLOCK, 0|connect\(\d+, \{sa_family=AF_UNIX, sun_path="/var/run/nscd/socket"\})`)
)

// parseTrace tells for each of n commands what its processes did. Each command must have begun.
func parseTrace(trace string, n int) ([]Seen, error) {
	parent, command := map[int]int{}, map[int]int{}
	type event struct {
		pid  int
		text string
	}
	var events []event
	begun := make([]bool, n)
	for line := range strings.Lines(trace) {
		number, text, ok := strings.Cut(strings.TrimSpace(line), " ")
		pid, err := strconv.Atoi(number)
		if !ok || err != nil {
			return nil, fmt.Errorf("line %q", line)
		}
		text = strings.TrimSpace(text)
		if m := forkLine.FindStringSubmatch(text); m != nil {
			child, _ := strconv.Atoi(m[1])
			parent[child] = pid
			continue
		}
		if m := markLine.FindStringSubmatch(text); m != nil {
			i, _ := strconv.Atoi(m[1])
			if _, has := command[pid]; !has && i < n && !begun[i] {
				command[pid], begun[i] = i, true
			}
			continue
		}
		if !quietLine.MatchString(text) {
			events = append(events, event{pid, text})
		}
	}
	for i, ok := range begun {
		if !ok {
			return nil, fmt.Errorf("command %d did not begin", i)
		}
	}
	seen := make([]Seen, n)
	for _, e := range events {
		pid := e.pid
		for {
			if _, ok := command[pid]; ok || parent[pid] == 0 {
				break
			}
			pid = parent[pid]
		}
		i, ok := command[pid]
		if !ok {
			continue // the driver
		}
		if m := execLine.FindStringSubmatch(e.text); m != nil {
			path, err := strconv.Unquote(`"` + m[1] + `"`)
			if err != nil {
				path = m[1]
			}
			seen[i].Execs = append(seen[i].Execs, path)
			continue
		}
		seen[i].Sockets = append(seen[i].Sockets, e.text)
	}
	return seen, nil
}
