package agentupdate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	server = "updates.example.org"
	asset  = "https://objects.githubusercontent.com/asset"
)

var (
	before = []byte("#!/bin/sh\necho before\n")
	after  = []byte(strings.Repeat("after\n", 10000))
)

func sum(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// rig is an Updater whose every host is one server of the test's own.
type rig struct {
	*Updater
	t      *testing.T
	target string
	hosts  []string // asked, in order
}

func newRig(t *testing.T, o Options) *rig {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, target: filepath.Join(dir, "weir-hook")}
	if err := os.WriteFile(r.target, before, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(r.target, 0o751); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	mux := http.NewServeMux()
	give := func(w http.ResponseWriter, _ *http.Request) { w.Write(after) }
	to := func(url string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, url, http.StatusFound) }
	}
	mux.HandleFunc("/agent", give)
	mux.HandleFunc("/asset", func(w http.ResponseWriter, req *http.Request) {
		if ref := req.Header.Get("Referer"); ref != "" {
			t.Errorf("told where it came from: %q", ref)
		}
		give(w, req)
	})
	mux.HandleFunc("/acme/agent/releases/download/v1/agent", to(asset))
	mux.HandleFunc("/foreign", to("https://evil.example/agent"))
	mux.HandleFunc("/plain", to("http://"+server+"/agent"))
	mux.HandleFunc("/address", to("https://127.0.0.1/agent"))
	mux.HandleFunc("/loop", to("https://"+server+"/loop"))
	mux.HandleFunc("/none", http.NotFound)
	mux.HandleFunc("/part", func(w http.ResponseWriter, _ *http.Request) {
		w.Write(after[:100])
		w.(http.Flusher).Flush()
		<-done
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(after)))
		w.Write(after[:100])
	})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(after); err != nil {
				return
			}
		}
	})
	s := httptest.NewTLSServer(mux)
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(done) })
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	o.Target, o.Server = r.target, server
	o.Transport = &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com"},
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			r.hosts = append(r.hosts, address)
			return new(net.Dialer).DialContext(ctx, "tcp", s.Listener.Addr().String())
		},
	}
	u, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r.Updater = u
	return r
}

// unchanged fails unless all is as it was, with nothing left beside it.
func (r *rig) unchanged() {
	r.t.Helper()
	r.holds(r.target, before)
	r.alone("weir-hook")
}

