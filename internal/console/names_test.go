package console

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const loginHeader = "X-Forwarded-Email"

// proxied is a console behind a proxy whose user is uid, where alice may answer.
func proxied(t *testing.T, uid int) *served {
	t.Helper()
	proxy := uint32(uid)
	return serve(t, Options{
		Listen: filepath.Join(t.TempDir(), "s"), Hosts: []string{"weir.example.org"}, Proxy: &proxy, Login: loginHeader, Answers: []string{"alice"},
	})
}

// as is a request in which the proxy names these.
func as(names ...string) func(*http.Request) {
	return func(r *http.Request) { r.Header[loginHeader] = names }
}

// login lets a browser in by a name.
func (s *served) login(t *testing.T, name string) {
	t.Helper()
	s.cookie = ""
	answer, body := s.do(t, "/enter", `{"token":""}`, as(name))
	var k struct{ Key string }
	if answer == nil || answer.StatusCode != http.StatusOK || json.Unmarshal([]byte(body), &k) != nil {
		t.Fatal(answer, body)
	}
	s.cookie, _, _ = strings.Cut(answer.Header.Get("Set-Cookie"), ";")
	s.key = k.Key
}

// Who the proxy names gets in without a token, and the sensor is told who answers; everything else is refused.
func TestNames(t *testing.T) {
	s := proxied(t, os.Getuid())
	if strings.Contains(s.URL(), "#") {
		t.Error("there is a token:", s.URL())
	}
	for name, names := range map[string][]string{
		"none": nil, "empty": {""}, "two lines": {"alice", "bob"}, "the same twice": {"alice", "alice"}, "long": {strings.Repeat("a", 129)},
		"a space": {"alice bob"}, "brackets": {"alice(root)"}, "not ASCII": {"аlice"},
	} {
		if answer, body := s.do(t, "/enter", `{"token":""}`, as(names...)); answer.StatusCode != http.StatusUnauthorized || answer.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %s", name, answer.StatusCode, body)
		}
	}
	s.login(t, "alice")
	for name, names := range map[string][]string{"nobody": nil, "somebody else": {"bob"}, "two lines": {"alice", "alice"}, "another first": {"bob", "alice"}} {
		for _, path := range []string{"/answer", "/revoke", "/why", "/live"} {
			if answer, body := s.do(t, path, s.answerTo("aaa222"), as(names...)); answer.StatusCode != http.StatusUnauthorized {
				t.Errorf("alice's cookie and key, but the proxy names %s: %s: %d %s", name, path, answer.StatusCode, body)
			}
		}
	}
	if given := s.taken(); len(given) > 0 {
		t.Errorf("reached the sensor: %q", given)
	}
	for path, body := range map[string]string{"/answer": s.answerTo("aaa222"), "/revoke": `{"id":"x"}`} {
		if answer, body := s.do(t, path, body, as("alice")); answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", path, answer.StatusCode, body)
		}
	}
	if !slices.Equal(s.logins, []string{"alice", "alice"}) {
		t.Errorf("the sensor was told of %q", s.logins)
	}
	if _, line := s.do(t, "/live", "{}", as("alice")); !strings.Contains(line, "enforce, weir v1, alice\"") || strings.Contains(line, `"looks"`) {
		t.Error(line)
	}
}

// Who may look is shown everything, and changes nothing, whatever the browser sends.
func TestNamesThatLook(t *testing.T) {
	s := proxied(t, os.Getuid())
	s.login(t, "bob")
	for path, body := range map[string]string{"/answer": s.answerTo("aaa222"), "/preview": s.answerTo("aaa222"), "/revoke": `{"id":"x"}`} {
		if answer, body := s.do(t, path, body, as("bob")); answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d %s", path, answer.StatusCode, body)
		}
	}
	if given := s.taken(); len(given) > 0 {
		t.Errorf("reached the sensor: %q", given)
	}
	if answer, body := s.do(t, "/why", `{"id":"c1"}`, as("bob")); answer.StatusCode != http.StatusOK {
		t.Error(answer.StatusCode, body)
	}
	if _, line := s.do(t, "/live", "{}", as("bob")); !strings.Contains(line, `"looks":true`) {
		t.Error(line)
	}
}

// Who may not answer by the policy's groups is told so from the start, and so is whoever may.
func TestRolesThatLook(t *testing.T) {
	s := serve(t, Options{})
	s.enter(t)
	if _, line := s.do(t, "/live", "{}", nil); strings.Contains(line, "looks") || strings.Contains(line, "may look") {
		t.Error(line)
	}
	s.lock.Lock()
	s.looks = true
	s.lock.Unlock()
	if _, line := s.do(t, "/live", "{}", nil); !strings.Contains(line, `"looks":true`) || !strings.Contains(line, "enforce, weir v1 (may look)") {
		t.Error(line)
	}
	if answer, body := s.do(t, "/answer", s.answerTo("aaa222"), nil); answer.StatusCode != http.StatusForbidden {
		t.Error(answer.StatusCode, body)
	}
}

// Another user's process is not served, whomever it names.
func TestNamesFromAnotherPeer(t *testing.T) {
	s := proxied(t, os.Getuid()+1)
	for _, path := range []string{"/enter", "/live"} {
		if answer, body := s.do(t, path, `{"token":""}`, as("alice")); answer != nil {
			t.Errorf("%s: %d %s", path, answer.StatusCode, body)
		}
	}
}

// Without --login a name is nobody's: the token decides, and the sensor is told of no name.
func TestNamesWithoutLogin(t *testing.T) {
	s := serve(t, Options{Listen: filepath.Join(t.TempDir(), "s"), Hosts: []string{"weir.example.org"}})
	if answer, body := s.do(t, "/enter", `{"token":""}`, as("alice")); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	s.enter(t)
	if answer, body := s.do(t, "/answer", s.answerTo("aaa222"), as("alice")); answer.StatusCode != http.StatusOK {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	if !slices.Equal(s.logins, []string{""}) {
		t.Errorf("the sensor was told of %q", s.logins)
	}
}

// Sessions end, and are not more than their bound: the oldest goes.
func TestNamesEnd(t *testing.T) {
	s := proxied(t, os.Getuid())
	s.login(t, "alice")
	cookie, key := s.cookie, s.key
	why := func() int {
		s.cookie, s.key = cookie, key
		answer, _ := s.do(t, "/why", `{"id":"c1"}`, as("alice"))
		return answer.StatusCode
	}
	for range maxSessions - 1 {
		s.login(t, "bob")
	}
	if got := why(); got != http.StatusOK {
		t.Error("one of as many as there may be:", got)
	}
	s.login(t, "bob")
	if got := why(); got != http.StatusUnauthorized || len(s.sessions) != maxSessions {
		t.Error("the oldest of one more:", got, len(s.sessions))
	}
	s.login(t, "alice")
	cookie, key = s.cookie, s.key
	s.mu.Lock()
	for i := range s.sessions {
		s.sessions[i].until = time.Now()
	}
	s.mu.Unlock()
	if got := why(); got != http.StatusUnauthorized {
		t.Error("its time is over:", got)
	}
}
