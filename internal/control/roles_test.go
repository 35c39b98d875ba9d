package control

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"weir/internal/event"
	"weir/internal/gate"
)

// connectAs connects as a user in groups, whom the kernel knows by the thread that does it.
func connectAs(t *testing.T, path string, uid uint32, groups ...uint32) (net.Conn, error) {
	t.Helper()
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this
		fail := func(err error) { done <- result{nil, err} }
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			fail(err)
			return
		}
		f := os.NewFile(uintptr(fd), "socket")
		defer f.Close()
		for _, set := range [][4]uintptr{
			{unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(unsafe.SliceData(groups))), 0},
			{unix.SYS_SETRESGID, uintptr(uid), uintptr(uid), uintptr(uid)},
			{unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)},
		} {
			if _, _, errno := unix.RawSyscall(set[0], set[1], set[2], set[3]); errno != 0 {
				fail(errno)
				return
			}
		}
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
			fail(err)
			return
		}
		conn, err := net.FileConn(f)
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}

// clientAs is a client of a user in groups.
func clientAs(t *testing.T, dir string, uid uint32, groups ...uint32) *Client {
	c := NewClient(dir)
	c.dial = func(context.Context) (net.Conn, error) {
		return connectAs(t, filepath.Join(dir, socketName), uid, groups...)
	}
	return c
}

