package main

import (
	"context"
	"encoding/json"
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
)

// logBackend has an event log.
type logBackend struct {
	fakeBackend
	log string
}

func (b *logBackend) Log(context.Context) (*event.Stored, error) { return event.OpenStored(b.log) }

// What weir console says of the log it got from the sensor is what weir policy suggest says of the file.
func TestConsoleSuggests(t *testing.T) {
	b := &logBackend{log: filepath.Join(t.TempDir(), "events.jsonl")}
	dir, weir := serve(t, b)
	q := connection("abc234", "192.0.2.1", "curl", "-d", "x\x1b")
	verdict := event.Event{
		Time: time.Date(2026, 11, 22, 10, 3, 11, 0, time.UTC), Kind: event.Verdict, Container: &q.Container, Process: &q.Process, Destination: &q.Destination, Question: q.ID,
		Verdict: &event.Decision{Decision: "allow", Reason: "approved", By: "root (alice)", From: &event.Origin{Via: "control"}},
	}
	line, err := event.Marshal(verdict)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.log, append(line, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	want, err := exec.Command(weir, "policy", "suggest", b.log).Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(weir, "--run", dir, "console", "--json")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	var address struct{ URL string }
	err = json.NewDecoder(out).Decode(&address)
	at, token, found := strings.Cut(address.URL, "/#")
	if err != nil || !found {
		t.Fatalf("%q %v", address, err)
	}
	header := http.Header{"Origin": {at}, "Content-Type": {"application/json"}}
	send := func(path, body string, answer any) {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, at+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = header
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		text, err := io.ReadAll(a.Body)
		if err != nil || a.StatusCode != http.StatusOK || json.Unmarshal(text, answer) != nil {
			t.Fatalf("%s: %s %s %v", path, a.Status, text, err)
		}
		if cookie, _, _ := strings.Cut(a.Header.Get("Set-Cookie"), ";"); cookie != "" {
			header.Set("Cookie", cookie)
		}
	}
	var key, suggested struct{ Key, Text string }
	send("/enter", `{"token":"`+token+`"}`, &key)
	header.Set("X-Weir-Key", key.Key)
	send("/suggest", "{}", &suggested)
	if suggested.Text != string(want) || !strings.Contains(suggested.Text, "192.0.2.1") {
		t.Errorf("the console says:\n%s\nthe command says:\n%s", suggested.Text, want)
	}
}

// People's names need the proxy's user, its header and the socket.
func TestConsoleNames(t *testing.T) {
	dir, weir := serve(t, &fakeBackend{})
	socket := []string{"--socket", filepath.Join(t.TempDir(), "s"), "--host", "weir.example.org"}
	for want, more := range map[string][]string{
		"--proxy and --login belong together": append(slices.Clip(socket), "--login", "X-User"),
		"belong together: give both":          append(slices.Clip(socket), "--proxy", "root"),
		"people have names with":              {"--proxy", "root", "--login", "X-User"},
		"with --socket, --proxy":              append(slices.Clip(socket), "--may-answer", "alice"),
		"give the name of a header":           append(slices.Clip(socket), "--proxy", "root", "--login", "X User"),
		"there is no such user":               append(slices.Clip(socket), "--proxy", "no-such-user", "--login", "X-User"),
		"give 1 to 128 visible":               append(slices.Clip(socket), "--proxy", "root", "--login", "X-User", "--may-answer", "a b"),
	} {
		out, err := exec.Command(weir, append([]string{"--run", dir, "console"}, more...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v %s", more, err, out)
		}
	}
}
