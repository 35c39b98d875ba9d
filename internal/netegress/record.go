package netegress

import (
	"cmp"
	"net/netip"
	"strconv"

	"weir/internal/bpfobj"
	"weir/internal/event"
	"weir/internal/taint"
)

// Process names a process as the kernel saw it, and what it runs.
type Process struct {
	PID       int
	Start     uint64 // ns since boot
	UID       uint32
	Comm      string
	Cgroup    uint64 // id of its own cgroup
	ExecPID   int    // with ExecStart: who executed what it runs, itself or an ancestor; 0: unknown
	ExecStart uint64
	Device    uint32 // of the executable, as the kernel counts: major<<20 | minor
	Inode     uint64
	ArgvHash  uint64 // keyed hash of the whole argv; 0: unknown
}

// Destination is where it wants to go.
type Destination struct {
	Addr  netip.Addr // never IPv4-mapped
	Port  uint16
	Proto uint8 // IPPROTO_*
}

const (
	protoTCP = 6
	protoUDP = 17
	portDNS  = 53
)

// Event is the destination as the log tells it.
func (d Destination) Event() event.Destination {
	return event.Destination{Address: d.Addr.String(), Port: d.Port, Protocol: protoName(d.Proto), DNS: d.dns()}
}

func (d Destination) dns() bool {
	return d.Port == portDNS && (d.Proto == protoUDP || d.Proto == protoTCP)
}

// Ask is a connect or first send that wants a verdict, or with Exec a command that
// has not begun.
type Ask struct {
	Time      uint64 // ns since boot; 0: an earlier daemon's
	Container uint64 // cgroup id
	Taint     taint.Bits
	Process   Process
	To        Destination
	Held      bool // it waits until Grant, Refuse, Kill or Wake; else it is refused already
	Exec      bool // stopped before its first instruction; To says nothing
}

// Record is something that was decided in the kernel.
type Record struct {
	Kind      RecordKind
	Reason    string // a stable code
	Denied    bool
	Container uint64
	Taint     taint.Bits
	Process   Process // zero for packets
	To        Destination
	Path      string // of a Unix peer
	Family    int    // with reason family: the socket's, and its type and protocol
	Type      int
	Grant     uint64
	Exec      bool   // it is of a command that has not begun; To says nothing
	Call      string // that was refused and opens no destination, as events name its hook
	Target    int    // process that was to be reached; with the call setsockopt the socket's option
}

// RecordKind says what happened.
type RecordKind uint32

// The kinds of records.
const (
	Connected = RecordKind(egressRecordKindRECORD_CONNECT)
	Denied    = RecordKind(egressRecordKindRECORD_DENY)
	Claimed   = RecordKind(egressRecordKindRECORD_CLAIM)
	Dropped   = RecordKind(egressRecordKindRECORD_DROP)
	Spent     = RecordKind(egressRecordKindRECORD_SPENT)
	Tainted   = RecordKind(egressRecordKindRECORD_TAINT) // an untrusted destination tainted; Grant may go on
)

var reasons = map[egressReason]string{
	egressReasonREASON_UNTAINTED: "untainted", egressReasonREASON_LISTED: "listed", egressReasonREASON_GRANTED: "granted",
	egressReasonREASON_LOOPBACK: "loopback", egressReasonREASON_OBSERVED: "observe", egressReasonREASON_TAINTED: "tainted",
	egressReasonREASON_SEALED: "sealed", egressReasonREASON_DEPTH: "cgroup_depth", egressReasonREASON_QUIC: "quic",
	egressReasonREASON_FAMILY: "socket_family", egressReasonREASON_OUTSIDE: "outside_container",
	egressReasonREASON_CONTROL: "control_socket", egressReasonREASON_ATTACH: "attach", egressReasonREASON_ESCAPED: "escaped",
	egressReasonREASON_DENIED:     "denied",
	egressReasonREASON_UNREADABLE: "unreadable_address", egressReasonREASON_FULL: "queue_full",
	egressReasonREASON_UNTRUSTED: "untrusted", egressReasonREASON_NAMED: "allowed_name", egressReasonREASON_UNRESOLVED: "unresolved_name",
	egressReasonREASON_KERNEL: "kernel_traffic",
}

var calls = map[peersCall]string{
	peersCallCALL_PTRACE: "ptrace", peersCallCALL_SIGNAL: "signal", peersCallCALL_LIMIT: "limit", peersCallCALL_PRIORITY: "priority",
	peersCallCALL_IPC: "ipc", peersCallCALL_KEY: "key", peersCallCALL_OPTION: "setsockopt", peersCallCALL_REQUEST_KEY: "request_key",
	peersCallCALL_MODULE: "module", peersCallCALL_PARENT: "session_to_parent", peersCallCALL_TUN: "tun", peersCallCALL_IPSEC: "ipsec",
	peersCallCALL_NETWORK: "network", peersCallCALL_LABEL: "label", peersCallCALL_MOUNT: "mount",
}

func protoName(p uint8) string {
	names := map[uint8]string{1: "icmp", protoTCP: "tcp", protoUDP: "udp", 58: "icmpv6", 132: "sctp", 33: "dccp", 136: "udplite"}
	if name, ok := names[p]; ok {
		return name
	}
	return strconv.Itoa(int(p))
}

func askOf(r *egressRecord) Ask {
	return Ask{
		Time: r.Time, Container: r.Container, Taint: taint.Bits(r.Taint), Process: processOf(r), To: destOf(r.Dest),
		Held: r.Kind == egressRecordKindRECORD_HOLD || r.Kind == egressRecordKindRECORD_EXEC,
		Exec: r.Kind == egressRecordKindRECORD_EXEC,
	}
}

func recordOf(r *egressRecord) Record {
	rec := Record{
		Kind: RecordKind(r.Kind), Reason: reasons[r.Reason], Denied: r.Reason >= egressReasonREASON_TAINTED,
		Container: r.Container, Taint: taint.Bits(r.Taint), Process: processOf(r), To: destOf(r.Dest),
		Path: bpfobj.Text(r.Path[:]), Family: int(r.Family), Grant: r.Grant, Target: int(r.Target),
	}
	switch r.Reason {
	case egressReasonREASON_FAMILY:
		rec.Call, rec.Family, rec.Type = "socket", int(r.Dest.Addr[0]), int(r.Dest.Addr[1])
	case egressReasonREASON_ATTACH, egressReasonREASON_KERNEL:
		rec.Call = cmp.Or(calls[peersCall(r.Dest.Proto)], "unknown") // an earlier version's programs name none
	}
	return rec
}

func processOf(r *egressRecord) Process {
	return Process{
		PID: int(r.Tgid), Start: r.Start, UID: r.Uid, Comm: bpfobj.Text(r.Comm[:]), Cgroup: r.Cgroup,
		ExecPID: int(r.ExecTgid), ExecStart: r.ExecStart, Device: r.Device, Inode: r.Inode, ArgvHash: r.ArgvHash,
	}
}

func destOf(d egressDest) Destination {
	return Destination{Addr: netip.AddrFrom16(d.Addr).Unmap(), Port: d.Port, Proto: d.Proto}
}

func (d Destination) raw() egressDest {
	return egressDest{Addr: d.Addr.As16(), Port: d.Port, Proto: d.Proto}
}