// Who is in a group of the policy does what its role says, as itself; everybody else cannot connect.
func TestRoles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("run the tests as root: they connect as others")
	}
	const look, answer, taint, none, user = 70001, 70002, 70003, 70004, 70100
	b := &fake{}
	dir, s := start(t, b, nil)
	ctx := t.Context()
	calls := map[string]func(*Client) error{
		"status":     func(c *Client) error { _, err := c.Status(ctx); return err },
		"containers": func(c *Client) error { _, err := c.Containers(ctx); return err },
		"pending":    func(c *Client) error { _, err := c.Pending(ctx); return err },
		"history":    func(c *Client) error { _, err := c.History(ctx, 1); return err },
		"approvals":  func(c *Client) error { _, err := c.Approvals(ctx); return err },
		"why":        func(c *Client) error { _, err := c.Why(ctx, "web"); return err },
		"peer":       func(c *Client) error { return c.Peer(ctx, Peer{PID: 7}) },
		"events": func(c *Client) error {
			return c.Events(ctx, event.Filter{}, false, func(event.Event) error { return nil })
		},
		"log": func(c *Client) error {
			log, err := c.Log(ctx)
			if err == nil {
				log.Close()
			}
			return err
		},
		"approve": func(c *Client) error {
			_, err := c.Answer(ctx, "abc234", gate.Reply{Allow: true, By: "root"})
			return err
		},
		"approve for key": func(c *Client) error {
			_, err := c.Answer(ctx, "abc234", gate.Reply{Allow: true, For: gate.ForKey})
			return err
		},
		"deny":    func(c *Client) error { _, err := c.Answer(ctx, "abc234", gate.Reply{}); return err },
		"metrics": func(c *Client) error { _, err := c.Metrics(ctx); return err },
		"revoke":  func(c *Client) error { _, err := c.Revoke(ctx, "abc234", "root", ""); return err },
		"signed":  func(c *Client) error { _, err := c.Signed(ctx, Signed{"k", "{}", "s"}); return err },
		"moved":   func(c *Client) error { _, err := c.Moved(ctx, []Elsewhere{{Identity: "pod 1"}}); return err },
		"taint":   func(c *Client) error { _, err := c.Taint(ctx, "web", []string{"secret"}, "root", ""); return err },
		"untaint": func(c *Client) error { _, err := c.Untaint(ctx, "web", []string{"secret"}, "root", "x"); return err },
		"taint-path": func(c *Client) error {
			_, err := c.TaintPath(ctx, "/srv", []string{"secret"}, "root", "")
			return err
		},
		"untaint-path": func(c *Client) error {
			_, err := c.UntaintPath(ctx, "/srv", []string{"secret"}, "root", "x")
			return err
		},
		"mode":          func(c *Client) error { return c.Mode(ctx, "observe", "root", "x") },
		"reload":        func(c *Client) error { return c.Reload(ctx) },
		"guard":         func(c *Client) error { _, err := c.Guard(ctx, GuardRequest{}); return err },
		"guard-cgroup":  func(c *Client) error { _, err := c.GuardCgroup(ctx, CgroupRequest{Cgroup: "/a"}); return err },
		"guard-agent":   func(c *Client) error { return c.GuardAgent(ctx, "s1", 42) },
		"model-refused": func(c *Client) error { return c.ModelRefused(ctx, ModelRefusal{Code: "x"}) },
		"guard-end":     func(c *Client) error { _, err := c.GuardEnd(ctx, "s1"); return err },
	}
	for op := range operationsOf(b) {
		if calls[op] == nil {
			t.Errorf("no test asks for %s", op)
		}
	}
	looks := []string{"status", "containers", "pending", "history", "approvals", "why", "events", "log", "metrics", "peer", "signed", "moved"}
	if err := s.SetRoles(Roles{[]uint32{look}, []uint32{answer}, []uint32{taint}}); err != nil {
		t.Fatal(err)
	}
	for name, who := range map[string]struct {
		groups []uint32
		may    []string
	}{
		"look":   {[]uint32{none, look}, looks},
		"answer": {[]uint32{answer}, append(slices.Clone(looks), "approve", "deny", "revoke")},
		"taint":  {[]uint32{taint}, append(slices.Clone(looks), "taint", "taint-path")},
		"both":   {[]uint32{taint, answer}, append(slices.Clone(looks), "approve", "deny", "revoke", "taint", "taint-path")},
	} {
		for op, call := range calls {
			b.taken()
			err := call(clientAs(t, dir, user, who.groups...))
			took := len(b.taken()) > 0
			if may := slices.Contains(who.may, op); may != (err == nil) || may != took || !may && Code(err) != Denied {
				t.Errorf("%s: %s: error %v, reached the sensor %t", name, op, err, took)
			}
		}
	}
	for name, groups := range map[string][]uint32{"another group": {none}, "no group": nil} {
		if _, err := connectAs(t, filepath.Join(dir, socketName), user, groups...); !errors.Is(err, unix.EACCES) {
			t.Errorf("%s connects: %v", name, err)
		}
	}
	if or := orGroup(filepath.Join(dir, socketName)); or != ", or membership of 70001 or 70002 or 70003" {
		t.Errorf("who may use the socket: root%s", or)
	}
	b.taken()
	if _, err := clientAs(t, dir, user, answer).Revoke(ctx, "abc234", "root", ""); err != nil {
		t.Error(err)
	}
	if got := b.taken(); len(got) != 1 || got[0] != `revoke abc234 "uid 70100" ""` {
		t.Errorf("who asked: %q", got)
	}
	if err := s.SetRoles(Roles{Look: []uint32{look}}); err != nil {
		t.Fatal(err)
	}
	if _, err := connectAs(t, filepath.Join(dir, socketName), user, answer); !errors.Is(err, unix.EACCES) {
		t.Errorf("a group that was taken out connects: %v", err)
	}
	if err := s.SetRoles(Roles{}); err != nil {
		t.Fatal(err)
	}
	if _, err := connectAs(t, filepath.Join(dir, socketName), user, look); !errors.Is(err, unix.EACCES) {
		t.Errorf("without a role they connect: %v", err)
	}
	if or := orGroup(filepath.Join(dir, socketName)); or != "" {
		t.Errorf("who may use the socket: root%s", or)
	}
	if info, err := os.Stat(filepath.Join(dir, socketName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// A guarded process of such a group is refused all the same (B27, G17), and one of more groups than fit at once is known.
func TestRolesRefuseTheGuardedG17(t *testing.T) {
	b := &fake{}
	dir, s := start(t, b, func(int) error { return errors.New("guarded") })
	if err := s.SetRoles(Roles{Look: []uint32{70001}}); err != nil {
		t.Fatal(err)
	}
	var many []uint32
	for g := uint32(69900); g < 70002; g++ {
		many = append(many, g)
	}
	if _, err := clientAs(t, dir, 70100, many...).Status(t.Context()); Code(err) != Denied || len(b.taken()) > 0 || err.Error() != "refused: guarded" {
		t.Error(err)
	}
}

// However many requests members of groups keep open, root is answered.
func TestRolesKeepNobodyElseOut(t *testing.T) {
	b := &fake{live: make(chan event.Event)}
	dir, s := start(t, b, nil)
	if err := s.SetRoles(Roles{Look: []uint32{70001}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, maxConns)
	for range maxConns {
		go func() {
			ended <- clientAs(t, dir, 70100, 70001).Events(ctx, event.Filter{}, true, func(event.Event) error { return nil })
		}()
	}
	refused := 0
	for open := 0; open+refused < maxConns; { // each of them is refused, or goes on
		select {
		case err := <-ended:
			if err == nil {
				t.Error("following ended")
			}
			refused++
		default:
			open += len(b.taken())
			runtime.Gosched()
		}
	}
	if _, err := NewClient(dir).Status(ctx); err != nil {
		t.Error("root:", err)
	}
	if refused == 0 {
		t.Error("none was refused")
	}
	cancel()
	for range maxConns - refused {
		<-ended
	}
}

// However many events are followed, by one member or by all, each member is answered, and so is root.
func TestFollowersKeepNobodyOut(t *testing.T) {
	b := &fake{live: make(chan event.Event)}
	dir, s := start(t, b, nil)
	if err := s.SetRoles(Roles{Look: []uint32{70001}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2*maxConns)
	begun, refused := 0, 0
	follow := func(n int, as *Client) (now int) {
		t.Helper()
		before := begun
		for range n {
			go func() { ended <- as.Events(ctx, event.Filter{}, true, func(event.Event) error { return nil }) }()
		}
		for none := refused; begun-before+refused-none < n; {
			select {
			case err := <-ended:
				if err == nil {
					t.Error("following ended")
				}
				refused++
			default:
				begun += len(b.taken())
				runtime.Gosched()
			}
		}
		return begun - before
	}
	answered := func(who string, as *Client) {
		t.Helper()
		if _, err := as.Status(ctx); err != nil {
			t.Errorf("%s: %v", who, err)
		}
		b.taken()
	}
	one, other := clientAs(t, dir, 70100, 70001), clientAs(t, dir, 70101, 70001)
	if n := follow(maxMembers, one); n != maxOwn {
		t.Errorf("one member follows %d times", n)
	}
	answered("who follows", one)
	if n := follow(1, other); n != 1 {
		t.Error("another one cannot follow")
	}
	for uid := uint32(70102); begun < maxMembers; uid++ {
		follow(maxOwn, clientAs(t, dir, uid, 70001))
	}
	answered("a member, while others follow as often as they may", other)
	if n := follow(maxConns+1, NewClient(dir)); n != maxConns {
		t.Errorf("root follows %d times", n)
	}
	answered("root", NewClient(dir))
	cancel()
	for range begun {
		<-ended
	}
}
