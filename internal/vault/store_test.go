package vault

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"

func newVault(t testing.TB) *Vault {
	t.Helper()
	dir := t.TempDir()
	key := filepath.Join(dir, "vault.key")
	if err := MakeFile(key); err != nil {
		t.Fatal(err)
	}
	k, err := FromFile(key)
	if err != nil {
		t.Fatal(err)
	}
	return New(filepath.Join(dir, "vault.age"), k)
}

func set(t testing.TB, v *Vault, key, user, secret string, b Binding) {
	t.Helper()
	if err := v.Set(key, user, []byte(secret), b); err != nil {
		t.Fatal(err)
	}
}

func keysOf(t testing.TB, v *Vault) []string {
	t.Helper()
	list, err := v.List()
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, i := range list {
		names = append(names, i.Key)
	}
	return names
}

func TestVaultV9(t *testing.T) {
	v := newVault(t)
	if diff := cmp.Diff([]string{}, keysOf(t, v)); diff != "" {
		t.Error(diff)
	}
	set(t, v, "b", "", secret, Binding{Hosts: []string{"API.example.com."}, Methods: []string{"get"}, Paths: []string{"/v1/"}, Networks: []string{"10.1.2.3"}})
	set(t, v, "a", "user", awkward, Binding{})
	list, err := v.List()
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	want := Binding{Hosts: []string{"api.example.com"}, Methods: []string{"GET"}, Paths: []string{"/v1/"}, Networks: []string{"10.1.2.3/32"}}
	if diff := cmp.Diff(want, list[1].Binding); diff != "" || list[0].User != "user" {
		t.Error(diff, list[0])
	}
	if err := v.Set("a", "", []byte(secret), Binding{}); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	if err := v.Rotate("a", []byte("another secret\n")); err == nil || !strings.Contains(err.Error(), "white space") {
		t.Error(err)
	}
	if err := v.Rotate("a", []byte("another secret")); err != nil {
		t.Error(err)
	}
	if e, err := v.entry("a"); err != nil || string(e.Secret) != "another secret" || e.User != "user" {
		t.Error(e.Info, err)
	}
	for range 2 { // the first binds, the second changes nothing
		if err := v.BindFirst("a", "first.example.com"); err != nil {
			t.Error(err)
		}
		if err := v.BindFirst("a", "second.example.com"); err != nil {
			t.Error(err)
		}
	}
	if e, _ := v.entry("a"); !cmp.Equal(e.Binding.Hosts, []string{"first.example.com"}) {
		t.Error(e.Binding)
	}
	if err := v.Remove("b"); err != nil {
		t.Error(err)
	}
	for _, err := range []error{v.Remove("b"), v.Rotate("b", []byte(secret)), v.Bind("b", Binding{})} {
		if !errors.Is(err, ErrNoKey) {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{"a"}, keysOf(t, v)); diff != "" {
		t.Error(diff)
	}
	before := New(v.backup(), v.keys)
	if diff := cmp.Diff([]string{"a", "b"}, keysOf(t, before)); diff != "" {
		t.Error("the generation before:", diff)
	}
	for _, path := range []string{v.path, v.backup()} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Error(info, err)
		}
		data, err := os.ReadFile(path)
		if err != nil || bytes.Contains(data, []byte(secret)) {
			t.Error("the secret stands in the file", err)
		}
	}
	names, err := filepath.Glob(filepath.Join(filepath.Dir(v.path), ".*"))
	if err != nil || len(names) > 0 {
		t.Error("left behind:", names, err)
	}
}

