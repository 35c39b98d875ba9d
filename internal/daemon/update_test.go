package daemon

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"

	"weir/internal/agentupdate"
	"weir/internal/bridge"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/toolguard"
)

// asksPerson is a sensor with one container, whose person answers as the test says.
type asksPerson struct {
	bridge.Host
	verdict gate.Verdict
	asked   []string
	denied  []event.Decision
}

func (h *asksPerson) Who(int) (bridge.Asker, error) {
	return bridge.Asker{Container: event.Container{ID: "g-test"}, Process: event.Process{PID: os.Getpid(), Start: 1}, Mode: "enforce"}, nil
}

func (h *asksPerson) Confirm(_ context.Context, r gate.Request) gate.Verdict {
	h.asked = append(h.asked, r.Command)
	return h.verdict
}

func (h *asksPerson) Deny(_ bridge.Asker, _ string, d event.Decision) error {
	h.denied = append(h.denied, d)
	return nil
}

func (h *asksPerson) Called(bridge.Asker, string, bool) error { return nil }

// TestAgentUpdateK8K10: a call over the bridge's socket, through all stages, to the file and back, with a server of the test's own.
func TestAgentUpdateK8K10(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	target, killed := filepath.Join(dir, "weir-hook"), filepath.Join(t.TempDir(), "kill-switch")
	before, after := "before", "after"
	if err := os.WriteFile(target, []byte(before), 0o755); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/agent", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, after) })
	mux.HandleFunc("/foreign", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://evil.example/agent", http.StatusFound)
	})
	web := httptest.NewTLSServer(mux)
	defer web.Close()
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	updater, err := agentupdate.New(agentupdate.Options{
		Target: target, Killed: func() bool { return toolguard.KillSwitchOn(killed) },
		Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com"},
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", web.Listener.Addr().String())
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	const from = "https://objects.githubusercontent.com"
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(after)))
	yes, no := gate.Verdict{Decision: gate.Allow, Reason: gate.Approved}, gate.Verdict{Reason: gate.Denied}
	for _, c := range []struct {
		name, url, sum string
		off, killed    bool
		verdict        gate.Verdict
		unwritten      error
		code, says     string
		asked          bool
		events         []string
	}{
		{name: "off", url: from + "/agent", sum: sum, off: true, verdict: yes, code: toolguard.Disabled, says: "--agent-binary"},
		{name: "kill switch", url: from + "/agent", sum: sum, killed: true, verdict: yes, code: toolguard.Disabled, says: "turned off"},
		{name: "plain http", url: "http://objects.githubusercontent.com/agent", sum: sum, verdict: yes, code: toolguard.Blocked, says: "update-source"},
		{name: "denied", url: from + "/agent", sum: sum, verdict: no, code: toolguard.Unauthorized, says: "refused", asked: true},
		{name: "bad sum", url: from + "/agent", sum: "12", verdict: yes, code: toolguard.InvalidArgs, says: "sha256"},
		{name: "not recorded", url: from + "/agent", sum: sum, verdict: yes, unwritten: errors.New("disk full"), code: toolguard.Internal, says: "recorded", asked: true},
		{name: "redirect", url: from + "/foreign", sum: sum, verdict: yes, code: toolguard.Blocked, says: "evil.example", asked: true, events: []string{"update_begins ", "update_failed source"}},
		{name: "wrong sum", url: from + "/agent", sum: strings.Repeat("0", 64), verdict: yes, code: toolguard.Internal, says: sum, asked: true, events: []string{"update_begins ", "update_failed checksum"}},
		{name: "good", url: from + "/agent?token=x", sum: sum, verdict: yes, asked: true, events: []string{"update_begins ", "update_made "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var events []string
			u := &updates{updater: updater, failed: func(err error) { t.Error(err) }, log: func(e event.Event) error {
				if c.unwritten != nil {
					return c.unwritten
				}
				if e.Kind != event.Tool || e.Container.ID != "g-test" || e.Process == nil || e.Use.Tool != "agent_update" || e.Use.Host != "objects.githubusercontent.com" || strings.Contains(e.Use.Path, "token") {
					t.Errorf("written: %+v, %+v", e, e.Use)
				}
				events = append(events, e.Verdict.Reason+" "+e.Use.Failure)
				return nil
			}}
			if c.off {
				u.updater = nil
			}
			if err := toolguard.SetKillSwitch(killed, c.killed); err != nil {
				t.Fatal(err)
			}
			h := &asksPerson{verdict: c.verdict}
			s := bridge.New(h, logger)
			defer s.Close(time.Minute)
			s.Carry(u)
			s.Use(bridge.Rules{Killed: func() bool { return toolguard.KillSwitchOn(killed) }})
			a := callOver(t, s, c.url, c.sum)
			code, says := "", ""
			if a.Error != nil {
				code, says = a.Error.Code, a.Error.Message
			}
			if a.ID != "1" || a.OK != (c.code == "") || code != c.code || !strings.Contains(says, c.says) {
				t.Errorf("got %v, %s: %s", a.OK, code, says)
			}
			want := before
			if a.OK {
				want = after
				var r agentupdate.Result
				if err := json.Unmarshal(a.Result, &r); err != nil || r.Old != target+".old" || !r.Changed || r.Bytes != int64(len(after)) {
					t.Errorf("result %s, %v", a.Result, err)
				}
			}
			if got, err := os.ReadFile(target); err != nil || string(got) != want {
				t.Errorf("the file has %q, %v", got, err)
			}
			if diff := cmp.Diff(c.events, events); diff != "" {
				t.Error(diff)
			}
			if (len(h.asked) == 1) != c.asked || c.asked && (!strings.Contains(h.asked[0], target) || !strings.Contains(h.asked[0], c.url) || !strings.Contains(h.asked[0], c.sum)) {
				t.Errorf("asked %q", h.asked)
			}
			if before := code == toolguard.Blocked && !c.asked || c.killed; before != (len(h.denied) == 1) {
				t.Errorf("denials written: %+v", h.denied)
			}
		})
	}
}

func callOver(t *testing.T, s *bridge.Server, url, sum string) (a toolguard.Answer) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "b.sock")
	if err := s.Listen(path); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, `{"v":"0.5","id":"1","tool":"agent_update","args":{"url":%q,"sha256":%q}}`+"\n", url, sum)
	line, err := bufio.NewReader(conn).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &a) != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return a
}
