package classifytest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Stubs are the programs that a mistake would run: none of them does anything. They come first in PATH.
var Stubs = []string{"pwn", "p", "curl", "wget", "nc", "ncat", "netcat", "telnet", "ssh", "scp", "rsync", "socat", "dig", "ping", "python", "python3",
	"perl", "ruby", "node", "php", "lua", "sudo", "docker", "make", "git", "vi", "gzip", "lzip", "zstd", "bzip2", "xz", "man", "apt", "pip", "tclsh"}

// fixture is what each command finds in its folder: files with text, stubs that PATH=. would find, and names that are options.
var fixture = map[string]string{
	"f": "b 2\na 1\nc[$(pwn)] 3\n", "g": "x:y\n-x\n./p\n", "d/h": "h\n", "a.txt": "one\ntwo\n", "b.txt": "$(pwn)\n`pwn`\n",
	"j.json": "{\"a\":[1,2],\"b\":\"$(pwn)\"}\n", "list": "f\ng\n", "--pre=p": "", "-exec": "", "--compress-program=p": "",
	"s.sed": "1e ./p\n", "e.awk": "BEGIN{system(\"./p\")}\n",
}

var fixtureStubs = []string{"p", "ls", "cat", "grep", "sort", "d/ls"}

// runs counts the runs of this process.
var runs atomic.Int32

// newUser is the user and group of the commands when the test is root: nobody's, and another one for each run, since the limit on
// processes counts by user.
func newUser() int { return 1<<24 + os.Getpid()<<8 + int(runs.Add(1)) }

// Seen is what a command did.
type Seen struct {
	// Execs are the paths that were given to execve, failed ones too.
	Execs []string
	// Sockets are the system calls that are about sockets, as strace prints them.
	Sockets []string
	// Made are the files that it left in its folder, or changed there.
	Made []string
}

// driver runs each command in a subshell with its own folder; chdir there marks in the trace who is whose.
const driver = `ulimit -t 2
ulimit -f 4096
ulimit -v 2000000
ulimit -u 500 2>/dev/null || ulimit -p 500
__n=0
while [ "$__n" -lt %d ]; do
	( cd "/mnt/work/$__n" && . "/mnt/cmd/$__n" ) </dev/null >/dev/null 2>&1
	__n=$((__n+1))
done
`

// prepare is run in new namespaces: nothing of the machine's is written to, and no program has a privilege.
const prepare = `set -e
mount --make-rprivate /
mount --bind "$1" /mnt
mount -t tmpfs -o size=64m,mode=1777 tmpfs /tmp
mount -t tmpfs -o size=1m,mode=1777 tmpfs /var/tmp
mount -t tmpfs -o size=1m,mode=1777 tmpfs /dev/shm
cd /mnt
umask 022
shift
exec "$@"
`

// Run executes the commands under a shell ("bash" or "dash"), each in its own folder, one after another, and tells what they did.
// dir is an empty folder of the caller's. It needs strace, and root or user namespaces. An error says what could not be run.
func Run(ctx context.Context, dir, shell string, commands []string) ([]Seen, error) {
	user := newUser()
	if err := layOut(dir, commands, user); err != nil {
		return nil, fmt.Errorf("lay out commands: %w", err)
	}
	args := []string{"-c", prepare, "sh", dir}
	if os.Geteuid() == 0 {
		id := strconv.Itoa(user)
		args = append(args, "setpriv", "--reuid", id, "--regid", id, "--clear-groups", "--no-new-privs", "--inh-caps=-all")
	}
	args = append(args, "strace", "-f", "--seccomp-bpf", "-qq", "-s", "256", "-e", "signal=none", "-e", "trace="+traced,
		"-o", "/mnt/trace", shell, "/mnt/driver")
	cmd := exec.CommandContext(ctx, "/bin/sh", args...)
	cmd.Env = []string{"PATH=/mnt/bin:/usr/bin:/bin", "HOME=/mnt/home", "TERM=dumb"}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC,
		Setpgid:    true,
	}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil && (ctx.Err() != nil || cmd.ProcessState == nil || stderr.Len() > 0) {
		return nil, fmt.Errorf("run %s under strace: %w: %s%s", shell, err, firstLine(stderr.String()), lastStarted(dir, commands))
	}
	trace, err := os.ReadFile(filepath.Join(dir, "trace"))
	if err != nil {
		return nil, fmt.Errorf("read trace: %w", err)
	}
	seen, err := parseTrace(string(trace), len(commands))
	if err != nil {
		return nil, fmt.Errorf("read trace: %w%s: %s", err, lastStarted(dir, commands), firstLine(stderr.String()))
	}
	for i := range seen {
		seen[i].Made = made(filepath.Join(dir, "work", strconv.Itoa(i)))
	}
	return seen, nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// lastStarted names the command at which a run that did not end was.
func lastStarted(dir string, commands []string) string {
	trace, err := os.ReadFile(filepath.Join(dir, "trace"))
	if err != nil {
		return ""
	}
	for i := len(commands) - 1; i >= 0; i-- {
		if bytes.Contains(trace, fmt.Appendf(nil, marker, i)) {
			return fmt.Sprintf(": the last command was %q", commands[i])
		}
	}
	return ""
}

// layOut makes bin (stubs), cmd (the commands), work (their folders), home and an empty trace.
func layOut(dir string, commands []string, user int) error {
	for _, d := range []string{"bin", "cmd", "work", "home"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	for _, s := range Stubs {
		if err := os.Symlink("/bin/true", filepath.Join(dir, "bin", s)); err != nil {
			return err
		}
	}
	if err := os.Symlink("/usr/bin/fdfind", filepath.Join(dir, "bin", "fd")); err != nil { // Debian's name of fd
		return err
	}
	for i, c := range commands {
		if err := os.WriteFile(filepath.Join(dir, "cmd", strconv.Itoa(i)), []byte(c+"\n"), 0o644); err != nil {
			return err
		}
		if err := furnish(filepath.Join(dir, "work", strconv.Itoa(i)), user); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "driver"), fmt.Appendf(nil, driver, len(commands)), 0o644); err != nil {
		return err
	}
	trace := filepath.Join(dir, "trace")
	if err := os.WriteFile(trace, nil, 0o666); err != nil {
		return err
	}
	return own(trace, user)
}

func furnish(dir string, user int) error {
	for _, d := range []string{dir, filepath.Join(dir, "d")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
		if err := own(d, user); err != nil {
			return err
		}
	}
	for name, text := range fixture {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
		if err := own(file, user); err != nil {
			return err
		}
	}
	for _, name := range fixtureStubs {
		if err := os.Symlink("/bin/true", filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// own gives a file to the user that the commands run as.
func own(file string, user int) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(file, user, user)
}

// made lists files that are not as furnish left them.
func made(dir string) []string {
	var out []string
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		name, relErr := filepath.Rel(dir, path)
		if err != nil || relErr != nil || d.IsDir() && (name == "." || name == "d") {
			return nil
		}
		if text, ok := fixture[name]; ok {
			if got, err := os.ReadFile(path); err == nil && string(got) == text {
				return nil
			}
		} else if target, err := os.Readlink(path); err == nil && target == "/bin/true" {
			return nil
		}
		out = append(out, name)
		return nil
	})
	return out
}
