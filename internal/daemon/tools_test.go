package daemon

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"weir/internal/gate"
	"weir/internal/policy"

	"weir/internal/vault"
)

// V9: the sensor opens the vault with systemd's credential, else with the key beside it, else not at all; which proxy its requests take is the
// policy's word as it is then.
func TestVaultIsOpenedV9(t *testing.T) {
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	policies := newActivePolicy(policy.Default())
	open := func(state, credentials string) *vault.Fetcher {
		t.Setenv("CREDENTIALS_DIRECTORY", credentials)
		return (&tools{bridgeHost: &bridgeHost{d: &daemon{opts: Options{StateDir: state, Logger: logger}, policies: policies}}}).vault()
	}
	state, credentials := t.TempDir(), t.TempDir()
	if f := open(state, credentials); f != nil {
		t.Error("a vault without a key")
	}
	key := filepath.Join(credentials, vault.CredentialKey)
	if err := vault.MakeFile(key); err != nil {
		t.Fatal(err)
	}
	k, err := vault.FromFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := vault.New(filepath.Join(state, "vault.age"), k).Set("gh", "", []byte("ghp_0123456789abcdefghij"), vault.Binding{}); err != nil {
		t.Fatal(err)
	}
	f := open(state, credentials)
	if f == nil {
		t.Fatal("the credential opens nothing")
	}
	if list, err := f.Vault.List(); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	if f.Proxy() != "" {
		t.Error("a proxy that nobody named:", f.Proxy())
	}
	p := policy.Default()
	p.Vault.Proxy = "http://proxy.example.com:3128"
	policies.SetBase(p)
	if f.Proxy() != p.Vault.Proxy {
		t.Error("the policy's proxy is not used")
	}
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	if open(state, credentials) != nil {
		t.Error("a credential that everybody can read was taken")
	}
	if err := os.Chmod(key, 0o400); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(key, filepath.Join(state, "vault.key")); err != nil {
		t.Fatal(err)
	}
	if f := open(state, ""); f == nil {
		t.Error("the key beside it opens nothing")
	}
}

// TestAnswerable: an approval for good is refused where its rule could not be written, before it is taken; others are not looked at.
func TestAnswerable(t *testing.T) {
	good, broken, none := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "made")
	for path, text := range map[string]string{filepath.Join(good, "permissions.yaml"): "deny: [WebSearch]\n", filepath.Join(broken, "permissions.yaml"): "deny: ["} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		dir    string
		reply  gate.Reply
		denied bool
	}{
		{good, gate.Reply{Allow: true, For: gate.ForKey}, false},
		{none, gate.Reply{Allow: true, For: gate.ForKey}, false},
		{broken, gate.Reply{Allow: true, For: gate.ForKey}, true},
		{"/proc/self/fdinfo", gate.Reply{Allow: true, For: gate.ForKey}, true}, // nobody may write there, not even root
		{"/proc/self/fdinfo", gate.Reply{Allow: true, For: gate.ForSession}, false},
		{"/proc/self/fdinfo", gate.Reply{For: gate.ForKey}, false},
	} {
		err := (&bridgeHost{permissions: c.dir}).Answerable(c.reply)
		if (err != nil) != c.denied || c.denied && !strings.Contains(err.Error(), filepath.Join(c.dir, "permissions.yaml")) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for dir, want := range map[string]int{good: 1, none: 0} {
		if left, err := os.ReadDir(dir); err != nil || len(left) != want {
			t.Errorf("left in %s: %v, %v", dir, left, err)
		}
	}
}
