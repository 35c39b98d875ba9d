package linux

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestParseStat(t *testing.T) {
	const rest = " S 41 42 43 34817 45 4194304 1 2 3 4 5 6 7 8 20 0 1 0 9876 1 2 3"
	for comm, want := range map[string]string{"cat": "cat", "a) S 1 (b": "a) S 1 (b", ")": ")", "": "", "x\n) R": "x\n) R"} {
		got, err := parseStat([]byte("40 (" + comm + ")" + rest + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Stat{PID: 40, PPID: 41, Group: 42, Session: 43, TTY: 34817, State: 'S', Start: 98_760_000_000, Comm: want}, got); diff != "" {
			t.Errorf("%q: -want +got\n%s", comm, diff)
		}
	}
	for _, bad := range []string{"", "1 (x", "1 x) (", "1 (x)", "1 (x) S 1 2", "x (y)" + rest, "1 (x)" + strings.Replace(rest, "9876", "-1", 1)} {
		if got, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q: %+v, error expected", bad, got)
		}
	}
}

func TestSameStart(t *testing.T) {
	for _, c := range []struct {
		ticked, exact uint64
		want          bool
	}{
		{120_000_000, 120_000_000, true}, {120_000_000, 129_999_999, true}, {120_000_000, 130_000_000, false},
		{120_000_000, 119_999_999, false}, {0, 9, true},
	} {
		if got := SameStart(c.ticked, c.exact); got != c.want {
			t.Errorf("SameStart(%d, %d) = %v", c.ticked, c.exact, got)
		}
	}
}

func TestProcessEnds(t *testing.T) {
	cmd, s := start(t, "sleep", "60")
	if !Alive(s.PID, s.Start) || !Alive(s.PID, s.Start+1) || Alive(s.PID, s.Start+tick) {
		t.Errorf("Alive does not tell the start of %+v", s)
	}
	if _, err := OpenProcess(s.PID, s.Start-tick); !errors.Is(err, ErrGone) {
		t.Errorf("open with another start: %v, ErrGone expected", err)
	}
	f, err := OpenProcess(s.PID, s.Start+5)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := SendSignal(f, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitZombie(t, s.PID)
	if Alive(s.PID, s.Start) {
		t.Error("a zombie is said to be alive")
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the process was not killed")
	}
	if err := SendSignal(f, unix.SIGKILL); !errors.Is(err, ErrGone) {
		t.Errorf("signal after the end: %v, ErrGone expected", err)
	}
	for name, err := range map[string]error{
		"stat": second(ReadStat(s.PID)), "open": second(OpenProcess(s.PID, s.Start)), "tracer": second(Tracer(s.PID)),
		"namespace": second(Namespace(s.PID, "net")), "sockets": second(SocketInodes(s.PID)), "exe": second(ExecutableOf(s.PID)),
	} {
		if !errors.Is(err, ErrGone) {
			t.Errorf("%s after the end: %v, ErrGone expected", name, err)
		}
	}
}

func TestFacts(t *testing.T) {
	pid := os.Getpid()
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/exe", &st); err != nil {
		t.Fatal(err)
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	exe, err := ExecutableOf(pid)
	if diff := cmp.Diff(Executable{Path: path, Device: st.Dev, Inode: st.Ino}, exe); diff != "" || err != nil {
		t.Errorf("%v -want +got\n%s", err, diff)
	}
	argv, cut, err := Cmdline(pid, 1<<20)
	if want := strings.Join(os.Args, "\x00") + "\x00"; string(argv) != want || cut || err != nil {
		t.Errorf("arguments %q, %v, %v; want %q", argv, cut, err, want)
	}
	if argv, cut, err = Cmdline(pid, 3); len(argv) != 3 || !cut || err != nil {
		t.Errorf("3 bytes of arguments: %q, %v, %v", argv, cut, err)
	}
	if uid, err := UID(pid); int(uid) != os.Getuid() || err != nil {
		t.Errorf("user %d, %v", uid, err)
	}
	if ids, err := InnerPIDs(pid); len(ids) == 0 || ids[0] != pid || err != nil {
		t.Errorf("inner ids %v, %v", ids, err)
	}
	link, err := os.Readlink("/proc/self/ns/net")
	ino, err2 := Namespace(pid, "net")
	if fmt.Sprintf("net:[%d]", ino) != link || err != nil || err2 != nil {
		t.Errorf("namespace %d, link %s (%v, %v)", ino, link, err, err2)
	}
	if tracer, err := Tracer(pid); tracer != 0 || err != nil {
		t.Errorf("tracer %d, %v", tracer, err)
	}
}

func TestDeletedExe(t *testing.T) { // B06
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	_, s := start(t, path, "60")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if f, err := ExecutableOf(s.PID); !f.Deleted || f.Memfd || f.Path != path || err != nil {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestSocketInodes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := inode(t, int(f.Fd()))
	if got, err := SocketInodes(os.Getpid()); !got[want] || err != nil {
		t.Errorf("socket %d not in %v (%v)", want, got, err)
	}
}

// A thread with its own descriptor table cannot hide a socket there.
func TestSocketInodesOfThread(t *testing.T) {
	ready, done, ended := make(chan uint64), make(chan struct{}), make(chan error, 1)
	var open func()
	open = func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its goroutine
		if unix.Gettid() == os.Getpid() {
			go open() // on another: the first one stands for the process
			<-done
			runtime.UnlockOSThread()
			return
		}
		defer close(ready)
		if err := unix.Unshare(unix.CLONE_FILES); err != nil {
			ended <- err
			return
		}
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			ended <- err
			return
		}
		ready <- inode(t, fd)
		<-done
		ended <- unix.Close(fd)
	}
	go open()
	hidden := <-ready
	got, err := SocketInodes(os.Getpid())
	close(done)
	if err := errors.Join(err, <-ended); err != nil {
		t.Fatal(err)
	}
	if !got[hidden] {
		t.Errorf("socket %d of the other table not in %v", hidden, got)
	}
}