func (r *rig) alone(names ...string) {
	r.t.Helper()
	list, err := os.ReadDir(filepath.Dir(r.target))
	if err != nil {
		r.t.Fatal(err)
	}
	var got []string
	for _, e := range list {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff(names, got); diff != "" {
		r.t.Error(diff)
	}
}

func (r *rig) holds(path string, want []byte) {
	r.t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		r.t.Errorf("%s has %.40q, %v", path, got, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o751 {
		r.t.Errorf("%s: mode %v, %v", path, info.Mode(), err)
	}
}

// TestUpdateK10: downloaded, compared, replaced at once, the old one kept; mode and owner stay.
func TestUpdateK10(t *testing.T) {
	r := newRig(t, Options{})
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		uid, gid = 1234, 1235
		if err := os.Chown(r.target, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	running, err := os.Open(r.target) // who has it open goes on with what it has
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	for _, url := range []string{"https://github.com/acme/agent/releases/download/v1/agent", "https://" + server + "/agent"} {
		got, err := r.Update(t.Context(), Args{url, sum(after)})
		if err != nil {
			t.Fatal(err)
		}
		want := Result{Target: r.target, SHA256: sum(after)}
		if url != "https://"+server+"/agent" { // the second is there already
			want.Old, want.Bytes, want.Changed = r.target+".old", int64(len(after)), true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		r.holds(r.target, after)
		r.holds(r.target+".old", before)
		r.alone("weir-hook", "weir-hook.old")
	}
	info, err := os.Stat(r.target)
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != uid || int(st.Gid) != gid {
		t.Errorf("owner %d:%d", st.Uid, st.Gid)
	}
	if diff := cmp.Diff([]string{"github.com:443", "objects.githubusercontent.com:443"}, r.hosts); diff != "" {
		t.Error(diff)
	}
	data := make([]byte, len(before))
	if _, err := running.ReadAt(data, 0); err != nil || !bytes.Equal(data, before) {
		t.Errorf("who had it open reads %q, %v", data, err)
	}
}

// TestRefusedK8: every failure says one line of its class, and leaves the file as it was.
func TestRefusedK8(t *testing.T) {
	for name, c := range map[string]struct {
		url, sum string
		o        Options
		class    Class
		says     string
		hosts    []string
	}{
		"wrong sum":           {"https://" + server + "/agent", sum(before[1:]), Options{}, Checksum, sum(after), []string{server + ":443"}},
		"short sum":           {"https://" + server + "/agent", "00", Options{}, Invalid, "64 hexadecimal", nil},
		"plain http":          {"http://" + server + "/agent", sum(after), Options{}, Source, "only https", nil},
		"foreign":             {"https://evil.example/agent", sum(after), Options{}, Source, "evil.example", nil},
		"to a foreign host":   {"https://" + server + "/foreign", sum(after), Options{}, Source, "redirect 1", []string{server + ":443"}},
		"to plain http":       {"https://" + server + "/plain", sum(after), Options{}, Source, "only https", []string{server + ":443"}},
		"to an address":       {"https://" + server + "/address", sum(after), Options{}, Source, "an IP address, not a name", []string{server + ":443"}},
		"no end of redirects": {"https://" + server + "/loop", sum(after), Options{}, Source, "more than 5 times", nil},
		"not there":           {"https://" + server + "/none", sum(after), Options{}, Status, "404", nil},
		"too large, told":     {"https://" + server + "/agent", sum(after), Options{MaxBytes: int64(len(after)) - 1}, TooLarge, "more than 59999", nil},
		"too large, not told": {"https://" + server + "/endless", sum(after), Options{MaxBytes: 1 << 20}, TooLarge, "more than 1048576", nil},
		"stalls":              {"https://" + server + "/part", sum(after), Options{Stall: 50 * time.Millisecond}, TooLate, "nothing came", nil},
		"too long":            {"https://" + server + "/part", sum(after), Options{Time: 50 * time.Millisecond}, TooLate, "longer than 50ms", nil},
		"cut":                 {"https://" + server + "/cut", sum(after), Options{}, Transport, "unexpected EOF", nil},
		"killed meanwhile":    {"https://" + server + "/agent", sum(after), Options{Killed: func() bool { return true }}, Off, "turned off", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.o)
			_, err := r.Update(t.Context(), Args{c.url, c.sum})
			if err == nil || ClassOf(err) != c.class || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v: %v", ClassOf(err), err)
			}
			if c.hosts != nil || c.class == Invalid {
				if diff := cmp.Diff(c.hosts, r.hosts); diff != "" {
					t.Error(diff)
				}
			}
			r.unchanged()
		})
	}
}

// TestCertificate: a server that the certificate is not for is not believed.
func TestCertificate(t *testing.T) {
	r := newRig(t, Options{})
	r.opts.Transport.(*http.Transport).TLSClientConfig.ServerName = server
	if _, err := r.Update(t.Context(), Args{"https://" + server + "/agent", sum(after)}); ClassOf(err) != Transport || !strings.Contains(err.Error(), "certificate") {
		t.Error(err)
	}
	r.unchanged()
}

// TestCancel: when who asked is gone, nothing is replaced; and while one update is made, no second one is.
func TestCancel(t *testing.T) {
	r := newRig(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	begun := make(chan struct{})
	create := r.create
	r.create = func(dir, base string) (file, error) { close(begun); return create(dir, base) }
	ended := make(chan error, 1)
	go func() {
		_, err := r.Update(ctx, Args{"https://" + server + "/part", sum(after)})
		ended <- err
	}()
	<-begun
	if _, err := r.Update(t.Context(), Args{"https://" + server + "/agent", sum(after)}); ClassOf(err) != Busy {
		t.Error(err)
	}
	cancel()
	if err := <-ended; ClassOf(err) != Cancelled {
		t.Error(err)
	}
	r.unchanged()
}

// failing is a file on a disk that is full.
type failing struct {
	file
	write, finishing error
}

func (f failing) Write(p []byte) (int, error) {
	if f.write != nil {
		return 0, f.write
	}
	return f.file.Write(p)
}

func (f failing) finish(like fs.FileInfo) error {
	if f.finishing != nil {
		return f.finishing
	}
	return f.file.finish(like)
}

// TestDisk: what the disk refuses leaves the file as it was.
func TestDisk(t *testing.T) {
	for _, f := range []failing{{write: syscall.ENOSPC}, {finishing: syscall.ENOSPC}} {
		r := newRig(t, Options{})
		create := r.create
		r.create = func(dir, base string) (file, error) {
			one, err := create(dir, base)
			f.file = one
			return f, err
		}
		if _, err := r.Update(t.Context(), Args{"https://" + server + "/agent", sum(after)}); ClassOf(err) != Disk || !strings.Contains(err.Error(), "no space left") {
			t.Error(err)
		}
		r.unchanged()
	}
	r := newRig(t, Options{})
	if err := os.MkdirAll(r.target+".old/in", 0o755); err != nil { // the old one cannot be kept
		t.Fatal(err)
	}
	if _, err := r.Update(t.Context(), Args{"https://" + server + "/agent", sum(after)}); ClassOf(err) != Disk {
		t.Error(err)
	}
	r.holds(r.target, before)
	r.alone("weir-hook", "weir-hook.old")
}

// TestAgain: an update that ended between keeping the old file and replacing it can be made again; and an exchange can be undone.
func TestAgain(t *testing.T) {
	r := newRig(t, Options{})
	if err := os.Link(r.target, r.target+".old"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Update(t.Context(), Args{"https://" + server + "/agent", sum(after)}); err != nil {
		t.Fatal(err)
	}
	r.holds(r.target, after)
	r.holds(r.target+".old", before)
	r.alone("weir-hook", "weir-hook.old")
	if err := back(r.target, r.target+".old", r.target+".link"); err != nil {
		t.Fatal(err)
	}
	r.holds(r.target, before)
}

// TestTarget: what is no plain file of its owner's alone is not replaced, neither at the start nor later.
func TestTarget(t *testing.T) {
	for name, c := range map[string]struct {
		change func(path string) error
		says   string
	}{
		"gone":          {os.Remove, "no such file"},
		"link":          {func(p string) error { return errorsOf(os.Rename(p, p+"2"), os.Symlink(p+"2", p)) }, "no plain file"},
		"directory":     {func(p string) error { return errorsOf(os.Remove(p), os.Mkdir(p, 0o755)) }, "no plain file"},
		"others write":  {func(p string) error { return os.Chmod(p, 0o777) }, "chmod go-w"},
		"its directory": {func(p string) error { return os.Chmod(filepath.Dir(p), 0o777) }, "chmod go-w"},
		"setuid":        {func(p string) error { return os.Chmod(p, 0o755|fs.ModeSetuid) }, "setuid"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{})
			if err := c.change(r.target); err != nil {
				t.Fatal(err)
			}
			if _, err := New(Options{Target: r.target}); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("at the start: %v", err)
			}
			if _, err := r.Update(t.Context(), Args{"https://" + server + "/agent", sum(after)}); ClassOf(err) != Disk || !strings.Contains(err.Error(), c.says) {
				t.Errorf("later: %v", err)
			}
			if len(r.hosts) > 0 {
				t.Errorf("asked %v", r.hosts)
			}
		})
	}
	if _, err := New(Options{Target: "weir-hook"}); err == nil {
		t.Error("a path that is not absolute")
	}
}

