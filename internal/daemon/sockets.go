package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"weir/internal/bridge/wire"
	"weir/internal/netegress"
)

// pathFor is where a session asks; without an id, where containers of guarded parents do.
func (a *bridgeHost) pathFor(id string) string {
	if id == "" {
		return filepath.Join(bridgeSockets(a.d.opts.RunDir), filepath.Base(wire.Default))
	}
	return filepath.Join(bridgeSockets(a.d.opts.RunDir), id+".sock")
}

// bridgeSockets is the directory that has them.
func bridgeSockets(runDir string) string { return filepath.Join(runDir, "bridge") }

// Open listens for everybody who is guarded already. Sockets of an earlier daemon that nobody needs are removed.
func (a *bridgeHost) Open() error {
	dir := filepath.Dir(a.pathFor(""))
	if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the bridge's directory: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { // whatever the umask
		return fmt.Errorf("make the bridge's directory: %w", err)
	}
	old, err := os.ReadDir(dir) // the directory itself may be mounted into containers
	if err != nil {
		return fmt.Errorf("empty the bridge's directory: %w", err)
	}
	for _, e := range old {
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("empty the bridge's directory: %w", err)
		}
	}
	if _, err := a.Admit("", netegress.BaseSlot); err != nil {
		return err
	}
	for _, st := range a.d.state.List() {
		if st.Session {
			if _, err := a.Admit(st.ID, st.Policy); err != nil {
				return err
			}
		}
	}
	return nil
}

// Admit opens a session's own socket, and lets its containers reach it; slot is the session's policy.
func (a *bridgeHost) Admit(id string, slot uint32) (string, error) {
	path := a.pathFor(id)
	if err := a.bridge.Listen(path); err != nil {
		return "", err
	}
	if err := a.d.egress.OpenPeer(slot, path); err != nil {
		return "", errors.Join(err, a.bridge.Remove(path))
	}
	return path, nil
}

// Dismiss closes it.
func (a *bridgeHost) Dismiss(id string, slot uint32) error {
	return errors.Join(a.d.egress.ClosePeer(slot, a.pathFor(id)), a.bridge.Remove(a.pathFor(id)))
}