func TestMemFDs(t *testing.T) { // B30
	_, s := start(t, "sleep", "60")
	for _, path := range []string{fmt.Sprintf("/proc/%d/mem", s.PID), fmt.Sprintf("/proc/%d/task/%d/mem", s.PID, s.PID), "/proc/self/mem"} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	fake := filepath.Join(t.TempDir(), "1")
	if err := os.Mkdir(fake, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(fake, "mem"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := MemFDs(os.Getpid())
	if diff := cmp.Diff([]int{s.PID}, got); diff != "" || err != nil {
		t.Errorf("%v -want +got\n%s", err, diff)
	}
	if got, err := MemFDs(s.PID); len(got) != 0 || err != nil {
		t.Errorf("the other process: %v, %v", got, err)
	}
}

func TestSameMemory(t *testing.T) {
	_, s := start(t, "sleep", "60")
	if same, err := SameMemory(os.Getpid(), s.PID); same || err != nil {
		t.Errorf("two programs: %v, %v", same, err)
	}
	if same, err := SameMemory(s.PID, s.PID); !same || err != nil {
		t.Errorf("one program: %v, %v", same, err)
	}
}

// dead makes a process whose first thread has ended.
func dead(t *testing.T) int {
	t.Helper()
	t.Setenv("LEADERLESS", "1")
	_, s := start(t, os.Args[0])
	for end := time.Now().Add(time.Minute); s.State != 'Z'; time.Sleep(10 * time.Millisecond) {
		var err error
		if s, err = ReadStat(s.PID); err != nil || time.Now().After(end) {
			t.Fatalf("its first thread does not end: %+v, %v", s, err)
		}
	}
	return s.PID
}

func TestMain(m *testing.M) {
	if os.Getenv("LEADERLESS") == "" {
		os.Exit(m.Run())
	}
	go endFirst()
	time.Sleep(time.Minute)
}

// endFirst ends the first thread of this process, on which it has to run by itself first.
func endFirst() {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
	}
	go endFirst()
	time.Sleep(time.Minute)
}

// A process whose first thread has ended still is somewhere, and has memory (B57).
func TestLeaderless(t *testing.T) {
	pid, own := dead(t), os.Getpid()
	for _, kind := range []string{"net", "mnt"} {
		want, err := Namespace(own, kind)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Namespace(pid, kind); got != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", kind, got, err, want)
		}
		id := Namespaces([]int{pid}, kind)[want]
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/root/", id)); err != nil || id == pid {
			t.Errorf("%s: %d stands for %d: %v", kind, id, pid, err)
		}
	}
	for what, open := range map[string]func(int) (*os.File, error){"network": OpenNetwork, "root": OpenRoot} {
		f, err := open(pid)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		f.Close()
	}
	another := dead(t)
	if same, err := SameMemory(pid, another); same || err != nil {
		t.Errorf("memory of two: %v, %v", same, err)
	}
	tid := Living(pid)
	if tid == pid {
		t.Fatal("no thread lives")
	}
	if same, err := SameMemory(pid, tid); !same || err != nil {
		t.Errorf("memory of one: %v, %v", same, err)
	}
}

