package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"weir/internal/agenthook"
	"weir/internal/bridge/wire"
)

// hookEnv makes the test's program the hook, as another user.
const hookEnv = "WEIR_TEST_IS_HOOK"

func TestMain(m *testing.M) {
	if os.Getenv(hookEnv) == "without" {
		os.Exit(without())
	}
	if os.Getenv(hookEnv) != "" {
		os.Exit(agenthook.World{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ()}.Main(context.Background(), []string{"weir-hook", "generic"}))
	}
	os.Exit(m.Run())
}

// without starts the hook anew as root has it in most containers: without CAP_SYS_ADMIN.
func without() int {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_ADMIN, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	if err := os.Setenv(hookEnv, "1"); err != nil {
		return 3
	}
	fmt.Fprintln(os.Stderr, syscall.Exec("/proc/self/exe", os.Args, os.Environ()))
	return 3
}

// agent is the container's user. Only root can be told from it.
func agent(t testing.TB) int {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("the folder's files have an owner of their own: run this test as root")
	}
	return 1000
}

// shared makes a folder as a container's user would.
func shared(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ipc")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, agent(t), agent(t))); err != nil {
		t.Fatal(err)
	}
	// The way there is open to that user.
	for up := filepath.Dir(dir); up != os.TempDir() && up != "/"; up = filepath.Dir(up) {
		if err := os.Chmod(up, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// open is Open from the host's own root.
func open(path string, uid uint32) (*Folder, error) {
	root, err := os.Open("/")
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return OpenFolder(root, path, uid)
}

// serveFolder answers in the folders of containers, by id.
func serveFolder(t testing.TB, folders map[string]string, answer Answer) *Folders {
	t.Helper()
	l := logrus.New()
	l.SetOutput(io.Discard)
	s, err := NewFolders(func(id string) (*Folder, error) {
		if folders[id] == "" {
			return nil, fs.ErrNotExist
		}
		if strings.HasPrefix(id, "root") {
			return open(folders[id], 0)
		}
		return open(folders[id], uint32(agent(t)))
	}, answer, l)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for id := range folders {
		ids = append(ids, id)
	}
	s.Serve(ids)
	t.Cleanup(func() {
		if err := s.Close(within); err != nil {
			t.Error(err)
		}
		if len(s.owners) != 0 || len(s.watches) != 0 || len(s.long) != 0 {
			t.Errorf("left in the books: %v, %v, %d long", s.owners, s.watches, len(s.long))
		}
	})
	return s
}

// echo allows what is called ls, and says whose the rest was.
func echo(_ context.Context, container string, data []byte) wire.Answer {
	var r wire.Request
	if json.Unmarshal(data, &r) != nil {
		return wire.Answer{Decision: wire.Deny, Reason: "no JSON"}
	}
	if r.Command == "ls" {
		return wire.Answer{RequestID: r.RequestID, Decision: wire.Allow}
	}
	return wire.Answer{RequestID: r.RequestID, Decision: wire.Deny, Reason: container + ": " + r.Command}
}

// leave puts a file into a folder as its user does.
func leave(t testing.TB, dir, name, text string) {
	t.Helper()
	temp := filepath.Join(dir, ".x-"+name)
	if err := errors.Join(os.WriteFile(temp, []byte(text), 0o600), os.Chown(temp, agent(t), agent(t)), os.Rename(temp, filepath.Join(dir, name))); err != nil {
		t.Fatal(err)
	}
}

func request(id, command string) string {
	data, _ := json.Marshal(wire.Request{Type: wire.BashCheck, RequestID: id, Command: command})
	return string(data)
}

// within is how long something may take that must happen.
const within = 2 * time.Minute

func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, within)
		}
	}
}

