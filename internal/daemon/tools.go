package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"weir/internal/bridge"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/linux"
	notes "weir/internal/memory"
	"weir/internal/permission"
	"weir/internal/taint"
	"weir/internal/vault"
)

// tools is the sensor as the tools of the bridge see it.
type tools struct {
	*bridgeHost

	mu      sync.Mutex
	fetcher *vault.Fetcher // nil: there was no key to the vault yet
	writing sync.Mutex     // of a permission rule
}

// offerTools serves VaultHttpFetch and LocalMemoryRecall over the bridge.
func (a *bridgeHost) offerTools() {
	t := &tools{bridgeHost: a}
	a.tools = bridge.NewToolServer(bridge.ToolOptions{
		Gate: a.d.gate, Rules: t, Host: t, Vault: t.vault, Memory: notes.New(filepath.Join(a.d.opts.StateDir, "memory")), Logger: a.d.opts.Logger,
	})
	a.bridge.Offer(a.tools)
}

// vault opens the vault once there is a key to it: systemd's credential, or the file beside it.
func (t *tools) vault() *vault.Fetcher {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fetcher != nil {
		return t.fetcher
	}
	k, found, err := vault.FromCredentials(os.Getenv("CREDENTIALS_DIRECTORY"))
	if !found && err == nil {
		k, err = vault.FromFile(filepath.Join(t.d.opts.StateDir, "vault.key"))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	if err == nil {
		err = vault.NoDumps()
	}
	if err != nil {
		t.d.opts.Logger.WithError(err).Error("open the vault")
		return nil
	}
	t.fetcher = &vault.Fetcher{Vault: vault.New(filepath.Join(t.d.opts.StateDir, "vault.age"), k), Proxy: t.proxy}
	return t.fetcher
}

// proxy is the one of the sensor's policy as it is now.
func (t *tools) proxy() string { return t.d.policies.Base().Vault.Proxy }

// Check implements served.Rules.
func (t *tools) Check(c permission.Call, mode string) permission.Result {
	return t.bridge.Permissions().Check(c, mode)
}

// Killed implements served.Rules.
func (t *tools) Killed(tool string) bool { return t.bridge.Killed(tool) }

// Allow implements served.Rules: a person's word for good becomes a rule of permissions.yaml.
func (t *tools) Allow(rule string) error {
	t.writing.Lock()
	defer t.writing.Unlock()
	path := filepath.Join(t.permissions, "permissions.yaml")
	before, err := readRules(path)
	if err != nil {
		return err
	}
	after, err := permission.Add(before, permission.Allow, rule)
	if err != nil {
		return err
	}
	if err := linux.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write rules: %w", err)
	}
	if err := linux.WriteFileAtomic(path, after); err != nil {
		return fmt.Errorf("write rules: %w", err)
	}
	t.LoadRules()
	return nil
}

// Answerable says why an answer could not be carried out: before it is taken, so that who gives it is told.
func (a *bridgeHost) Answerable(r gate.Reply) error {
	if !r.Allow || r.For != gate.ForKey {
		return nil
	}
	path := filepath.Join(a.permissions, "permissions.yaml")
	before, err := readRules(path)
	if err == nil {
		_, err = permission.Add(before, permission.Allow, permission.Rule{Tool: permission.VaultHTTPFetch, Content: "any"}.String())
	}
	if err == nil {
		err = os.MkdirAll(a.permissions, 0o755)
	}
	var f *os.File
	if err == nil {
		f, err = os.CreateTemp(a.permissions, ".weir-*")
	}
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		return fmt.Errorf("no rule can be written into %s, and the question still waits: approve it once or for the session, or make that file writable: %w", path, err)
	}
	return nil
}

// Log implements served.Host.
func (t *tools) Log(e event.Event) error { return t.d.log.Write(e) }

// Trusts implements served.Host.
func (t *tools) Trusts(who bridge.Asker, addr netip.Addr) bool {
	return t.d.policies.For(who.Container.ID).Taint.Trusts(addr)
}

// Taint implements served.Host.
func (t *tools) Taint(who bridge.Asker, secret, corruption bool, why string) error {
	var bits taint.Bits
	if secret {
		bits |= taint.Secret
	}
	if corruption {
		bits |= taint.Corruption
	}
	if st, ok := t.d.state.ByCgroup(who.Container.CgroupID); ok && bits&^st.Taint == 0 {
		return nil
	}
	_, err := t.d.taint(taint.Change{
		Container: who.Container.ID, Bits: bits, Source: "tool", Why: why, PID: who.Process.PID, Start: who.Process.Start,
	})
	if errors.Is(err, taint.ErrNotStored) {
		return nil // it is in force
	}
	return err
}
