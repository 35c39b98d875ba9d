package daemon

import (
	"maps"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"weir/internal/bridge"
	"weir/internal/netegress"

	"weir/internal/event"
	"weir/internal/gate"

	"weir/internal/taint"
)

// bridgeLog is the event log.
type bridgeLog interface {
	Write(event.Event) error // an error means that it is not written
	WriteAsync(event.Event)  // waits for nothing
}

// bridgeHostOptions are what Agents need. Paths must be absolute.
type bridgeHostOptions struct {
	RunDir      string // the sockets are below
	StateDir    string // vault and notes are in it
	Permissions string // directory of the permission rules
	RulesPath   string // the operator's rules for the guard; need not be there
	Server      string // host that updates of agents may come from besides GitHub; empty: none
	KillSwitch  string // file that turns tools off while it is there
	AgentPath   string // file that agent_update replaces; empty: the tool is off

	Books     *taint.State
	Peers     *netegress.Egress
	Gate      *gate.Gate
	Log       bridgeLog
	Policies  *activePolicy
	Processes *processCache
	Taint     func(taint.Change) (taint.Status, error) // puts a change in force for good
	Logger    logrus.FieldLogger
}

// bridgeHost are those that the sensor serves. Their methods may be called at the same time.
type bridgeHost struct {
	opts    bridgeHostOptions
	bridge  *bridge.Server
	folders *bridge.Folders
	loading sync.Mutex        // of rules
	read    map[string][]byte // files of permission rules, as they last could be read
	unread  map[string]unread // those that never could be

	mu       sync.Mutex
	refusals map[string]uint64 // by rule of the guard
}

// newBridgeHost reads the rules and listens nowhere yet. The caller closes it.
func newBridgeHost(o bridgeHostOptions) (*bridgeHost, error) {
	a := &bridgeHost{opts: o, refusals: map[string]uint64{}, read: map[string][]byte{}, unread: map[string]unread{}}
	a.bridge = bridge.New(host{a}, o.Logger)
	a.offerTools()
	a.offerUpdates()
	a.LoadRules()
	var err error
	if a.folders, err = bridge.NewFolders(a.folderOf, a.answerIn, o.Logger); err != nil {
		a.bridge.Close()
		return nil, err
	}
	return a, nil
}

// Close ends all sockets and folders. Who asks waits no longer than limit.
func (a *bridgeHost) Close(limit time.Duration) {
	a.folders.Close(limit)
	a.bridge.Close()
}

// Refusals are the denials of the guard, by rule.
func (a *bridgeHost) Refusals() map[string]uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.refusals)
}
