package event

import (
	"strings"
	"time"
)

// Kind says what an event is about.
type Kind string

// The kinds of events. Each fills the fields of Event that its comment names.
const (
	Exec     Kind = "exec"     // a program was executed: Process
	Connect  Kind = "connect"  // a connect or first send was let through or refused: Process, Destination, Verdict
	Hold     Kind = "hold"     // a connect was held, or refused with a question: Process, Destination, Question
	Verdict  Kind = "verdict"  // a question was answered: Process, Destination, Question, Verdict
	Grant    Kind = "grant"    // egress was opened, used up or revoked: Grant
	Taint    Kind = "taint"    // taint was set or cleared: Change, and Process if one caused it
	Lost     Kind = "lost"     // something was lost on its way here: Loss
	Mode     Kind = "mode"     // the mode or the policy changed, or taint was forgotten for a fleet: Mode, Message
	Error    Kind = "error"    // a failure or a finding that a person should know: Message
	Start    Kind = "start"    // the sensor started: Message
	Stop     Kind = "stop"     // the sensor stopped: Message
	Tool     Kind = "tool"     // a tool of the sensor's own was called: Process, Use, Verdict
	Found    Kind = "finding"  // a container has what undoes its guard, or was refused for it: Finding
	Deny     Kind = "deny"     // another call was refused: Process, Hook, Verdict
	Drop     Kind = "drop"     // packets were dropped: Container, Destination, Verdict
	Escape   Kind = "escape"   // a process left its container, and was killed: Container, Process, Message
	Approval Kind = "approval" // an approval was given that goes on, or is over: Container, Approval
	Model    Kind = "model"    // a request to the model was refused by its proxy: Verdict, and Container and Process if they are known
)

// Kinds returns all kinds, in the order of the schema.
func Kinds() []Kind {
	return []Kind{Exec, Connect, Hold, Verdict, Grant, Taint, Lost, Mode, Error, Start, Stop, Tool, Found, Deny, Drop, Escape, Approval, Model}
}