func errorsOf(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestParse: two arguments, each once, by their names; none says where it goes.
func TestParse(t *testing.T) {
	good := sum(after)
	for input, says := range map[string]string{
		`{"url":"https://a","sha256":"` + good + `"}`:                  "",
		`{"url":"https://a","sha256":"` + strings.ToUpper(good) + `"}`: "",
		`{"url":"https://a"}`:                                           "needs sha256",
		`{"sha256":"` + good + `"}`:                                     "needs url",
		`{"url":"https://a","sha256":"` + good[1:] + `"}`:               "64 hexadecimal",
		`{"url":"https://a","sha256":"` + good + `","path":"/bin/sh"}`:  "path",
		`{"url":"https://a","url":"https://b","sha256":"` + good + `"}`: "twice",
		`{"url":["https://a"],"sha256":"` + good + `"}`:                 "url",
		`{"URL":"https://a","sha256":"` + good + `"}`:                   "unknown",
		`[]`: "no JSON object",
		``:   "needs url",
		`{"url":"https://a","sha256":"` + strings.Repeat("\u0660", 64)[:128] + `"}`: "64 hexadecimal",
	} {
		a, err := Parse(json.RawMessage(input))
		if (err == nil) != (says == "") || err != nil && (ClassOf(err) != Invalid || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v", input, err)
		}
		if err == nil && (a != Args{"https://a", good}) {
			t.Errorf("%s: %+v", input, a)
		}
	}
}