func start(t *testing.T, name string, args ...string) (*exec.Cmd, Stat) {
	t.Helper()
	cmd := exec.Command(name, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	s, err := ReadStat(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return cmd, s
}

// waitZombie waits without reaping.
func waitZombie(t *testing.T, pid int) {
	t.Helper()
	if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
}

func inode(t *testing.T, fd int) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		t.Error(err)
	}
	return st.Ino
}

func second[T any](_ T, err error) error { return err }

// The oldest process stands for a namespace, in whatever order they come (G2).
func TestNamespacesG2(t *testing.T) {
	own := os.Getpid()
	parent, err := ReadStat(own)
	if err != nil {
		t.Fatal(err)
	}
	child := parent
	for child.Start == parent.Start { // starts are told in steps
		_, child = start(t, "sleep", "60")
	}
	net, err := Namespace(own, "net")
	if err != nil {
		t.Fatal(err)
	}
	for _, pids := range [][]int{{own, child.PID}, {child.PID, own}, {1 << 30, child.PID, own, child.PID}} {
		if diff := cmp.Diff(map[uint64]int{net: own}, Namespaces(pids, "net")); diff != "" {
			t.Errorf("of %v (-want +got):\n%s", pids, diff)
		}
	}
}

// Of two processes of one namespace the first may end while it is asked.
func TestEachNamespace(t *testing.T) {
	own, parent := os.Getpid(), os.Getppid()
	failed := errors.New("failed")
	for name, test := range map[string]struct {
		answers []error // for own, parent, own …
		want    []int
		err     error
	}{
		"one of each": {[]error{nil}, []int{own}, nil},
		"gone":        {[]error{ErrGone, nil}, []int{own, parent}, nil},
		"all gone":    {[]error{ErrGone, ErrGone, ErrGone}, []int{own, parent, own}, nil},
		"failed":      {[]error{failed}, []int{own}, failed},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []int
			err := EachNamespace([]int{1 << 30, own, parent, own}, "net", func(pid int) error {
				asked = append(asked, pid)
				return test.answers[len(asked)-1]
			})
			if diff := cmp.Diff(test.want, asked); diff != "" || !errors.Is(err, test.err) {
				t.Errorf("error %v, %v expected; asked -want +got\n%s", err, test.err, diff)
			}
		})
	}
}

// TestF16WorkingDir: the directory of a process as it is called there; none of one that has ended (F16).
func TestF16WorkingDir(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("sleep", "60")
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if got := WorkingDir(cmd.Process.Pid); got != dir {
		t.Errorf("got %q, want %q", got, dir)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if got := WorkingDir(cmd.Process.Pid); got != "" {
		t.Errorf("of one that has ended: %q", got)
	}
}
