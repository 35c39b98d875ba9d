package control

import (
	"context"
	"net/netip"
	"time"

	"weir/internal/event"
	"weir/internal/gate"
)

// Backend is what the socket gives access to. by says who asks, for the log: the
// server fills it from what the kernel knows of the peer. An error with a method
// ExitCode() int keeps that code on the wire; any other has Failed.
type Backend interface {
	Reader
	Tainter
	Approver
	Guardian
	Operator
}

// Reader shows what is.
type Reader interface {
	Status(ctx context.Context) (Status, error)
	Containers(ctx context.Context) ([]Container, error)
	// Why tells what tainted a container.
	Why(ctx context.Context, name string) (Why, error)
	// Events calls fn for each event of the log that f matches, oldest first,
	// and with follow for those to come until ctx ends. It returns fn's error as
	// it is.
	Events(ctx context.Context, f event.Filter, follow bool, fn func(event.Event) error) error
	// Log opens the event log, and its backups, for who asks to read them. The caller closes it.
	Log(ctx context.Context) (*event.Stored, error)
	// Metrics is what /metrics shows, in Prometheus' text form.
	Metrics(ctx context.Context) (string, error)
	// Peer refuses who is guarded, or cannot be known: only people on the host may be served.
	Peer(ctx context.Context, p Peer) error
}

// Peer is who has connected to a program of the host: a process, or a socket of the sensor's network namespace by its addresses, as it sees them.
type Peer struct {
	PID    int            `json:"pid,omitempty"`
	Local  netip.AddrPort `json:"local,omitzero"`
	Remote netip.AddrPort `json:"remote,omitzero"`
}

// Tainter changes taint. name is a container's id, name, unique start of the id,
// or cgroup path.
type Tainter interface {
	Taint(ctx context.Context, name string, bits []string, by, why string) (Container, error)
	Untaint(ctx context.Context, name string, bits []string, by, why string) (Container, error) // why is never empty

	// Moved takes what others tell of containers that begin here, and returns what it wants to know of next: once there is something, or
	// none after some seconds. It only adds taint.
	Moved(ctx context.Context, told []Elsewhere) (wanted []Wanted, err error)

	// The same of a directory of the host, by its absolute path.
	TaintPath(ctx context.Context, path string, bits []string, by, why string) (Volume, error)
	UntaintPath(ctx context.Context, path string, bits []string, by, why string) (Volume, error)
}

// Elsewhere is what a container was tainted with on other nodes.
type Elsewhere struct {
	Identity string   `json:"identity"`
	Taint    []string `json:"taint,omitempty"`
	Nodes    []string `json:"nodes,omitempty"` // which told so
}

// Wanted is an identity that a node wants to know of.
type Wanted struct {
	Identity  string    `json:"identity"`
	Forgotten time.Time `json:"forgotten,omitzero"` // what was told before is forgotten
}

// Volume is a directory of the host that carries taint between containers.
type Volume struct {
	Path   string        `json:"path"`
	Taint  []string      `json:"taint,omitempty"`
	Since  time.Time     `json:"since,omitzero"` // of the last change
	By     string        `json:"by,omitempty"`
	Why    string        `json:"why,omitempty"`
	Causes []event.Cause `json:"causes,omitempty"` // of each bit what set it first
}

// Approver answers questions.
type Approver interface {
	Pending(ctx context.Context) ([]gate.Question, error)           // in the order of asking
	History(ctx context.Context, most int) ([]gate.Question, error) // those that ended, newest first
	// Answer ends a question. The server fills By and From of the reply.
	Answer(ctx context.Context, id string, r gate.Reply) (gate.Question, error)
	Approvals(ctx context.Context) ([]gate.StandingApproval, error) // that go on, oldest first
	Revoke(ctx context.Context, id, by, why string) (gate.StandingApproval, error)
	// Signed carries out an answer or an order that somebody elsewhere has signed, whoever brings it, and says in one line what became of it.
	Signed(ctx context.Context, s Signed) (string, error)
}

// Signed is what a person elsewhere has signed, on its way. Key and Signature are base64; Statement is JSON, and was signed as it stands.
type Signed struct {
	Key       string `json:"key"`
	Statement string `json:"statement"`
	Signature string `json:"signature"`
}

// Guardian keeps the sessions of weir guard, and cgroups that people name.
type Guardian interface {
	// Guard makes a session and its empty cgroup.
	Guard(ctx context.Context, r GuardRequest) (GuardReply, error)
	// GuardCgroup guards a cgroup that is there already, and returns it as the container that it is from now on.
	GuardCgroup(ctx context.Context, r CgroupRequest) (Container, error)
	// GuardAgent names the agent's process before it executes anything.
	GuardAgent(ctx context.Context, id string, pid int) error
	// GuardEnd ends a session; its cgroup is removed when it is empty.
	GuardEnd(ctx context.Context, id string) (Summary, error)
}

// ModelRefusal is what a model's proxy tells of a request that it refused. It has nothing of the request.
type ModelRefusal struct {
	Code   string `json:"code"`             // one of those that docs/protocol.md lists
	PID    int    `json:"pid,omitempty"`    // of who asked on a Unix socket; 0: not known
	Cgroup string `json:"cgroup,omitempty"` // of that process, while it still waited for its answer: it may end with that
}

