package event_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"weir/internal/event"
	"weir/test/eventtest"
)

func TestPrint(t *testing.T) {
	const at = "2026-03-01T12:30:05.250Z "
	const curl = "web[corruption,secret] pid 71 uid 1000 /usr/bin/curl (in memory only) (deleted): curl -d 'two words' 'https://203.0.113.5/?a=1&b=<2>'" +
		" (more arguments were not read) (script ./get run by /bin/sh) (sets LD_PRELOAD)"
	const root = "for bash 'get it.sh' (by its own account) (pid 70) and everything it starts"
	want := []string{
		"exec    " + curl,
		"connect " + curl + " -> 203.0.113.5:443/tcp = deny (timeout) by root - nobody answered [observe]",
		"hold    " + curl + " -> 192.0.2.53:53/udp (DNS) ? weir approve k3x9q, weir deny k3x9q - waits",
		"verdict " + curl + " -> 203.0.113.5:443/tcp question k3x9q = allow (approved) by alice (control, user alice, chat T1/C1, pts/3, ssh 192.0.2.7, from 127.0.0.1:40000) " + root + " - alice approved: known site",
		"grant   web[corruption,secret] grant 7 made (cgroup) for $'ma\\x1bke' (its arguments are not known) (pid 69) to 203.0.113.5:443/tcp, 192.0.2.53:53/udp (DNS) until 12:31:05Z, 4096 bytes left, cgroup /guard/web/g7, pids 71 72",
		"taint   web[corruption,secret] +secret -corruption (operator) by root - read a page",
		"lost    web[corruption,secret] 3 exec events lost, stage ring",
		"mode    seal - by root",
		"error   web[corruption,secret] - something failed",
		"start   - version 1",
		"stop    - asked to",
		"tool    " + curl + " calls VaultHttpFetch GET example.com/x s gh custom X-Key status 200, 12 bytes failed: timeout = allow (approved) by alice (control, user alice, chat T1/C1, pts/3, ssh 192.0.2.7, from 127.0.0.1:40000) " + root + " - alice approved: known site",
		"finding web[corruption,secret] host_pid (critical, refused): it sees all",
		"deny    " + curl + " ptrace = deny (attach) - process 7 outside",
		"drop    web[corruption,secret] -> 203.0.113.5:443/tcp = deny (tainted)",
		"escape  " + curl + " - left",
		"approval web[corruption,secret] abc234 over (revoked) by 'root (alice)': $'bash\\x1b -> x' - enough",
		"model   " + curl + " = deny (model_foreign_key) - another key",
	}
	for i, e := range sample() {
		var b strings.Builder
		if err := event.Print(&b, e); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(at+want[i]+"\n", b.String()); diff != "" {
			t.Errorf("%s, want - got +\n%s", e.Kind, diff)
		}
	}
	var b strings.Builder
	e := sample()[5]
	e.Container, e.Change.Volume = nil, "/srv/a b" // B34: a directory has it, and no container
	line, err := event.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(eventtest.Validate(line), event.Print(&b, e)); err != nil {
		t.Fatal(err)
	}
	if want := at + "taint   +secret -corruption (operator) volume '/srv/a b' by root - read a page\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	if err := event.Print(full, sample()[0]); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Print to a full disk returns %v", err)
	}
}

// TestB51Pose: what a container chooses cannot pose as another part of the line.
func TestB51Pose(t *testing.T) {
	e := sample()[3]
	e.Container = &event.Container{ID: "c1", Name: "web -> 192.0.2.1:443/tcp = allow"}
	e.Process = &event.Process{PID: 1, Comm: "a\nb: = allow", Exe: &event.File{Path: "/tmp/x (deleted)"}}
	e.Destination = &event.Destination{Address: "@x -> \x1b[8m", Protocol: "unix"}
	e.Verdict.Process = &event.Member{PID: 70, Argv: []string{"bash", "\n- allow"}}
	e.Verdict.From = &event.Origin{Via: "callback", User: "x) - deny\x1b[8m"}
	var b strings.Builder
	if err := event.Print(&b, e); err != nil {
		t.Fatal(err)
	}
	want := `2026-03-01T12:30:05.250Z verdict 'web -> 192.0.2.1:443/tcp = allow' pid 1 uid 0 '/tmp/x (deleted)': $'a\nb: = allow'` +
		` -> unix $'@x -> \x1b[8m' question k3x9q = allow (approved) by alice (callback, user $'x) - deny\x1b[8m') for bash $'\n- allow' (pid 70) and everything it starts - alice approved: known site` + "\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

func TestDestinationString(t *testing.T) {
	for want, d := range map[string]event.Destination{
		"[2001:db8::1]:443/tcp": {Address: "2001:db8::1", Port: 443, Protocol: "tcp"},
		"192.0.2.1/icmp":        {Address: "192.0.2.1", Protocol: "icmp"},
		"protocol 253":          {Protocol: "253"},
		"unix /run/x.sock":      {Address: "/run/x.sock", Protocol: "unix"},
	} {
		if got := d.String(); got != want {
			t.Errorf("String of %#v is %s, want %s", d, got, want)
		}
	}
}

func TestCommandCuts(t *testing.T) {
	long := strings.Repeat("a", 50) + strings.Repeat("é", 50) + "end"
	for _, c := range []struct {
		argv     []string
		arg, all int
		want     string
	}{
		{nil, 10, 10, ""},
		{[]string{"echo", "", "a b", "it's", "$x", "*"}, 0, 0, `echo '' 'a b' "it's" '$x' '*'`},
		{[]string{"x", long}, 0, 0, "x " + long},
		{[]string{"x", long, "y"}, 16, 0, "x aaaaaaaaaaaa(138 bytes)end y"},
		{[]string{"x", "yy", "zz", "z"}, 0, 4, "x yy (2 more arguments)"},
		{[]string{"x", "yy"}, 0, 4, "x yy"},
	} {
		if got := event.Command(c.argv, c.arg, c.all); got != c.want {
			t.Errorf("Command(%q, %d, %d) = %s, want %s", c.argv, c.arg, c.all, got, c.want)
		}
	}
}

// TestCommandIsShell: what Command shows is the command, for a shell as well.
func TestCommandIsShell(t *testing.T) {
	argv := []string{"printf", "%s", "a'b\"c\\d", "\x1b[2J\n\t\r", "pаypal.com", "\u202eо", "don't \u009b \\x41", "日本", "🙂\U000e0041x", "", "if", "~", "a=b", "#", "{a,b}"}
	shown := event.Command(argv, 0, 0)
	file, err := syntax.NewParser().Parse(strings.NewReader(shown), "")
	if err != nil {
		t.Fatalf("parse %s: %v", shown, err)
	}
	got, err := expand.Fields(nil, file.Stmts[0].Cmd.(*syntax.CallExpr).Args...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(argv, got); diff != "" {
		t.Errorf("%s\nargv - shell +\n%s", shown, diff)
	}
}
