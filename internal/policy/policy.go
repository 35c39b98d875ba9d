package policy

import (
	"fmt"
	"net/netip"
)

// Mode says what happens to the egress of a tainted container.
type Mode string

// The modes. The zero Mode is none of them: use Default or Parse.
const (
	Observe Mode = "observe" // log what would be denied, deny nothing
	Enforce Mode = "enforce" // deny what no verdict opens
	Seal    Mode = "seal"    // deny all egress of guarded containers, whatever taint, verdict or Allow
)

// ParseMode reads a mode as the policy file and the command line write it.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case Observe, Enforce, Seal:
		return m, nil
	}
	return "", fmt.Errorf("unknown mode %s%s", yamlQuote(s), suggest(s, modes()))
}

func modes() []string { return []string{string(Observe), string(Enforce), string(Seal)} }

// Who answers questions.
const (
	Person = "person" // somebody with weir approve and weir deny
	None   = "none"   // nobody: a question is denied at once
)

// Deny is what follows when the reviewer flags a command, unless a Person is asked.
const Deny = "deny"

// When commands are judged that are not local.
const (
	AtEgress = "egress" // when they try to get out; until then they run sealed
	AtExec   = "exec"   // when they are executed, and again when they try to get out
)

// Reviewers of a Cop; None is one too.
const (
	Static    = "static"    // embedded, offline
	Anthropic = "anthropic" // a model over the Messages API
	OpenAI    = "openai"    // a model over any compatible endpoint
)

// Protocols of an Allow.
const (
	TCP = "tcp"
	UDP = "udp"
	Any = "any" // every protocol, also those without ports
)

// Policy is one policy file. Build one with Default, Parse or Load: the zero
// Policy is not valid.
type Policy struct {
	Mode             Mode
	Guard            Guard
	Hold             bool         // stop a command in its connect while the question is open; else it gets EPERM at once
	Approver         string       // Person or None
	Review           string       // AtEgress or AtExec; AtExec holds, so it needs Hold
	ApprovalTimeout  int          // how long a question stays open, 1 to 3600
	ApprovalTTL      int          // how long a late approval can be claimed by a retry, 1 to 3600
	Grant            Grant        // what one approval opens
	Allow            []Allow      // destinations that stay open while tainted
	Resolvers        []netip.Addr // name servers that a granted DNS question opens; empty: those of /etc/resolv.conf
	AllowUnixSockets []string     // Unix sockets outside the container that stay reachable while tainted: absolute path or @abstract, at most 107 bytes
	Taint            Taint
	Events           Events
	Cop              Cop
	Notify           Notify
	Metrics          Metrics
	Control          Control
	Vault            Vault
	Confirm          Confirm
	Containers       Containers
	Hooks            string // directory of executables that are asked before each tool call: absolute path; empty: none
	IPC              string // folder for requests in containers, as they see it: absolute path; empty: none
}

// Guard says which containers are guarded.
type Guard struct {
	Parents []string // cgroup paths below the cgroup root, with a leading slash; each child of one is a container
	Cgroups []string // each is a container by itself: such a path, or the name of a systemd slice, scope or service
}

// Grant bounds what one approval opens.
type Grant struct {
	Seconds int   // 1 to 86400
	Bytes   int64 // upstream, 1 to 1 TiB
}

// Taint says what taints.
type Taint struct {
	Initial         []string     // bits that every new container starts with: corruption, secret
	SecretFiles     []SecretFile // opening one sets secret
	Tools           []Tool       // what calls of tools set; the first whose name matches decides
	UntrustedTools  bool         // a call of a tool that is marked as a public source sets corruption, if no line of Tools matches
	Untrusted       bool         // packets to or from a network outside TrustedNetworks set corruption; set by the key trusted_networks, also when empty
	TrustedNetworks []netip.Prefix
	ReplyBudget     int64 // that the socket which caused that may still send, 1 to 1 GiB
}

// Events says where events go.
type Events struct {
	File    string // absolute path; empty: standard output
	MaxMiB  int    // size at which File is rotated, 1 to 10240
	Backups int    // rotated files that are kept, 1 to 1000
}

// Cop says who reviews commands, and within which limits (G13, G14). The key itself never stands in a policy.
type Cop struct {
	Reviewer     string // Static, Anthropic, OpenAI or None
	Model        string // empty: the reviewer's default; OpenAI has none
	BaseURL      string // http or https, without user, query and fragment; empty: the service's own
	KeyFile      string // absolute path of the file that holds the key; or
	KeyEnv       string // name of the environment variable that holds it
	Flagged      string // Deny or Person: what follows with one taint bit; with both a person is asked always
	Seconds      int    // time limit of one review, 1 to 60
	Concurrency  int    // reviews at the same time, 1 to 256
	CacheSeconds int    // how long a verdict is kept, 0 (not at all) to 86400
	Grant        Grant  // what a verdict that lets out opens, as far as the policy's own Grant goes
}

// AskFlagged says whether a person is asked about what the reviewer flags, also with one taint bit.
func (c Cop) AskFlagged() bool { return c.Flagged == Person }

// Allow is a set of destinations: a network, or with Name what that name leads to.
type Allow struct {
	Prefix   netip.Prefix // without host bits; IPv4 is never written as IPv4-mapped IPv6; with Name: where it may lead besides public addresses, or invalid
	Protocol string       // TCP, UDP or Any
	Ports    []PortRange  // empty: every port
	Name     string       // in lower case, without a last dot; *.NAME is all below NAME; empty: Prefix alone counts
}

// PortRange is the ports from Low to High, both included.
type PortRange struct{ Low, High uint16 }

// String writes the range as the policy file does: 443 or 8000-8100.
func (r PortRange) String() string {
	if r.Low == r.High {
		return fmt.Sprint(r.Low)
	}
	return fmt.Sprintf("%d-%d", r.Low, r.High)
}

// Default is the policy of an absent file: it enforces, asks a person, opens
// nothing and guards no parent.
func Default() Policy {
	return Policy{
		Mode:            Enforce,
		Hold:            true,
		Approver:        Person,
		Review:          AtEgress,
		ApprovalTimeout: 300,
		ApprovalTTL:     300,
		Grant:           Grant{Seconds: 60, Bytes: 64 << 20},
		Taint:           Taint{Tools: []Tool{{Name: "mcp__browser__*", Taint: []string{"corruption"}}}, UntrustedTools: true, ReplyBudget: 64 << 10},
		Events:          Events{MaxMiB: 100, Backups: 5},
		Cop:             Cop{Reviewer: Static, Flagged: Deny, Seconds: 5, Concurrency: 8, CacheSeconds: 300, Grant: Grant{Seconds: 30, Bytes: 4 << 20}},
		Notify:          Notify{Form: formJSON, Callback: Callback{Window: 300}},
		Metrics:         Metrics{Listen: MetricsUnix},
		Confirm:         Confirm{ApprovalExemptTools: []string{"mcp__browser__*"}},
	}
}

// quote shows a value of the file: on one line, nothing hidden, not too long.
