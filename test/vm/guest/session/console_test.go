//go:build vmguest

package session

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/event"
	"weir/internal/show"
	"weir/test/vm/guest/rig"
)

// consoleFor runs weir console as a member of a group until the test ends, and returns the address and the token that it prints.
func consoleFor(t *testing.T, group string, order ...string) (at, token string) {
	t.Helper()
	at, token, _ = consoleAt(t, group, order...)
	return at, token
}

// consoleAt returns the console's process as well.
func consoleAt(t *testing.T, group string, order ...string) (at, token string, pid int) {
	t.Helper()
	cmd := exec.Command("setpriv", append([]string{"--reuid=1000", "--regid=1000", "--groups=" + group, "weir", "console"}, order...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("weir console: %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	at, token, found := strings.Cut(strings.TrimSpace(line), "/#")
	if err != nil || found == slices.Contains(order, "--login") {
		t.Fatalf("weir console printed %q: %v", line, err)
	}
	return strings.TrimSuffix(at, "/"), token, cmd.Process.Pid
}

// socketDir is a directory for a console's socket, which everybody may go through.
func socketDir(t *testing.T) string {
	t.Helper()
	dir := strings.TrimSpace(rig.Must(t, "d=$(mktemp -d /run/console.XXXXXX) && chown 1000:1000 $d && chmod 755 $d && echo $d"))
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// consoleOfNames: behind a proxy with a user of its own, whom the proxy names answers in that name, if --may-answer has it; another user's
// process is not served, whomever it names and whatever it has, and nobody guarded is, also as the proxy's user (B27, G17).
func (f *fixture) consoleOfNames(t *testing.T) {
	f.sensor.Policy(t, "control:\n  answer: ['70002']\n")
	defer f.sensor.Policy(t, "")
	socket := filepath.Join(socketDir(t), "page.sock")
	at, _ := consoleFor(t, "70002", "--socket", socket, "--host", "weir.example.org", "--proxy", "1500", "--login", "X-Forwarded-Email", "--may-answer", "alice@example.org")
	s := f.guard(t, "corruption", "secret")
	to := f.web(t)
	p := s.Start(t, to.Curl()...)
	q := to.asked(t)

	// post is what the proxy passes on, as some user in the socket's group.
	post := func(uid, name, cookie, key, path, body string) []string {
		return []string{
			"setpriv", "--reuid=" + uid, "--regid=" + uid, "--groups=1000", "curl", "-sS", "-i", "-m", "60", "--unix-socket", socket, "-H", "Origin: " + at, "-H", "Content-Type: application/json",
			"-H", "X-Forwarded-Email: " + name, "-H", "Cookie: " + cookie, "-H", "X-Weir-Key: " + key, "-d", body, "http://weir.example.org" + path,
		}
	}
	send := func(argv []string) string {
		out, _ := exec.Command(argv[0], argv[1:]...).Output() // what is refused is empty
		return string(out)
	}
	enter := func(name string) (cookie, key string) {
		t.Helper()
		out := send(post("1500", name, "", "", "/enter", `{"token":""}`))
		_, rest, _ := strings.Cut(out, "Set-Cookie: ")
		cookie, _, _ = strings.Cut(rest, ";")
		_, rest, _ = strings.Cut(out, `"key":"`)
		key, _, _ = strings.Cut(rest, `"`)
		if cookie == "" || key == "" {
			t.Fatalf("%s is not let in: %s", name, out)
		}
		return cookie, key
	}
	cookie, key := enter("alice@example.org")
	shown := fmt.Sprintf("%x", sha256.Sum256([]byte(show.Question(q))))
	approve := fmt.Sprintf(`{"id":%q,"shown":%q,"allow":true}`, q.ID, shown)
	bobs, bobsKey := enter("bob@example.org")
	for what, argv := range map[string][]string{
		"who is not listed":     post("1500", "bob@example.org", bobs, bobsKey, "/answer", approve),
		"bob with alice's keys": post("1500", "bob@example.org", cookie, key, "/answer", approve),
		"a name without keys":   post("1500", "alice@example.org", "", "", "/answer", approve),
		"an empty name":         post("1500", "", cookie, key, "/answer", approve),
	} {
		if out := send(argv); !strings.HasPrefix(out, "HTTP/1.1 40") {
			t.Errorf("%s: %s", what, out)
		}
	}
	for _, uid := range []string{"1501", "1000", "0"} {
		for path, body := range map[string]string{"/enter": `{"token":""}`, "/answer": approve, "/live": "{}", "/search": "{}"} {
			if out := send(post(uid, "alice@example.org", cookie, key, path, body)); out != "" {
				t.Errorf("user %s: %s: %s", uid, path, out)
			}
		}
	}
	if r := s.Run(t, post("1500", "alice@example.org", cookie, key, "/answer", approve)...); r.Exit == 0 || r.Stdout != "" {
		t.Errorf("from inside: %s", r)
	}
	to.Nothing(t)
	if out := send(post("1500", "alice@example.org", cookie, key, "/answer", approve)); !strings.HasPrefix(out, "HTTP/1.1 200") {
		t.Fatalf("alice: %s", out)
	}
	succeeded(t, p, "answer")
	to.Arrived(t)
	f.sensor.Event(t, func(e event.Event) bool {
		return e.Question == q.ID && e.Verdict != nil && strings.HasPrefix(e.Verdict.By, "alice@example.org (through the console of ") && e.Verdict.From != nil && *e.Verdict.From.UID == 1000
	})
}

// consoleAndAnotherUser: another user of the host gets nothing from the port without the token, has no way to the socket, and reads neither
// the token nor a browser's keys in /proc, nor does another process of the same user (B27, G17).
func (f *fixture) consoleAndAnotherUser(t *testing.T) {
	f.sensor.Policy(t, "control:\n  answer: ['70002']\n")
	defer f.sensor.Policy(t, "")
	at, token, pid := consoleAt(t, "70002")
	socket := filepath.Join(socketDir(t), "page.sock")
	consoleFor(t, "70002", "--socket", socket, "--host", "weir.example.org")
	s := f.guard(t, "corruption", "secret")
	to := f.web(t)
	p := s.Start(t, to.Curl()...)
	q := to.asked(t)
	as := func(uid, command string) string {
		out, _ := exec.Command("setpriv", "--reuid="+uid, "--regid="+uid, "--clear-groups", "bash", "-c", command).CombinedOutput()
		return string(out)
	}
	const hostile = "1002"
	port := func(path, token string) string {
		return as(hostile, fmt.Sprintf(`curl -sS -m 60 -H 'Origin: %[1]s' -H 'Content-Type: application/json' -H 'Cookie: weir-console-%[2]s=%[3]s' -H 'X-Weir-Key: %[3]s' -d '%[4]s' %[1]s%[5]s`,
			at, at[strings.LastIndex(at, ":")+1:], token, fmt.Sprintf(`{"id":%q,"allow":true}`, q.ID), path))
	}
	for _, path := range []string{"/live", "/answer", "/preview", "/why", "/revoke", "/search", "/life"} {
		for _, guess := range []string{"", "AAAA", token} { // the printed token is no cookie and no key
			if out := port(path, guess); !strings.Contains(out, "was not let in") || strings.Contains(out, q.ID) {
				t.Errorf("%s: %s", path, out)
			}
		}
	}
	for _, body := range []string{"{}", `{"token":""}`, `{"token":"AAAA"}`} {
		if out := as(hostile, fmt.Sprintf("curl -sS -i -m 60 -H 'Origin: %s' -H 'Content-Type: application/json' -d '%s' %[1]s/enter", at, body)); !strings.HasPrefix(out, "HTTP/1.1 401") {
			t.Errorf("enter with %s: %s", body, out)
		}
	}
	if out := as(hostile, "curl -sS -m 60 --unix-socket "+socket+" http://weir.example.org/; echo exit $?"); !strings.Contains(out, "exit 7") || strings.Contains(out, "<title>") {
		t.Errorf("the socket: %s", out)
	}
	for _, uid := range []string{hostile, "1000"} {
		readable := as(uid, fmt.Sprintf("cd /proc/%d && test -d task || exit; for f in mem maps environ auxv syscall stack fd/1 cwd/. root/.; do head -c 1 $f >/dev/null 2>&1 && echo $f; ls $f >/dev/null 2>&1 && test -d $f && echo $f; done; ls fd; echo looked", pid))
		if lines := strings.Fields(strings.ReplaceAll(readable, "ls: cannot open directory 'fd': Permission denied", "")); !slices.Equal(lines, []string{"looked"}) {
			t.Errorf("user %s reads %q of the console", uid, readable)
		}
		if out := as(uid, fmt.Sprintf("cat /proc/%d/cmdline /proc/%[1]d/status /proc/%[1]d/comm | tr '\\0' ' '", pid)); strings.Contains(out, token) || !strings.Contains(out, "weir console") {
			t.Errorf("user %s reads %s", uid, out)
		}
	}
	to.Nothing(t)
	f.sensor.Deny(t, q.ID)
	refusedBy(t, p)
}

// refusedBy waits for a curl that must not have got its page.
func refusedBy(t *testing.T, p *rig.Proc) {
	t.Helper()
	if r := p.Wait(t); r.Exit == 0 || r.Stdout != "" {
		t.Errorf("want a refusal, got %s", r)
	}
}

// console: nobody guarded is served, clean or tainted, with all secrets, over the port or over the socket; a member of the host is let in, sees
// the question and answers it, in his own name (B27, G17).
func (f *fixture) console(t *testing.T) {
	f.sensor.Policy(t, "control:\n  answer: ['70002']\n")
	defer f.sensor.Policy(t, "")
	at, token := consoleFor(t, "70002")
	dir, err := os.MkdirTemp("/run", "console")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chown(dir, 1000, 1000); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "page.sock")
	consoleFor(t, "70002", "--socket", socket, "--host", "weir.example.org")
	clean, s := f.guard(t), f.guard(t, "corruption", "secret")

	var cookie, key string
	post := func(path, body string) []string {
		return []string{"curl", "-sS", "-m", "60", "-H", "Origin: " + at, "-H", "Content-Type: application/json", "-H", "Cookie: " + cookie, "-H", "X-Weir-Key: " + key, "-d", body, at + path}
	}
	overSocket := []string{"curl", "-sS", "-m", "60", "--unix-socket", socket, "http://weir.example.org/"}
	refused := func(argv []string) {
		t.Helper()
		for name, inside := range map[string]*rig.Session{"clean": clean, "tainted": s} {
			if r := inside.Run(t, argv...); r.Exit == 0 || r.Stdout != "" {
				t.Errorf("%s: %v got %s", name, argv, r)
			}
		}
	}
	refused([]string{"curl", "-sS", "-m", "60", at + "/"})
	refused(post("/enter", `{"token":"`+token+`"}`))
	refused(overSocket)
	if page := rig.Must(t, strings.Join(overSocket, " ")); !strings.Contains(page, "<title>Weir console") {
		t.Errorf("the host, over the socket: %s", page)
	}

	send := func(path, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, at+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Origin": {at}, "Content-Type": {"application/json"}, "Cookie": {cookie}, "X-Weir-Key": {key}}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer
	}
	entered := send("/enter", `{"token":"`+token+`"}`)
	var k struct{ Key string }
	if err := json.NewDecoder(entered.Body).Decode(&k); err != nil || entered.StatusCode != http.StatusOK {
		t.Fatalf("the host: %s %v", entered.Status, err)
	}
	cookie, _, _ = strings.Cut(entered.Header.Get("Set-Cookie"), ";")
	key = k.Key

	to := f.web(t)
	p := s.Start(t, to.Curl()...)
	q := to.asked(t)
	type asked struct{ ID, Shown string }
	var found asked
	for in := bufio.NewReader(send("/live", "{}").Body); found.ID == ""; {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal("the question never came: ", err)
		}
		var state struct{ Groups [][]asked }
		if data, is := strings.CutPrefix(line, "data: "); is {
			if err := json.Unmarshal([]byte(data), &state); err != nil {
				t.Fatal(err)
			}
		}
		all := slices.Concat(state.Groups...)
		if i := slices.IndexFunc(all, func(a asked) bool { return a.ID == q.ID }); i >= 0 {
			found = all[i]
		}
	}
	approve := fmt.Sprintf(`{"id":%q,"shown":%q,"allow":true,"why":"known"}`, found.ID, found.Shown)
	refused(post("/answer", approve))
	refused(post("/live", "{}"))
	to.Nothing(t)
	begun := time.Now()
	answer := send("/answer", approve)
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("the answer: %s %s %v", answer.Status, text, err)
	}
	told := time.Since(begun)
	succeeded(t, p, "answer")
	t.Logf("answered after %v, curl had its page after %v", told, time.Since(begun))
	to.Arrived(t)
	f.sensor.Event(t, func(e event.Event) bool {
		return e.Question == q.ID && e.Verdict != nil && e.Verdict.Why == "known" && e.Verdict.From != nil && e.Verdict.From.UID != nil && *e.Verdict.From.UID == 1000 &&
			e.Verdict.Shown != nil && strings.Contains(e.Verdict.Shown.Text, to.Text)
	})

	// The log is root's; the sensor hands it over to him, and to nobody guarded.
	refused(post("/search", "{}"))
	const logFile = "/var/log/weir/rig-events.jsonl"
	rig.Must(t, "test -s "+logFile+" && ! setpriv --reuid=1000 --regid=1000 --groups=70002 cat "+logFile+" 2>/dev/null")
	answer = send("/search", fmt.Sprintf(`{"text":%q,"kinds":["verdict"]}`, q.ID))
	var log struct {
		Events []struct{ Text, Stored string }
	}
	if err := json.NewDecoder(answer.Body).Decode(&log); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("the log: %s %v", answer.Status, err)
	}
	if len(log.Events) == 0 || !strings.Contains(log.Events[0].Stored, q.ID) || !strings.Contains(log.Events[0].Text, "curl") {
		t.Errorf("the answer is not found: %+v", log.Events)
	}
}