// Operator changes how the sensor works.
type Operator interface {
	// ModelRefused logs and counts a request that a model's proxy refused.
	ModelRefused(ctx context.Context, r ModelRefusal) error
	Mode(ctx context.Context, mode, by, why string) error
	Reload(ctx context.Context) error // reads the policy file again; a bad one changes nothing
}

// Status is the sensor at a glance.
type Status struct {
	Version    string            `json:"version"`
	PID        int               `json:"pid"`
	Mode       string            `json:"mode"`   // observe, enforce or seal
	Kernel     string            `json:"kernel"` // release, such as 6.1.0-28-amd64
	Uptime     int64             `json:"uptime_seconds"`
	Policy     string            `json:"policy,omitempty"`  // the file; empty: the default policy
	Events     string            `json:"events,omitempty"`  // the log's file; empty: standard output
	State      string            `json:"state,omitempty"`   // the directory of what outlives a reboot, absolute
	Parents    []string          `json:"parents,omitempty"` // guarded parents: cgroup paths
	Volumes    []Volume          `json:"volumes,omitempty"` // that carry taint, or would
	Containers int               `json:"containers"`        // with live processes
	Pending    int               `json:"pending"`           // open questions
	Goroutines int               `json:"goroutines"`        // of the daemon: they must not grow
	Counters   map[string]uint64 `json:"counters,omitempty"`
	Degraded   []string          `json:"degraded,omitempty"` // what does not work here, and what is lost with it
	Refused    *PolicyRefusal    `json:"policy_refused,omitempty"`
}

// PolicyRefusal says why the policy file is not in force, but the policy that was before.
type PolicyRefusal struct {
	Since time.Time `json:"since"` // the last time that it was refused
	Why   []string  `json:"why"`   // a line for each mistake
}

// Container is a guarded cgroup and its state.
type Container struct {
	ID       string            `json:"id"`
	Name     string            `json:"name,omitempty"`
	Cgroup   string            `json:"cgroup"`          // path below the cgroup root, with a leading slash
	Taint    []string          `json:"taint,omitempty"` // with what ancestors add
	Mode     string            `json:"mode,omitempty"`  // that is in force for it: observe, enforce or seal
	Since    time.Time         `json:"since,omitzero"`  // of the taint
	By       string            `json:"by,omitempty"`    // who set it
	Why      string            `json:"why,omitempty"`
	Identity string            `json:"identity,omitempty"`  // with fleet.identity: what names it, or its pod, on every node
	Agent    int               `json:"agent_pid,omitempty"` // 0: unknown
	Session  bool              `json:"session,omitempty"`   // made by weir guard
	Live     bool              `json:"live"`                // has processes
	Grants   []event.GrantInfo `json:"grants,omitempty"`

	// What its runtime calls it; empty: none told.
	Runtime      string `json:"runtime,omitempty"`   // containerd, docker, podman or cri-o
	Namespace    string `json:"namespace,omitempty"` // the runtime's own
	RuntimeID    string `json:"runtime_id,omitempty"`
	Image        string `json:"image,omitempty"`
	Pod          string `json:"pod,omitempty"`
	PodNamespace string `json:"pod_namespace,omitempty"`
	PodUID       string `json:"pod_uid,omitempty"`
}

// Why is the history of a container's taint.
type Why struct {
	Container Container     `json:"container"`
	Causes    []event.Cause `json:"causes,omitempty"`  // of each bit that is set what set it first, and what set it last
	History   []event.Event `json:"history,omitempty"` // the changes that the event log has, oldest first
	Older     bool          `json:"older,omitempty"`   // the log has more, which are older
	Unread    int           `json:"unread,omitempty"`  // lines of the log that are no events: what they told is not in History
	NoLog     bool          `json:"no_log,omitempty"`  // events go to no file that could be read
}

// GuardRequest asks for a session.
type GuardRequest struct {
	Name       string   `json:"name,omitempty"`
	Taint      []string `json:"taint,omitempty"`       // bits that it starts with
	Policy     string   `json:"policy,omitempty"`      // YAML of the session's own policy; empty: the sensor's
	PolicyName string   `json:"policy_name,omitempty"` // its file, for messages
	By         string   `json:"by,omitempty"`          // filled by the server
}

// CgroupRequest asks to guard a cgroup.
type CgroupRequest struct {
	Cgroup string   `json:"cgroup"`          // path, or the name of a systemd slice, scope or service
	Name   string   `json:"name,omitempty"`  // for people
	Taint  []string `json:"taint,omitempty"` // bits that are set at once
	By     string   `json:"by,omitempty"`    // filled by the server
}

// GuardReply is a session that was made.
type GuardReply struct {
	ID     string `json:"id"`
	Cgroup string `json:"cgroup"`           // absolute path of the cgroup's directory
	Bridge string `json:"bridge,omitempty"` // absolute path of its socket to ask before acting

	Mode  string   `json:"mode"`            // observe, enforce or seal
	Taint []string `json:"taint,omitempty"` // that it begins with
}

// Summary is what happened in a session.
type Summary struct {
	Denied   uint64   `json:"denied"`   // connects and first sends, commands and calls of tools
	Asked    uint64   `json:"asked"`    // processes that a person was asked about
	Approved uint64   `json:"approved"` // questions that a person approved
	Granted  uint64   `json:"granted"`  // grants made
	Taint    []string `json:"taint,omitempty"`
	Left     int      `json:"left,omitempty"` // processes that go on, guarded
}
