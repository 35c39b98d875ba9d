package daemon

import (
	"path/filepath"
	"sync"
	"time"

	"weir/internal/bridge"
	"weir/internal/bridge/wire"
)

// bridgeHost are those that the sensor serves. Their methods may be called at the same time.
type bridgeHost struct {
	d           *daemon
	permissions string // directory of the permission rules
	bridge      *bridge.Server
	tools       *bridge.ToolServer
	folders     *bridge.Folders
	loading     sync.Mutex        // of rules
	read        map[string][]byte // files of permission rules, as they last could be read
	unread      map[string]unread // those that never could be
	refusals    tally             // by rule of the guard

	mu     sync.Mutex
	faulty map[string]bool // files of rules that are not in force as they stand there
}

// newBridgeHost reads the rules and listens nowhere yet. The caller closes it.
func newBridgeHost(d *daemon) (*bridgeHost, error) {
	a := &bridgeHost{d: d, permissions: wire.Config, read: map[string][]byte{}, unread: map[string]unread{}}
	if d.opts.PolicyPath != "" {
		a.permissions = filepath.Dir(d.opts.PolicyPath)
	}
	a.bridge = bridge.New(host{a}, d.opts.Logger)
	a.offerTools()
	a.offerUpdates()
	a.LoadRules()
	var err error
	if a.folders, err = bridge.NewFolders(a.folderOf, a.answerIn, d.opts.Logger); err != nil {
		a.bridge.Close(0) // nobody was served
		return nil, err
	}
	return a, nil
}

// Close ends all sockets and folders. Who asks waits no longer than limit.
func (a *bridgeHost) Close(limit time.Duration) {
	a.folders.Close(limit)
	a.bridge.Close(limit)
}