// folderAnswered waits for an answer, and takes it.
func folderAnswered(t testing.TB, dir, id string) wire.Answer {
	t.Helper()
	path := filepath.Join(dir, id+wire.AnswerSuffix)
	var data []byte
	until(t, "the answer to "+id, func() bool {
		var err error
		data, err = os.ReadFile(path)
		return err == nil
	})
	var a wire.Answer
	if err := json.Unmarshal(data, &a); err != nil {
		t.Fatalf("%s: %q: %v", id, data, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	return a
}

func gone(path string) func() bool {
	return func() bool {
		_, err := os.Lstat(path)
		return errors.Is(err, fs.ErrNotExist)
	}
}

// TestFolderAnswersG20: requests that were there before are answered as those that come, whole files only, and the request goes.
func TestFolderAnswersG20(t *testing.T) {
	dir := shared(t)
	leave(t, dir, "before"+wire.RequestSuffix, request("before", "ls"))
	serveFolder(t, map[string]string{"a": dir}, echo)
	if a := folderAnswered(t, dir, "before"); a.Decision != wire.Allow || a.RequestID != "before" {
		t.Errorf("got %+v", a)
	}
	for id, c := range map[string]struct {
		text string
		want wire.Answer
	}{
		"1": {request("1", "ls"), wire.Answer{RequestID: "1", Decision: wire.Allow}},
		"2": {request("2", "curl"), wire.Answer{RequestID: "2", Decision: wire.Deny, Reason: "a: curl"}},
		"3": {request("", "curl"), wire.Answer{RequestID: "3", Decision: wire.Deny, Reason: "a: curl"}},
		"4": {request("other", "ls"), wire.Answer{RequestID: "4", Decision: wire.Deny, Reason: folderTextID}},
		"5": {"ls", wire.Answer{RequestID: "5", Decision: wire.Deny, Reason: "no JSON"}},
		"6": {"", wire.Answer{RequestID: "6", Decision: wire.Deny, Reason: "no JSON"}},
	} {
		leave(t, dir, id+wire.RequestSuffix, c.text)
		if diff := cmp.Diff(c.want, folderAnswered(t, dir, id)); diff != "" {
			t.Errorf("%s: want - got +\n%s", id, diff)
		}
		until(t, "request "+id+" goes", gone(filepath.Join(dir, id+wire.RequestSuffix)))
	}
}

// TestOwner: the folder and its requests stay the user's; answers are root's, so that nobody in the container can have written one.
func TestOwner(t *testing.T) {
	dir := shared(t)
	serveFolder(t, map[string]string{"a": dir}, echo)
	leave(t, dir, "1"+wire.RequestSuffix, request("1", "ls"))
	path := filepath.Join(dir, "1"+wire.AnswerSuffix)
	until(t, "the answer", func() bool { return !gone(path)() })
	for name, want := range map[string]int{dir: agent(t), path: 0, filepath.Join(dir, wire.Alive): 0} {
		var st syscall.Stat_t
		if err := syscall.Lstat(name, &st); err != nil || int(st.Uid) != want || st.Mode&0o022 != 0 {
			t.Errorf("%s: of user %d, mode %o, %v", name, st.Uid, st.Mode, err)
		}
	}
	for what, c := range map[string]struct {
		path string
		uid  uint32
	}{"another's": {dir, 1001}, "root's": {t.TempDir(), 1000}, "a user's for root": {dir, 0}, "none": {dir + "x", 1000}} {
		if f, err := open(c.path, c.uid); err == nil {
			f.Close()
			t.Errorf("%s was opened", what)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if f, err := open(link, 1000); err == nil {
		f.Close()
		t.Error("a folder was opened by a link")
	}
}

// TestTwoG21: nothing crosses from one folder to another; one that two have is answered for neither (G21).
func TestTwoG21(t *testing.T) {
	a, b, both := shared(t), shared(t), shared(t)
	s := serveFolder(t, map[string]string{"a": a, "b": b, "c": both, "d": both}, echo)
	until(t, "both containers have the folder", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, ids := range s.owners {
			if len(ids) == 2 {
				return true
			}
		}
		return false
	})
	leave(t, both, "1"+wire.RequestSuffix, request("1", "ls"))
	for i := range 200 {
		id := fmt.Sprint(i)
		leave(t, a, id+wire.RequestSuffix, request(id, "one"))
		leave(t, b, id+wire.RequestSuffix, request(id, "one"))
		if got, also := folderAnswered(t, a, id), folderAnswered(t, b, id); got.Reason != "a: one" || also.Reason != "b: one" {
			t.Fatalf("got %+v and %+v", got, also)
		}
	}
	if !gone(filepath.Join(both, "1"+wire.AnswerSuffix))() {
		t.Error("a shared folder was answered")
	}
	s.Serve([]string{"a", "b", "c"}) // the other container is gone
	if got := folderAnswered(t, both, "1"); got.Decision != wire.Allow {
		t.Errorf("got %+v", got)
	}
}

// TestForms: links, FIFOs, sockets, devices, files of others and directories are no requests, and nothing behind them is touched.
func TestForms(t *testing.T) {
	dir := shared(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(request("", "SECRET")), 0o600); err != nil {
		t.Fatal(err)
	}
	serveFolder(t, map[string]string{"a": dir}, func(ctx context.Context, c string, data []byte) wire.Answer {
		t.Errorf("it was read: %q", data)
		return echo(ctx, c, data)
	})
	for id, make := range map[string]func(path string) error{
		"symlink":  func(p string) error { return os.Symlink(secret, p) },
		"dangling": func(p string) error { return os.Symlink("/nowhere", p) },
		"hard":     func(p string) error { return os.Link(secret, p) },
		"fifo":     func(p string) error { return syscall.Mkfifo(p, 0o666) },
		"socket":   func(p string) error { return syscall.Mknod(p, syscall.S_IFSOCK|0o666, 0) },
		"device":   func(p string) error { return syscall.Mknod(p, syscall.S_IFCHR|0o666, 1<<8|3) },
		"others":   func(p string) error { return os.WriteFile(p, []byte(request("", "ls")), 0o644) },
		"huge": func(p string) error {
			f, err := os.Create(p + ".tmp")
			if err != nil {
				return err
			}
			return errors.Join(f.Truncate(1<<30), f.Chown(agent(t), agent(t)), f.Close(), os.Rename(p+".tmp", p))
		},
	} {
		path := filepath.Join(dir, id+wire.RequestSuffix)
		if err := make(path); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		want := textForm
		if id == "huge" {
			want = folderTextLong
		}
		if a := folderAnswered(t, dir, id); a.Decision != wire.Deny || a.Reason != want {
			t.Errorf("%s: %+v", id, a)
		}
		until(t, id+" goes", gone(path))
	}
	if err := os.Mkdir(filepath.Join(dir, "dir"+wire.RequestSuffix), 0o755); err != nil {
		t.Fatal(err)
	}
	// What stands where an answer goes is replaced, not followed.
	if err := os.Symlink(secret, filepath.Join(dir, "answer"+wire.AnswerSuffix)); err != nil {
		t.Fatal(err)
	}
	leave(t, dir, "answer"+wire.RequestSuffix, strings.Repeat(" ", wire.MaxLine+1))
	until(t, "the answer replaces the link", func() bool {
		info, err := os.Lstat(filepath.Join(dir, "answer"+wire.AnswerSuffix))
		return err == nil && info.Mode().IsRegular()
	})
	if data, err := os.ReadFile(secret); err != nil || string(data) != request("", "SECRET") {
		t.Errorf("the file behind the link has %q, %v", data, err)
	}
}

// TestWithdraw: who takes the request away has asked nothing any more.
func TestWithdraw(t *testing.T) {
	dir, asked, ended := shared(t), make(chan struct{}), make(chan struct{})
	serveFolder(t, map[string]string{"a": dir}, func(ctx context.Context, _ string, _ []byte) wire.Answer {
		close(asked)
		<-ctx.Done()
		close(ended)
		return wire.Answer{Decision: wire.Deny, Reason: "cancelled"}
	})
	leave(t, dir, "1"+wire.RequestSuffix, request("1", "slow"))
	<-asked
	if err := os.Remove(filepath.Join(dir, "1"+wire.RequestSuffix)); err != nil {
		t.Fatal(err)
	}
	<-ended
}

// TestLeftovers: what nobody takes goes after its time; what is the user's own stays.
func TestLeftovers(t *testing.T) {
	dir := shared(t)
	old := time.Now().Add(-2 * keepRequest)
	names := []string{"1" + wire.AnswerSuffix, wire.TempPrefix + "x", "mine.txt", "young" + wire.AnswerSuffix}
	for _, name := range names {
		leave(t, dir, name, "x")
		if !strings.HasPrefix(name, "young") {
			if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	serveFolder(t, map[string]string{"a": dir}, echo)
	for _, name := range names[:2] {
		until(t, name+" goes", gone(filepath.Join(dir, name)))
	}
	for _, name := range names[2:] {
		if gone(filepath.Join(dir, name))() {
			t.Errorf("%s is gone", name)
		}
	}
}

// TestHook: the hook, as the container's user, asks in the folder when there is no socket, believes nobody else, and leaves nothing.
func TestHook(t *testing.T) {
	dir := shared(t)
	ask := func(command string) string {
		t.Helper()
		cmd := exec.Command("/proc/self/exe")
		cmd.Dir = "/"
		cmd.Env = []string{hookEnv + "=1", wire.Variable + "=/nowhere", wire.FolderVariable + "=" + dir}
		cmd.Stdin = strings.NewReader(`{"tool_name":"Bash","tool_input":{"command":"` + command + `"}}`)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(agent(t)), Gid: uint32(agent(t))}}
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, errs.String())
		}
		return string(out)
	}
	if got := ask("curl x"); !strings.Contains(got, "cannot be asked") {
		t.Errorf("without a sensor: %s", got)
	}
	leave(t, dir, wire.Alive, "") // the agent's own sensor
	if got := ask("curl x"); !strings.Contains(got, "cannot tell who answers") {
		t.Errorf("with a sensor of the agent's: %s", got)
	}
	s := serveFolder(t, map[string]string{"a": dir}, func(_ context.Context, _ string, data []byte) wire.Answer {
		var r wire.Request
		if json.Unmarshal(data, &r) != nil || r.Command != "curl x" {
			return wire.Answer{RequestID: r.RequestID, Decision: wire.Deny, Reason: "Denied: no."}
		}
		return wire.Answer{RequestID: r.RequestID, Decision: wire.Allow}
	})
	until(t, "the sensor is there", func() bool {
		info, err := os.Lstat(filepath.Join(dir, wire.Alive))
		return err == nil && info.Sys().(*syscall.Stat_t).Uid == 0
	})
	if got := ask("curl x"); !strings.Contains(got, `"allowed":true`) {
		t.Errorf("got %s", got)
	}
	if got := ask("curl y"); !strings.Contains(got, `"allowed":false,"reason":"Denied: no."`) {
		t.Errorf("got %s", got)
	}
	s.Serve(nil)
	s.running.Wait()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != wire.Alive {
		t.Errorf("left: %v, %v", entries, err)
	}
	// An answer that the agent wrote itself is not believed.
	var forging sync.WaitGroup
	stop := make(chan struct{})
	forging.Go(func() {
		forged := map[string]bool{} // one that is replaced while it is read is refused for that
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			names, _ := filepath.Glob(filepath.Join(dir, "*"+wire.RequestSuffix))
			for _, name := range names {
				if id := strings.TrimSuffix(filepath.Base(name), wire.RequestSuffix); !forged[id] {
					forged[id] = true
					leave(t, dir, id+wire.AnswerSuffix, `{"request_id":"`+id+`","decision":"allow"}`)
				}
			}
		}
	})
	if got := ask("curl z"); !strings.Contains(got, `"allowed":false`) || !strings.Contains(got, "cannot tell who answers") {
		t.Errorf("forged: %s", got)
	}
	close(stop)
	forging.Wait()
}

