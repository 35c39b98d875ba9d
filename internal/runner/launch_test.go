package runner

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/control"
	"weir/internal/policy"
)

func TestIdentify(t *testing.T) {
	environ := []string{"PATH=/bin", "HOME=/root", "USER=root", "SUDO_UID=65534", "SUDO_USER=nobody", "SUDO_COMMAND=x"}
	w := World{Environ: environ}
	for _, tc := range []struct {
		name  string
		flags string
		says  string
	}{
		{"", "--uid=65534 --gid=65534", "nobody (uid 65534)"},
		{"nobody", "--uid=65534 --gid=65534", "nobody (uid 65534)"},
		{"65534", "--uid=65534 --gid=65534", "nobody (uid 65534)"},
		{"daemon", "--uid=1 --gid=1", "daemon (uid 1)"},
		{"root", "", "root"},
		{"0", "", "root"},
	} {
		who, err := w.Identify(tc.name)
		if err != nil {
			t.Error(tc.name, err)
			continue
		}
		flags := strings.Join(who.flags(), " ")
		if !strings.HasPrefix(flags, tc.flags) || who.Says != tc.says {
			t.Errorf("%q: got %s, %s", tc.name, flags, who.Says)
		}
		if tc.flags == "" {
			if diff := cmp.Diff(environ, who.env); diff != "" {
				t.Error("root's environment (-want +got):\n" + diff)
			}
			continue
		}
		if Getenv(who.env, "SUDO_UID") != "" || Getenv(who.env, "SUDO_COMMAND") != "" || Getenv(who.env, "PATH") != "/bin" {
			t.Errorf("%q: environment %v", tc.name, who.env)
		}
		if home := Getenv(who.env, "HOME"); home == "/root" || home == "" {
			t.Errorf("%q: HOME is %q", tc.name, home)
		}
	}
	if _, err := w.Identify("no such user"); control.Code(err) != control.Usage {
		t.Error("an unknown user:", err)
	}
	who, err := World{}.Identify("")
	if err != nil || who.uid != 0 || len(who.flags()) != 0 {
		t.Error("without sudo:", who, err)
	}
}

