//go:build vmguest

package session

import (
	"bufio"
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
	"weir/test/vm/guest/rig"
)

// consoleFor runs weir console as a member of a group until the test ends, and returns the address and the token that it prints.
func consoleFor(t *testing.T, group string, order ...string) (at, token string) {
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
	if err != nil || !found {
		t.Fatalf("weir console printed %q: %v", line, err)
	}
	return at, token
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