func TestBadSecretsAndBindings(t *testing.T) {
	v := newVault(t)
	for _, tt := range []struct {
		key, user, secret string
		b                 Binding
		want              string
	}{
		{"a/b", "", secret, Binding{}, "is no key"},
		{"CON", "", secret, Binding{}, "device"},
		{"a", "", "short", Binding{}, "8 are the least"},
		{"a", "", secret + " ", Binding{}, "white space"},
		{"a", "", "\t" + secret, Binding{}, "white space"},
		{"a", "", secret + "\r\n", Binding{}, "white space"},
		{"a", "x:y", secret, Binding{}, "user's name"},
		{"a", "", secret, Binding{Hosts: []string{"https://x/"}}, "no host"},
		{"a", "", secret, Binding{Methods: []string{"TRACE"}}, "no method"},
		{"a", "", secret, Binding{Paths: []string{"/a/../b"}}, "no path"},
		{"a", "", secret, Binding{Paths: []string{"a"}}, "no path"},
		{"a", "", secret, Binding{Networks: []string{"10.1"}}, "network"},
		{"a", "", secret, Binding{CA: "x"}, "no certificate"},
	} {
		err := v.Set(tt.key, tt.user, []byte(tt.secret), tt.b)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
	if _, err := os.Stat(v.path); err == nil {
		t.Error("something was written")
	}
}

func TestDamagedIsRefusedAndNotOverwrittenV9(t *testing.T) {
	v := newVault(t)
	set(t, v, "a", "", secret, Binding{})
	good, err := os.ReadFile(v.path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(good)
	flipped[len(flipped)-5] ^= 1
	for name, data := range map[string][]byte{
		"empty": {}, "cut": good[:len(good)-3], "head only": good[:40], "flipped": flipped, "no age file": []byte("hello"), "longer": append(bytes.Clone(good), 'x'),
		"too long": make([]byte, maxFile+1),
	} {
		if err := os.WriteFile(v.path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := v.List()
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), v.backup()) {
			t.Errorf("%s: %v", name, err)
		}
		if err := v.Set("b", "", []byte(secret), Binding{}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if now, _ := os.ReadFile(v.path); !bytes.Equal(now, data) {
			t.Errorf("%s: it was overwritten", name)
		}
	}
}

func TestWrongKeysV9(t *testing.T) {
	v := newVault(t)
	set(t, v, "a", "", secret, Binding{})
	other := newVault(t)
	if _, err := New(v.path, other.keys).List(); !errors.Is(err, ErrLocked) {
		t.Error(err)
	}
	if err := New(v.path, other.keys).Set("b", "", []byte(secret), Binding{}); !errors.Is(err, ErrLocked) {
		t.Error(err)
	}
	if err := os.Chmod(v.path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := v.List(); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Error(err)
	}
}

func TestPassphraseV9(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vault.age")
	k, err := fromPassphrase([]byte("correct horse"), 10)
	if err != nil {
		t.Fatal(err)
	}
	v := New(path, k)
	set(t, v, "a", "", secret, Binding{})
	set(t, v, "b", "", secret, Binding{})
	if diff := cmp.Diff([]string{"a", "b"}, keysOf(t, v)); diff != "" {
		t.Error(diff)
	}
	wrong, err := fromPassphrase([]byte("wrong horse"), 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(path, wrong).List(); !errors.Is(err, ErrLocked) {
		t.Error(err)
	}
	if _, err := FromPassphrase([]byte("short")); err == nil {
		t.Error("a short passphrase is accepted")
	}
}

func TestKeyFilesAndCredentialsV9(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, CredentialKey)
	if err := MakeFile(key); err != nil {
		t.Fatal(err)
	}
	if err := MakeFile(key); err == nil {
		t.Error("a key was overwritten")
	}
	if _, found, err := FromCredentials(dir); !found || err != nil {
		t.Error(found, err)
	}
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := FromFile(key); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Error(err)
	}
	other := t.TempDir()
	if _, found, err := FromCredentials(other); found || err != nil {
		t.Error(found, err)
	}
	if err := os.WriteFile(filepath.Join(other, CredentialPassphrase), []byte("correct horse\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	if _, found, err := FromCredentials(other); !found || err != nil {
		t.Error(found, err)
	}
	for _, bad := range []string{"", "AGE-SECRET-KEY-1", secret} {
		path := filepath.Join(t.TempDir(), "k")
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := FromFile(path); err == nil || strings.Contains(err.Error(), secret) {
			t.Error(err)
		}
	}
}

func TestManyWritersV9(t *testing.T) {
	v := newVault(t)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			own := New(v.path, v.keys) // as another process would
			err := own.Set(fmt.Sprintf("key-%02d", i), "", []byte(secret), Binding{})
			for err != nil && strings.Contains(err.Error(), "try again when it is done") { // a loaded machine
				err = own.Set(fmt.Sprintf("key-%02d", i), "", []byte(secret), Binding{})
			}
			if err != nil {
				t.Error(err)
			}
			if _, err := own.List(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(keysOf(t, v)); n != 20 {
		t.Errorf("%d keys", n)
	}
}

// A passphrase takes its memory once at a time, and gives it back; what was just written is not tried again.
func TestPassphraseMemory(t *testing.T) {
	const work, each = 16, 64 << 20
	k, err := fromPassphrase([]byte("correct horse"), work)
	if err != nil {
		t.Fatal(err)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // what is not given back stays
	held := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapSys - m.HeapReleased
	}
	debug.FreeOSMemory()
	before := held()
	v := New(filepath.Join(t.TempDir(), "vault.age"), k)
	set(t, v, "a", "", secret, Binding{})
	opens := v.keys.identity.(*once)
	opens.inner = nil // it would be a nil dereference to try
	for i := range 3 {
		if err := v.BindFirst("a", fmt.Sprintf("h%d.example.com", i)); err != nil {
			t.Fatal(err)
		}
		if list, err := v.List(); err != nil || len(list) != 1 {
			t.Error(list, err)
		}
	}
	if got := held(); got > before+each/2 {
		t.Errorf("%d MiB are kept, of %d for one use", (got-before)>>20, each>>20)
	}
	again, err := fromPassphrase([]byte("correct horse"), work)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := New(v.path, again).List(); err != nil || len(list) != 1 {
		t.Error(list, err)
	}
	if got := held(); got > before+each/2 {
		t.Errorf("%d MiB are kept after opening, of %d for one use", (got-before)>>20, each>>20)
	}
}