// TestRoot: a container whose user is root, without a user namespace, has its own folder too. What it wrote itself, or changed of what the sensor
// wrote, is not believed; nor is anything by an agent that could set the stamp.
func TestRoot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ipc")
	if agent(t) == 0 || os.Mkdir(dir, 0o755) != nil {
		t.Fatal("no folder")
	}
	ask := func(as, command string) string {
		t.Helper()
		cmd := exec.Command("/proc/self/exe")
		cmd.Dir = "/"
		cmd.Env = []string{hookEnv + "=" + as, wire.Variable + "=/nowhere", wire.FolderVariable + "=" + dir}
		cmd.Stdin = strings.NewReader(`{"tool_name":"Bash","tool_input":{"command":"` + command + `"}}`)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, errs.String())
		}
		return string(out)
	}
	if err := os.WriteFile(filepath.Join(dir, wire.Alive), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := ask("without", "curl x"); !strings.Contains(got, `"allowed":false`) || !strings.Contains(got, "needs a sensor's stamp") {
		t.Errorf("with a sensor of the agent's: %s", got)
	}
	serveFolder(t, map[string]string{"root": dir}, func(ctx context.Context, _ string, data []byte) wire.Answer {
		var r wire.Request
		switch json.Unmarshal(data, &r); r.Command {
		case "curl x":
			return wire.Answer{RequestID: r.RequestID, Decision: wire.Allow}
		case "curl held":
			<-ctx.Done()
		}
		return wire.Answer{RequestID: r.RequestID, Decision: wire.Deny, Reason: "Denied: no."}
	})
	until(t, "the sensor is there", func() bool {
		n, err := unix.Lgetxattr(filepath.Join(dir, wire.Alive), wire.Stamp, make([]byte, 64))
		return err == nil && n == 32
	})
	if got := ask("without", "curl x"); !strings.Contains(got, `"allowed":true`) {
		t.Errorf("got %s", got)
	}
	if got := ask("without", "curl y"); !strings.Contains(got, `"allowed":false,"reason":"Denied: no."`) {
		t.Errorf("got %s", got)
	}
	if got := ask("1", "curl x"); !strings.Contains(got, `"allowed":false`) || !strings.Contains(got, "must not have CAP_SYS_ADMIN") {
		t.Errorf("with CAP_SYS_ADMIN: %s", got)
	}
	// The server's own rules hold for root's files too.
	leave(t, dir, "user"+wire.RequestSuffix, request("user", "curl x")) // of another user
	if err := os.WriteFile(filepath.Join(dir, "one"), []byte(request("linked", "curl x")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{os.Link(filepath.Join(dir, "one"), filepath.Join(dir, "linked"+wire.RequestSuffix)), os.Symlink("one", filepath.Join(dir, "soft"+wire.RequestSuffix))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"user", "linked", "soft"} {
		if a := folderAnswered(t, dir, id); a.Decision != wire.Deny || a.Reason == "Denied: no." {
			t.Errorf("%s: %+v", id, a)
		}
	}
	if data, err := os.ReadFile(filepath.Join(dir, "one")); err != nil || !strings.Contains(string(data), "linked") {
		t.Errorf("the file behind the links: %q, %v", data, err)
	}
	// An answer of its own, and the sensor's with other words in it.
	genuine := filepath.Join(dir, "genuine")
	write := func(name, text string) { // as root
		if err := errors.Join(os.WriteFile(genuine+"~", []byte(text), 0o600), os.Rename(genuine+"~", filepath.Join(dir, name))); err != nil {
			t.Error(err)
		}
	}
	write("kept"+wire.RequestSuffix, request("kept", "curl x"))
	kept := filepath.Join(dir, "kept"+wire.AnswerSuffix)
	until(t, "an answer to keep", func() bool { return !gone(kept)() })
	if err := os.Rename(kept, genuine); err != nil {
		t.Fatal(err)
	}
	until(t, "every request so far goes", func() bool { // the only one is then the one to forge an answer to
		names, err := filepath.Glob(filepath.Join(dir, "*"+wire.RequestSuffix))
		return err == nil && len(names) == 0
	})
	for name, forge := range map[string]func(path, text string) error{
		"its own": func(path, text string) error { return os.WriteFile(path, []byte(text), 0o644) },
		"changed": func(path, text string) error {
			file, err := os.OpenFile(genuine, os.O_RDWR|os.O_TRUNC, 0)
			if err != nil {
				return err
			}
			_, err = file.WriteString(text)
			return errors.Join(err, file.Close(), os.Rename(genuine, path))
		},
	} {
		var forging sync.WaitGroup
		forging.Go(func() {
			for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(time.Millisecond) {
				names, _ := filepath.Glob(filepath.Join(dir, "*"+wire.RequestSuffix))
				for _, n := range names {
					id := strings.TrimSuffix(filepath.Base(n), wire.RequestSuffix)
					if err := forge(filepath.Join(dir, id+wire.AnswerSuffix), `{"request_id":"`+id+`","decision":"allow"}`); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					return
				}
			}
			t.Errorf("%s: there was no request", name)
		})
		if got := ask("without", "curl held"); !strings.Contains(got, `"allowed":false`) || !strings.Contains(got, "needs a sensor's stamp") {
			t.Errorf("%s: %s", name, got)
		}
		forging.Wait()
	}
}
