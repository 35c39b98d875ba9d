package main

import (
	"bufio"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const vaultKey = "sk-vault-fedcba9876543210"

// modelUpstream is a model's service with its certificate in a file. It answers with the keys that it got.
func modelUpstream(t *testing.T, dir string) (url, ca string) {
	t.Helper()
	up := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s|%s|%s", r.URL.Path, r.Header.Get("X-Api-Key"), r.Header.Get("Authorization"))
	}))
	t.Cleanup(up.Close)
	ca = filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: up.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return up.URL, ca
}

// modelProxy is one that runs.
type modelProxy struct {
	cmd    *exec.Cmd
	lines  *bufio.Reader // of its standard output
	stderr *os.File
	client *http.Client
}

func startModelProxy(t *testing.T, dir string, args ...string) *modelProxy {
	t.Helper()
	p := &modelProxy{cmd: exec.Command("weir", append([]string{"--run", filepath.Join(dir, "run"), "model-proxy"}, args...)...)}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.stderr, err = os.Create(filepath.Join(dir, "stderr")); err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
		p.stderr.Close()
	})
	p.lines = bufio.NewReader(out)
	p.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "s"))
	}}}
	return p
}

func (p *modelProxy) line(t *testing.T) string {
	t.Helper()
	line, err := p.lines.ReadString('\n')
	if err != nil {
		said, _ := os.ReadFile(p.stderr.Name())
		t.Fatalf("%v: %s", err, said)
	}
	return strings.TrimSpace(line)
}

// get asks for the list of models.
func (p *modelProxy) get(t *testing.T, key string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://127.0.0.1/v1/models", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", key)
	resp, err := p.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// children are the processes that the proxy's has started.
func (p *modelProxy) child(t *testing.T) (pid string, status string) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range tasks {
		if data, err := os.ReadFile(file); err == nil && len(strings.Fields(string(data))) > 0 {
			pid = strings.Fields(string(data))[0]
		}
	}
	data, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		t.Fatal(err)
	}
	return pid, string(data)
}

// B43: the vault's key goes up, only for who sends the stand-in; who serves has no rights, and none can look into it; when it is dead, nobody answers.
func TestB43ModelProxy(t *testing.T) {
	dir, err := os.MkdirTemp("", "weir") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	upstream, ca := modelUpstream(t, dir)
	store, open := filepath.Join(dir, "vault.age"), filepath.Join(dir, "vault.key")
	set := func(key string, args ...string) {
		t.Helper()
		cmd := exec.Command("weir", append([]string{"vault", "--vault", store, "--key-file", open, "set", key, "--ca", ca}, args...)...)
		cmd.Stdin = strings.NewReader(vaultKey)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	set("model", "--host", strings.TrimPrefix(upstream, "https://"))
	set("elsewhere", "--host", "api.example.org")
	set("narrow", "--host", strings.TrimPrefix(upstream, "https://"), "--method", "GET")
	flags := []string{"--listen", "unix:" + dir + "/s", "--vault", store, "--key-file", open, "--upstream", upstream}
	for _, key := range []string{"elsewhere", "narrow", "none"} {
		cmd := exec.Command("weir", append([]string{"--run", dir + "/run", "model-proxy", "--key", key}, flags...)...)
		if out, err := cmd.CombinedOutput(); err == nil || strings.Contains(string(out), vaultKey) {
			t.Errorf("%s: %v: %s", key, err, out)
		}
	}
	p := startModelProxy(t, dir, append(flags, "--key", "model")...)
	p.line(t)
	_, standIn, _ := strings.Cut(p.line(t), "clients send the key ")
	if code, got := p.get(t, standIn); code != http.StatusOK || got != "/v1/models|"+vaultKey+"|" {
		t.Errorf("%d, %s", code, got)
	}
	if code, got := p.get(t, vaultKey); code != http.StatusForbidden || !strings.Contains(got, "model_foreign_key") {
		t.Errorf("%d, %s", code, got)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		said, err := os.ReadFile(p.stderr.Name())
		if err == nil && strings.Contains(string(said), fmt.Sprintf("refused: model_foreign_key, process %d", os.Getpid())) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("not told: %s", said)
		}
	}
	pid, status := p.child(t)
	for _, want := range []string{"Uid:\t65534\t65534\t65534\t65534", "Groups:\t \n", "CapEff:\t0000000000000000", "NoNewPrivs:\t1"} {
		if !strings.Contains(status, want) {
			t.Errorf("not %q: %s", want, status)
		}
	}
	if env, err := os.ReadFile("/proc/" + pid + "/environ"); err != nil || len(env) > 0 {
		t.Errorf("its environment is %q, %v", env, err)
	}
	look := exec.Command("cat", "/proc/"+pid+"/maps")
	look.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := look.Output(); err == nil {
		t.Errorf("its own user looks into it: %s", out)
	}
	if info, err := os.Stat(dir + "/s"); err != nil || info.Mode().Perm() != 0o600 || info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("others can connect: %+v, %v", info, err)
	}
	var n int
	if _, err := fmt.Sscan(pid, &n); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(n, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err == nil {
		t.Error("it went on without who serves")
	}
	if c, err := net.Dial("unix", dir+"/s"); err == nil {
		c.Close()
		t.Error("somebody answers")
	}
}

// Who serves ends with who started it, however that ends.
func TestModelProxyOrphan(t *testing.T) {
	dir, err := os.MkdirTemp("", "weir")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	upstream, ca := modelUpstream(t, dir)
	token := filepath.Join(dir, "login.json")
	if err := os.WriteFile(token, []byte(`{"claudeAiOauth":{"accessToken":"sk-ant-oat-0123456789"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startModelProxy(t, dir, "--listen", "unix:"+dir+"/s", "--token-file", token, "--ca", ca, "--upstream", upstream)
	p.line(t)
	if code, got := p.get(t, "sk-ant-oat-0123456789"); code != http.StatusOK || got != "/v1/models|sk-ant-oat-0123456789|" {
		t.Errorf("%d, %s", code, got)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("unix", dir+"/s")
		if err != nil {
			break
		}
		c.Close()
		if time.Now().After(end) {
			t.Fatal("it goes on")
		}
	}
}

func TestReadToken(t *testing.T) {
	for text, want := range map[string]string{
		"sk-0123456789abcdef\n": "sk-0123456789abcdef", `{"tokens":{"access_token":"a.b.c"},"OPENAI_API_KEY":null}`: "a.b.c", `{"OPENAI_API_KEY":"sk-1"}`: "sk-1", `{"claudeAiOauth":{"accessToken":"x"}}`: "x",
		"{}": "", "{": "", "two words": "",
	} {
		file := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readToken(file)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "words") {
			t.Errorf("%v has what is in the file", err)
		}
	}
}