// KindNames lists all kinds for people.
func KindNames() string {
	var names []string
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// Event is one line of the log. Unused parts are nil or empty.
type Event struct {
	Time        time.Time     `json:"time"` // UTC
	Kind        Kind          `json:"kind"`
	Container   *Container    `json:"container,omitempty"`
	Process     *Process      `json:"process,omitempty"`
	Destination *Destination  `json:"destination,omitempty"`
	Hook        string        `json:"hook,omitempty"`     // of the kernel: which call it refused that opens no destination
	Question    string        `json:"question,omitempty"` // the id that approve and deny take
	Verdict     *Decision     `json:"verdict,omitempty"`
	Grant       *GrantInfo    `json:"grant,omitempty"`
	Change      *TaintChange  `json:"taint,omitempty"`
	Loss        *Loss         `json:"lost,omitempty"`
	Approval    *ApprovalInfo `json:"approval,omitempty"`
	Use         *ToolUse      `json:"use,omitempty"`
	Finding     *Finding      `json:"finding,omitempty"`
	Mode        string        `json:"mode,omitempty"`    // observe, enforce or seal
	Command     string        `json:"command,omitempty"` // the text that a bridge was asked about; process is who asked
	Message     string        `json:"message,omitempty"`
}

// Container is a guarded cgroup: a guard session, or a child of a guarded parent.
type Container struct {
	ID       string   `json:"id"`                  // stable over restarts
	Name     string   `json:"name,omitempty"`      // for people
	Cgroup   string   `json:"cgroup,omitempty"`    // path below the cgroup root, with a leading slash
	CgroupID uint64   `json:"cgroup_id,omitempty"` // inode of the cgroup's directory
	Taint    []string `json:"taint,omitempty"`     // corruption, secret

	// What its runtime calls it; empty: none told.
	Runtime      string `json:"runtime,omitempty"`    // containerd
	Namespace    string `json:"namespace,omitempty"`  // the runtime's own
	RuntimeID    string `json:"runtime_id,omitempty"` // of the container, or of the pod's sandbox
	Image        string `json:"image,omitempty"`
	Pod          string `json:"pod,omitempty"`
	PodNamespace string `json:"pod_namespace,omitempty"`
	PodUID       string `json:"pod_uid,omitempty"`
}

// Finding is what a container has that undoes its guard (B18, B34, B42, B48).
type Finding struct {
	ID       string `json:"id"`                // a stable code, as docs/containers.md lists them
	Severity string `json:"severity"`          // critical, high or medium
	Text     string `json:"text"`              // one sentence for people
	Refused  bool   `json:"refused,omitempty"` // the policy refuses it, and the container was killed
}

// Process is one process at the moment of the event, as the kernel saw it.
type Process struct {
	PID       int        `json:"pid"`                        // thread group, in the host's pid namespace
	Start     uint64     `json:"start"`                      // ns since boot: with PID it names one process
	UID       uint32     `json:"uid"`                        // in the host's user namespace
	Comm      string     `json:"comm,omitempty"`             // at most 15 bytes, chosen by the process
	Exe       *File      `json:"exe,omitempty"`              // the file that runs
	Argv      []string   `json:"argv,omitempty"`             // from the new image's own memory (B01)
	Truncated bool       `json:"argv_truncated,omitempty"`   // some of argv is missing: never local (B02)
	Claimed   bool       `json:"argv_claimed,omitempty"`     // argv is whole by the process's own account, which it can change; Truncated too
	ArgvHash  uint64     `json:"argv_hash,omitempty,string"` // the kernel's hash of the whole argv
	Script    string     `json:"script,omitempty"`           // the #! script or binfmt_misc file, as named to execve
	Interp    string     `json:"interpreter,omitempty"`      // what runs Script
	Env       []string   `json:"env,omitempty"`              // names of dangerous variables that are set (B12)
	EnvCut    bool       `json:"env_truncated,omitempty"`    // the environment was longer than what was read
	Dir       string     `json:"cwd,omitempty"`              // its working directory when it was judged; of who asks over a bridge, the one that it tells
	Cgroup    string     `json:"cgroup,omitempty"`           // the process's own cgroup
	Ancestry  []Ancestor `json:"ancestry,omitempty"`         // parent first
	NetNS     uint64     `json:"netns,omitempty"`            // inode of the network namespace
	PidNS     uint64     `json:"pidns,omitempty"`            // inode of the pid namespace
}

// File is an executable, named by what cannot be faked (B03, B04).
type File struct {
	Path    string `json:"path"` // as mounted where the process sees it; may be cut at the left with "…"
	Device  uint64 `json:"device"`
	Inode   uint64 `json:"inode"`
	Memfd   bool   `json:"memfd,omitempty"`   // lives in memory only (B06)
	Deleted bool   `json:"deleted,omitempty"` // has no name any more (B06)
}

// Ancestor is one step of a process's parent chain.
type Ancestor struct {
	PID    int      `json:"pid"`
	Start  uint64   `json:"start"`
	Comm   string   `json:"comm"`
	Argv   []string `json:"argv,omitempty"`   // as it was executed, if that is known
	Exe    string   `json:"exe,omitempty"`    // path of the file that runs, if that is known
	Inside bool     `json:"inside,omitempty"` // of the container
}

// Member is a process of a command's chain: who asks, or an ancestor of it that an approval can cover.
type Member struct {
	PID       int      `json:"pid"`
	Start     uint64   `json:"start"`
	Comm      string   `json:"comm,omitempty"`
	Exe       string   `json:"exe,omitempty"`            // path of the file that runs, if that is known
	Argv      []string `json:"argv,omitempty"`           // the whole, if that is known
	Truncated bool     `json:"argv_truncated,omitempty"` // some of argv is missing, or the process could have changed it
	Claimed   bool     `json:"argv_claimed,omitempty"`   // the latter: argv is whole by the process's own account
}

// Member is p as it is told beside another.
func (p Process) Member() Member {
	m := Member{PID: p.PID, Start: p.Start, Comm: p.Comm, Argv: p.Argv, Truncated: p.Truncated, Claimed: p.Claimed}
	if p.Exe != nil {
		m.Exe = p.Exe.Path
	}
	return m
}

// Destination is where a packet would go; IPv4-mapped addresses are written as IPv4 (B14).
type Destination struct {
	Address  string `json:"address"`        // an IP address, or a Unix socket's path (@ for abstract ones)
	Port     uint16 `json:"port,omitempty"` // 0 for protocols without ports
	Protocol string `json:"protocol"`       // tcp, udp, unix, icmp or the protocol's number
	DNS      bool   `json:"dns,omitempty"`  // port 53: the question is for names, not for this address
	Name     string `json:"name,omitempty"` // what the address stands for in its container: a name that nobody has looked up
}

// Decision is a verdict as events tell it.
type Decision struct {
	Decision string `json:"decision"`         // allow or deny
	Reason   string `json:"reason"`           // a stable code, as docs/protocol.md lists them
	Text     string `json:"text,omitempty"`   // one sentence for people
	By       string `json:"by,omitempty"`     // who answered
	Class    string `json:"class,omitempty"`  // of the command: local, network or grey
	Judged   string `json:"judged,omitempty"` // why it is of that class
	Failed   string `json:"failed,omitempty"` // why a person had to decide, where something failed before: a stable code
	Tool     string `json:"tool,omitempty"`   // whose call was refused before the gate
	Rule     string `json:"rule,omitempty"`   // the guard's rule that refused it; with For, a permission rule

	Scope   int     `json:"scope,omitempty"`   // of an approval: how far up the chain it reaches, from 1, which is who asked alone
	Process *Member `json:"process,omitempty"` // with a scope above 1: who is let out with all that it starts

	For   string  `json:"for,omitempty"`   // of an approval of a tool's call: session or key, and Rule says what it covers; empty: once
	Why   string  `json:"why,omitempty"`   // as given with the answer
	From  *Origin `json:"from,omitempty"`  // where the answer came from
	Shown *Shown  `json:"shown,omitempty"` // what who answered had before them, as far as the answer says
}

// Origin is where a person's answer came from. What Terminal and SSH say stands in
// the peer's own session, the rest the kernel or a signature vouches for.
type Origin struct {
	Via      string  `json:"via"`                // control, callback, slack or fleet
	UID      *uint32 `json:"uid,omitempty"`      // of the peer on the control socket
	PID      int     `json:"pid,omitempty"`      // of the peer
	Exe      string  `json:"exe,omitempty"`      // the peer's program
	Terminal string  `json:"terminal,omitempty"` // such as pts/3
	SSH      string  `json:"ssh,omitempty"`      // client address and port, server address and port
	Address  string  `json:"address,omitempty"`  // of who called back
	User     string  `json:"user,omitempty"`     // as the callback named it, or the policy who signed
	Chat     string  `json:"chat,omitempty"`     // team and channel of a chat
}

// Shown is a text that a person answered upon.
type Shown struct {
	Text   string `json:"text"`
	SHA256 string `json:"sha256"`        // of the whole text, in hex
	Cut    bool   `json:"cut,omitempty"` // Text is only its start
}

// GrantInfo is egress that is open, or was.
type GrantInfo struct {
	ID      uint64        `json:"id"`
	State   string        `json:"state"`            // made, extended, claimed, spent, expired, revoked, ended
	Kind    string        `json:"grant_kind"`       // cgroup, mark or claim
	To      []Destination `json:"to,omitempty"`     // what is open
	Expires time.Time     `json:"expires,omitzero"` // zero: already over
	Bytes   int64         `json:"bytes,omitempty"`  // left of the budget
	Cgroup  string        `json:"cgroup,omitempty"` // the child cgroup of a cgroup grant
	PIDs    []int         `json:"pids,omitempty"`   // processes moved

	Scope   int     `json:"scope,omitempty"`   // of the verdict, where the grant is made: see Decision
	Process *Member `json:"process,omitempty"` // who is let out with what it starts; nil: a claim, or not known
}

// ApprovalEnd says why an approval that went on is over; empty: it was given.
type ApprovalEnd string

// The ends of approvals.
const (
	Revoked   ApprovalEnd = "revoked"    // by a person
	Expired   ApprovalEnd = "expired"    // its time is over
	NewTaint  ApprovalEnd = "new_taint"  // the container was tainted more
	Ended     ApprovalEnd = "ended"      // its process or its container has ended
	NotStored ApprovalEnd = "not_stored" // it could not be stored, and was never in force
)

// ApprovalEnds returns all ends, in the order of the schema.
func ApprovalEnds() []ApprovalEnd {
	return []ApprovalEnd{Revoked, Expired, NewTaint, Ended, NotStored}
}

// ApprovalInfo is a person's approval that goes on, or did.
type ApprovalInfo struct {
	ID      string      `json:"id"`                // of the question that it answered
	End     ApprovalEnd `json:"end,omitempty"`     // why it is over; empty: it was given
	Who     string      `json:"who"`               // process, program or container
	Process *Member     `json:"process,omitempty"` // of who: it and all that it starts
	Adds    string      `json:"adds"`              // what it covers, for people
	Until   time.Time   `json:"until,omitzero"`    // zero: until the container ends
	Bytes   int64       `json:"bytes"`             // upstream, in all
	Left    int64       `json:"left,omitempty"`    // that no grant has
	Uses    uint64      `json:"uses,omitempty"`    // how many were let out by it
	By      string      `json:"by,omitempty"`      // who gave it, or revoked it
	Why     string      `json:"why,omitempty"`     // as given with that
	From    *Origin     `json:"from,omitempty"`    // where the answer came from
	Shown   *Shown      `json:"shown,omitempty"`   // what who gave it had before them
}

// TaintChange is taint set or cleared.
type TaintChange struct {
	Set     []string `json:"set,omitempty"`
	Cleared []string `json:"cleared,omitempty"`
	Source  string   `json:"source"` // one of Sources
	By      string   `json:"by,omitempty"`
	Why     string   `json:"why,omitempty"`
	Volume  string   `json:"volume,omitempty"` // the directory: with the source volume, which the container took it from; else, whose taint it is
}

// Cause is why a container has a bit of taint: one change that set it.
type Cause struct {
	Bit    string    `json:"bit"`
	At     time.Time `json:"at"`
	Source string    `json:"source"` // one of Sources
	By     string    `json:"by,omitempty"`
	Why    string    `json:"why,omitempty"`
	Argv   []string  `json:"argv,omitempty"` // of the process that it comes from, cut to what is told of one beside another
	PID    int       `json:"pid,omitempty"`  // of that process; 0: none, or not known
	Tool   string    `json:"tool,omitempty"` // whose call it was

	// The command lines of that process's parents in the container, nearest first, cut; of a tool's call, of who asked for it.
	Above []string `json:"above,omitempty"`

	// Of what came through a volume: who gave it to that and why, and so on, nearest first.
	From []string `json:"from,omitempty"`
}

// Sources returns what sets taint, in the order of the schema: an order on the host, the start of a session or a cgroup that is guarded, the
// policy's containers.match, another container of the same pod, a secret file, an untrusted destination, a tool's call, a volume that carries it, a container that wrote
// into a volume, and the kernel, where its record was lost.
func Sources() []string {
	return []string{"operator", "guard", "start", "pod", "file", "destination", "tool", "volume", "container", "fleet", "kernel"}
}

// ToolUse is one call of a tool that the sensor serves (V11). What it gave back is in no event (P8).
type ToolUse struct {
	Tool     string `json:"tool"`
	Key      string `json:"key,omitempty"`    // of the vault, or of an entry
	Method   string `json:"method,omitempty"` // of a request; of a recall, its action
	Host     string `json:"host,omitempty"`
	Path     string `json:"path,omitempty"`   // without its query
	Scheme   string `json:"scheme,omitempty"` // how the key's secret is sent, and in which header
	Header   string `json:"header,omitempty"`
	Status   int    `json:"status,omitempty"` // of the answer
	Bytes    int64  `json:"bytes,omitempty"`  // that came back
	Duration int64  `json:"duration_ms,omitempty"`
	Reason   string `json:"reason,omitempty"` // as the agent put it
	Store    string `json:"store,omitempty"`
	Failure  string `json:"failure,omitempty"` // why there was no answer: a stable code
}

// Loss counts what did not arrive.
type Loss struct {
	Stage string `json:"stage"` // kernel, ring, queue, sink, kept, fleet or otlp
	What  string `json:"what"`  // exec, connect, hold, taint, …
	Count uint64 `json:"count"` // since the last report
}
