//go:build vmguest

package session

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/test/vm/guest/rig"
)

const modelKey = "sk-vault-fedcba9876543210"

// service is a model's, outside, over TLS. It notes what arrives.
type service struct {
	rig.Place
	ca string // file

	mu    sync.Mutex
	conns int
	keys  []string
}

func (f *fixture) service(t *testing.T) *service {
	t.Helper()
	m := &service{Place: f.world.Place()}
	cert, ca := rig.Certificate(t)
	m.ca = ca
	l, err := rig.ListenIn("world", m.To)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		ErrorLog: log.New(io.Discard, "", 0),
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				m.mu.Lock()
				m.conns++
				m.mu.Unlock()
			}
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // what matters is that it came
			m.mu.Lock()
			m.keys = append(m.keys, r.Header.Get("X-Api-Key")+r.Header.Get("Authorization"))
			m.mu.Unlock()
			w.Header().Set("Content-Type", "text/event-stream")
			for range 3 {
				fmt.Fprint(w, "data: a part\n\n")
				w.(http.Flusher).Flush()
			}
		}),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}})) // ends when it is closed
	}()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	return m
}

// arrived is what did.
func (m *service) arrived() (conns int, keys []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.conns, m.keys
}

// TestB43Model: a tainted session reaches its model by the proxy alone, with the key that it never sees; with nobody's else, to nowhere else, and not when the proxy is
// dead. The service says what arrived.
func TestB43Model(t *testing.T) {
	f := &fixture{world: rig.NewOutside(t)}
	f.sensor = rig.StartSensor(t, "")
	rig.Must(t, "mkdir -p /home/agent/project && chown -R agent: /home/agent")
	t.Chdir("/home/agent/project") // a preset's session may write where it begins
	m := f.service(t)
	rig.Must(t, fmt.Sprintf("printf %%s %s | weir vault --key-file /var/lib/weir/vault.key set model --host %s --ca %s", modelKey, m.To, m.ca))
	s := f.sensor.Guard(t, "model", "--user", "agent", "--preset", "claude", "--model-key", "model", "--model-upstream", "https://"+m.To)
	const ask = `curl -sS -m 60 -o /tmp/answer -w '%{http_code}' -H 'Content-Type: application/json' `
	const own = `-H "Authorization: Bearer $ANTHROPIC_AUTH_TOKEN" `
	const to = `"$ANTHROPIC_BASE_URL"`
	talk := func(t *testing.T) {
		t.Helper()
		before, _ := m.arrived()
		r := s.Run(t, "bash", "-c", ask+own+`-d '{"messages":[]}' `+to+"/v1/messages && cat /tmp/answer")
		_, keys := m.arrived()
		if r.Stdout != "200data: a part\n\ndata: a part\n\ndata: a part\n\n" || len(keys) == 0 || keys[len(keys)-1] != modelKey {
			t.Fatalf("%s; %d connections before, keys %q", r, before, keys)
		}
	}
	talk(t)
	f.sensor.Taint(t, s.Name, "corruption", "secret")
	if !t.Run("B43_passes_tainted", talk) {
		return
	}
	t.Run("B43_key_stays_outside", func(t *testing.T) {
		r := s.Run(t, "bash", "-c", "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'")
		if r.Exit != 0 && r.Stdout == "" || strings.Contains(r.Stdout, modelKey) || !strings.Contains(r.Stdout, "ANTHROPIC_AUTH_TOKEN=weir-") {
			t.Errorf("%s", r)
		}
		if r := s.Run(t, "cat", "/var/lib/weir/vault.age"); r.Exit == 0 {
			t.Error("the vault can be read")
		}
	})
	conns, keys := m.arrived()
	unchanged := func(t *testing.T) {
		t.Helper()
		if now, all := m.arrived(); now != conns || len(all) != len(keys) {
			t.Errorf("%d connections and %d requests arrived", now-conns, len(all)-len(keys))
		}
	}
	raw := func(text string) string {
		return `a=${ANTHROPIC_BASE_URL#http://}; exec 3<>/dev/tcp/${a%:*}/${a#*:}; printf '` + strings.ReplaceAll(text, "\n", `\r\n`) + `' >&3; read -r -t 60 -u 3 line; echo "$line"`
	}
	sockets, err := filepath.Glob("/run/weir/model-*.sock")
	if err != nil || len(sockets) != 1 {
		t.Fatalf("%v, %v", sockets, err)
	}
	put := strings.NewReplacer("SOCKET", sockets[0], "KEY", "'$ANTHROPIC_AUTH_TOKEN'")
	key := "X-Api-Key: KEY\n"
	for name, c := range map[string]struct{ script, status, code string }{
		"somebody_elses_key":   {ask + `-H 'X-Api-Key: sk-stranger-0123456789' -d '{}' ` + to + "/v1/messages", "403", "model_foreign_key"},
		"both_keys":            {ask + own + `-H 'X-Api-Key: sk-stranger-0123456789' -d '{}' ` + to + "/v1/messages", "403", "model_foreign_key"},
		"another_host":         {ask + own + `-H 'Host: api.example.org' -d '{}' ` + to + "/v1/messages", "421", "model_host"},
		"another_path":         {ask + own + `-d '{}' ` + to + "/v1/files", "404", "model_path"},
		"an_escaped_path":      {ask + own + `--path-as-is ` + to + "/v1/models/%2e%2e/files", "404", "model_path"},
		"CONNECT":              {raw("CONNECT " + m.To + " HTTP/1.1\nHost: " + m.To + "\n" + key + "\n"), "405", "model_method"},
		"a_whole_URL":          {raw("POST http://" + m.To + "/v1/messages HTTP/1.1\nHost: " + m.To + "\n" + key + "Content-Length: 2\n\n{}"), "421", "model_host"},
		"smuggling":            {raw("POST /v1/messages HTTP/1.1\nHost: localhost\n" + key + "Content-Length: 5\nTransfer-Encoding: chunked\n\n0\n\nGET /v1/files HTTP/1.1\n\n"), "400", "model_malformed"},
		"a_folded_line":        {raw("POST /v1/messages HTTP/1.1\nHost: localhost\n" + key + "X: 1\n Content-Length: 2\n\n{}"), "400", "model_malformed"},
		"websocket":            {raw("GET /v1/models HTTP/1.1\nHost: localhost\n" + key + "Connection: Upgrade\nUpgrade: websocket\n\n"), "400", "model_upgrade"},
		"1_GiB":                {raw("POST /v1/messages HTTP/1.1\nHost: localhost\n" + key + "Content-Length: 1073741824\n\n{"), "413", "model_too_large"},
		"a_URL_for_the_model":  {ask + own + `-d '{"messages":[{"content":[{"type":"image","source":{"type":"url","url":"http://192.0.2.1/x"}}]}]}' ` + to + "/v1/messages", "403", "model_fetches"},
		"B168_stored_skills":   {ask + own + `-d '{"container":{"skills":[{"type":"custom","skill_id":"s"}]}}' ` + to + "/v1/messages", "403", "model_stored"},
		"the_socket_by_itself": {ask + `--unix-socket SOCKET -H 'X-Api-Key: sk-stranger-0123456789' -d '{}' http://localhost/v1/messages`, "403", "model_foreign_key"},
	} {
		t.Run("B43_B49_"+name, func(t *testing.T) {
			seen := f.sensor.Counter(t, c.code)
			before := len(f.sensor.Events(t))
			r := s.Run(t, "bash", "-c", put.Replace(c.script))
			if !strings.Contains(r.Stdout, c.status) {
				t.Errorf("want %s, got %s", c.status, r)
			}
			rig.Eventually(t, "the log tells of it", func() bool {
				return slices.ContainsFunc(f.sensor.Events(t)[before:], func(e event.Event) bool {
					return e.Kind == event.Model && e.Verdict.Reason == c.code && e.Container != nil && e.Container.ID != "" && e.Verdict.Decision == "deny"
				})
			})
			rig.Eventually(t, "it is counted", func() bool { return f.sensor.Counter(t, c.code) > seen })
			unchanged(t)
		})
	}
	t.Run("B43_B49_not_by_itself", func(t *testing.T) {
		p := s.Start(t, "curl", "-sS", "-k", "-m", "600", "-H", "X-Api-Key: sk-stranger-0123456789", "-d", "{}", "https://"+m.To+"/v1/messages")
		q := f.sensor.Asked(t, func(q gate.Question) bool { return m.About(q) })
		f.sensor.Deny(t, q.ID)
		if r := p.Wait(t); r.Exit == 0 {
			t.Errorf("%s", r)
		}
		unchanged(t)
	})
	t.Run("B43_dead_proxy", func(t *testing.T) {
		for _, pid := range proxies(t) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		rig.Eventually(t, "the proxy has gone", func() bool { return len(proxies(t)) == 0 })
		if r := s.Run(t, "bash", "-c", ask+own+`-d '{}' `+to+"/v1/messages"); r.Exit == 0 {
			t.Errorf("%s", r)
		}
		unchanged(t)
		rig.Eventually(t, "the person is told", func() bool { return strings.Contains(s.Stderr(), "reaches no model") })
	})
	s.Close()
	if left := proxies(t); len(left) > 0 {
		t.Errorf("proxies go on: %v", left)
	}
	if left, err := filepath.Glob("/run/weir/model-*"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// proxies are the processes that serve models' clients.
func proxies(t *testing.T) (pids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		text, err := os.ReadFile(file)
		var pid int
		if err != nil || !strings.Contains(string(text), "model-proxy-init") {
			continue
		}
		if _, err := fmt.Sscanf(file, "/proc/%d/cmdline", &pid); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}