// The sensor that Guard starts writes events where weir events finds them,
// unless the policy says where.
func TestOwnPolicy(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct{ text, file string }{
		{"", Events},
		{"mode: seal", Events},
		{"mode: seal\nevents:\n  file: /tmp/e\n", "/tmp/e"},
		{"events:\n  max_mib: 7\n", ""},
		{"{mode: seal}", ""},
	} {
		w := World{RunDir: filepath.Join(dir, "run")}
		path := ""
		if tc.text != "" {
			path = filepath.Join(dir, "p.yaml")
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		own, err := w.ownPolicy(path)
		if err != nil {
			t.Errorf("%q: %v", tc.text, err)
			continue
		}
		p, err := policy.Load(own)
		if err != nil || p.Events.File != tc.file {
			t.Errorf("%q: got file %q, %v, want %q", tc.text, p.Events.File, err, tc.file)
		}
		if strings.Contains(tc.text, "seal") && p.Mode != policy.Seal {
			t.Errorf("%q: got mode %s", tc.text, p.Mode)
		}
	}
	if _, err := (World{}).ownPolicy(filepath.Join(dir, "none")); err == nil {
		t.Error("an absent policy was taken")
	}
}

func TestLastLine(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.WriteString("weir run: from before\n")
	begin, err := f.Seek(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := lastLine(f, begin); got != "it said nothing" {
		t.Error(got)
	}
	f.WriteString("level=info\nweir run: kernel: too old\n\n")
	if got := lastLine(f, begin); got != "kernel: too old" {
		t.Error(got)
	}
}

func TestExitOf(t *testing.T) {
	for script, want := range map[string]error{
		"exit 0": nil, "exit 3": Status(3), "kill -9 $$": Status(137), "kill -15 $$": Status(143),
	} {
		if got := exitOf(exec.Command("sh", "-c", script).Run()); got != want {
			t.Errorf("%s: got %v, want %v", script, got, want)
		}
	}
	other := errors.New("other")
	if got := exitOf(other); got != other {
		t.Error(got)
	}
}

func TestWithout(t *testing.T) {
	got := without([]string{"A=1", "AB=2", "B=3", "C"}, "A", "C")
	if want := []string{"AB=2", "B=3", "C"}; !slices.Equal(got, want) {
		t.Error(got)
	}
}

// A signal before the command is started ends what is being done; a terminal's
// later ones are the command's alone.
func TestForwarder(t *testing.T) {
	f := newForwarder(t.Context())
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	<-f.ctx.Done()
	if err := f.start(exec.Command("true")); err == nil {
		t.Error("it was started all the same")
	}
	if err := f.explain(f.ctx.Err()); control.Code(err) != 130 {
		t.Error(err)
	}
	f.stop()

	f = newForwarder(t.Context())
	defer f.stop()
	cmd := exec.Command("sleep", "60")
	if err := f.start(cmd); err != nil {
		t.Fatal(err)
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
		if err := syscall.Kill(os.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
	}
	if err := exitOf(cmd.Wait()); err != Status(143) {
		t.Error("the command ended with", err)
	}
	if f.ctx.Err() != nil {
		t.Error("the session was ended too")
	}
}

// What the sensor says reaches systemd: that it is ready, and, where that watches,
// that it is alive.
func TestRelay(t *testing.T) {
	for _, tc := range []struct {
		environ []string
		want    []string
	}{
		{nil, []string{"READY=1\n"}},
		{[]string{"WATCHDOG_USEC=5000000"}, []string{"READY=1\n", "WATCHDOG=1\n", "WATCHDOG=1\n"}},
		{[]string{"WATCHDOG_USEC=soon"}, []string{"READY=1\n"}},
	} {
		path := filepath.Join(t.TempDir(), "notify")
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		fd, err := syscall.Dup(int(w.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		pulse := NewPulse(fd, tc.environ)
		pulse.Ready()
		pulse.Alive()
		pulse.Alive()
		w.Close()
		syscall.Close(fd)
		said := ""
		world := World{Environ: append(tc.environ, "NOTIFY_SOCKET="+path), Say: func(format string, args ...any) { said += fmt.Sprintf(format, args...) }}
		world.relay(r, -1, time.NewTimer(time.Hour))
		if !strings.HasPrefix(said, "weir run: ready: ") { // F44
			t.Errorf("%v: said %q", tc.environ, said)
		}
		world.notify("END")
		var got []string
		for b := make([]byte, 64); ; {
			n, err := conn.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			if string(b[:n]) == "END\n" {
				break
			}
			got = append(got, string(b[:n]))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%v: systemd got (-want +got):\n%s", tc.environ, diff)
		}
	}
}

// A weir run that reads nothing does not stop its sensor.
func TestPulseNeverWaits(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	fd, err := syscall.Dup(int(w.Fd()))
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	pulse := NewPulse(fd, []string{"WATCHDOG_USEC=1"})
	for range 1 << 17 { // more than a pipe has room for
		pulse.Alive()
	}
	Pulse{}.Alive()
}

// What weir events reads while no sensor runs is where the policy that is shipped has the log.
func TestShippedPolicyLogsWhereEventsLooks(t *testing.T) {
	p, err := policy.Load("../../deploy/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if p.Events.File != Events {
		t.Errorf("its log is %s, and weir events reads %s", p.Events.File, Events)
	}
}

func TestB22StandardSockets(t *testing.T) {
	open := func(domain, kind int) *os.File {
		fd, err := syscall.Socket(domain, kind|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(fd), "socket")
		t.Cleanup(func() { f.Close() })
		return f
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer writer.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, w := range []World{
		{}, {Stdin: null, Stdout: writer, Stderr: writer}, {Stdin: reader, Stdout: open(syscall.AF_UNIX, syscall.SOCK_STREAM)},
	} {
		if err := w.refuseSockets(); err != nil {
			t.Error(err)
		}
	}
	for name, socket := range map[string]*os.File{
		"netlink": open(syscall.AF_NETLINK, syscall.SOCK_RAW), "TCP": open(syscall.AF_INET, syscall.SOCK_STREAM),
		"UDP": open(syscall.AF_INET6, syscall.SOCK_DGRAM),
	} {
		for at, w := range map[string]World{"input": {Stdin: socket}, "output": {Stdout: socket}, "error": {Stderr: socket}} {
			err := w.Guard(t.Context(), Session{})
			if err == nil || !strings.HasPrefix(err.Error(), "standard "+at+" is a socket") {
				t.Errorf("%s as standard %s: %v", name, at, err)
			}
		}
	}
}
