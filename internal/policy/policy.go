package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
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
// Policy is not valid. The tags say how the file has a field: see fields.
type Policy struct {
	Mode             Mode         `key:"mode" one:"observe enforce seal"`
	Guard            Guard        `key:"guard"`
	Hold             bool         `key:"hold"`                                                                                                 // stop a command in its connect while the question is open; else it gets EPERM at once
	Approver         string       `key:"approver" one:"person none"`                                                                           // Person or None
	Review           string       `key:"review" one:"egress exec"`                                                                             // AtEgress or AtExec; AtExec holds, so it needs Hold
	ApprovalTimeout  int          `key:"approval_timeout" was:"ask_seconds" number:"seconds 1 3600"`                                           // how long a question stays open
	ApprovalTTL      int          `key:"approval_ttl" was:"claim_seconds" number:"seconds 1 3600"`                                             // how long a late approval can be claimed by a retry
	Grant            Grant        `key:"grant"`                                                                                                // what one approval opens
	Allow            []Allow      `key:"allow"`                                                                                                // destinations that stay open while tainted
	Resolvers        []netip.Addr `key:"resolvers"`                                                                                            // name servers that a granted DNS question opens; empty: those of /etc/resolv.conf
	AllowUnixSockets []string     `key:"allow_unix_sockets" was:"unix_peers" list:"absolute paths or @abstract names" most:"64" each:"socket"` // outside the container, that stay reachable while tainted
	Taint            Taint        `key:"taint"`
	Events           Events       `key:"events"`
	Cop              Cop          `key:"cop"`
	Notify           Notify       `key:"notify" was:"announce"`
	Metrics          Metrics      `key:"metrics"`
	Control          Control      `key:"control"`
	Fleet            Fleet        `key:"fleet"`
	OTLP             OTLP         `key:"otlp"`
	Vault            Vault        `key:"vault"`
	Confirm          Confirm      `key:"confirm"`
	Containers       Containers   `key:"containers"`
	Volumes          Volumes      `key:"volumes"`
	Hooks            string       `key:"hooks" text:"accepted is the absolute path of a directory, or \"\" for none" check:"path"` // executables in it are asked before each tool call
	IPC              string       `key:"ipc" text:"accepted is the absolute path of a directory, or \"\" for none" check:"path"`   // folder for requests in containers, as they see it
}

// What becomes of taint in a directory that guarded containers share.
const (
	Propagate = "propagate" // it goes from who writes there to who reads
	Report    = "report"    // that it is shared is told
	Ignore    = "ignore"    // nothing
)

// Volumes says what becomes of taint in directories that guarded containers share.
type Volumes struct {
	Shared string   `key:"shared" one:"propagate report ignore"`
	Report []string `key:"report" list:"absolute paths of directories" most:"64" each:"path"` // of which, with all below, it is Report
	Ignore []string `key:"ignore" list:"absolute paths of directories" most:"64" each:"path"`
}

// Guard says which containers are guarded.
type Guard struct {
	// Cgroup paths below the cgroup root, with a leading slash; each child of one is a container.
	Parents []string `key:"parents" list:"cgroup paths such as /system.slice or names of slices" most:"64" each:"parent"`
	// Each is a container by itself: such a path, or the name of a systemd slice, scope or service.
	Cgroups []string `key:"cgroups" list:"cgroup paths such as /agents/one or names of slices, scopes and services" most:"64" each:"cgroup"`
}

// Grant bounds what one approval opens.
type Grant struct {
	Seconds int   `key:"seconds" number:"seconds 1 86400"`
	Bytes   int64 `key:"bytes" size:"1024GiB"` // upstream
}

// Taint says what taints.
type Taint struct {
	Initial         []string       `key:"initial" was:"at_start" list:"corruption, secret" most:"2" each:"bit"` // bits that every new container starts with
	SecretFiles     []SecretFile   `key:"secret_files"`                                                         // opening one sets secret
	Tools           []Tool         `key:"tools"`                                                                // what calls of tools set; the first whose name matches decides
	UntrustedTools  bool           `key:"untrusted_tools" was:"public_tools"`                                   // a call of a tool that is marked as a public source sets corruption, if no line of Tools matches
	Untrusted       bool           // packets to or from a network outside TrustedNetworks set corruption; set by the key trusted_networks, also when empty
	TrustedNetworks []netip.Prefix `key:"trusted_networks" was:"trusted"`
	ReplyBudget     int64          `key:"reply_budget" was:"answer_bytes" size:"1GiB"` // that the socket which caused that may still send
}

// Events says where events go.
type Events struct {
	File    string `key:"file" text:"accepted is an absolute path, or \"\" for standard output" check:"file"`
	MaxMiB  int    `key:"max_mib" number:"MiB 1 10240"`  // size at which File is rotated
	Backups int    `key:"backups" number:"files 1 1000"` // rotated files that are kept

	Also        string   `key:"also" one:"none stdout journal"`                                                     // where they go besides; nobody waits for that
	AlsoWithout []string `key:"also_without" list:"kinds of events such as exec and connect" most:"64" each:"kind"` // which do not go there
}

// Where events go besides their file; None is one too.
const (
	AlsoStdout  = "stdout"
	AlsoJournal = "journal" // systemd's, with fields
)

func (e *Events) check(p *parser, _ *yaml.Node, lines map[string]place) {
	if e.Also == AlsoStdout && e.File == "" {
		p.Fail(lines["also"], "events.also is stdout, where the events go anyway without events.file: write events.file: /var/log/weir/events.jsonl, or leave events.also out")
	}
}

// kinds are those of events, which a test compares.
var kinds = strings.Fields("exec connect hold verdict grant taint lost mode error start stop tool finding deny drop escape approval model")

func eventKind(s string) (string, string) {
	if !slices.Contains(kinds, s) {
		return s, "no kind of event" + suggest(s, kinds)
	}
	return s, ""
}

// Cop says who reviews commands, and within which limits (G13, G14). The key itself never stands in a policy.
type Cop struct {
	Reviewer     string `key:"reviewer" one:"static anthropic openai none"`
	Model        string `key:"model" word:"the name of a model"`                   // empty: the reviewer's default; OpenAI has none
	BaseURL      string `key:"base_url" word:"an http or https URL"`               // without user, query and fragment; empty: the service's own
	KeyFile      string `key:"key_file" word:"an absolute path"`                   // of the file that holds the key; or
	KeyEnv       string `key:"key_env" word:"the name of an environment variable"` // that holds it
	Flagged      string `key:"flagged" one:"deny person"`                          // Deny or Person: what follows with one taint bit; with both a person is asked always
	Seconds      int    `key:"seconds" number:"seconds 1 60"`                      // time limit of one review
	Concurrency  int    `key:"concurrency" number:"reviews 1 256"`                 // reviews at the same time
	CacheSeconds int    `key:"cache_seconds" number:"seconds 0 86400"`             // how long a verdict is kept; 0: not at all
	Grant        Grant  `key:"grant_"`                                             // what a verdict that lets out opens, as far as the policy's own Grant goes
}

// AskFlagged says whether a person is asked about what the reviewer flags, also with one taint bit.
func (c Cop) AskFlagged() bool { return c.Flagged == Person }

// Allow is a set of destinations: a network, or with Name what that name leads to.
type Allow struct {
	// In lower case, without a last dot; *.NAME is all below NAME; empty: Prefix alone counts.
	Name string `key:"name" text:"accepted is a name such as example.org or *.example.org" check:"name"`
	// Without host bits; IPv4 is never written as IPv4-mapped IPv6; with Name: where it may lead besides public addresses, or invalid.
	Prefix   netip.Prefix `key:"prefix"`
	Protocol string       `key:"protocol" one:"tcp udp any"`
	Ports    []PortRange  `key:"ports"` // empty: every port
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
		Events:          Events{MaxMiB: 100, Backups: 5, Also: None, AlsoWithout: []string{"exec"}},
		Cop:             Cop{Reviewer: Static, Flagged: Deny, Seconds: 5, Concurrency: 8, CacheSeconds: 300, Grant: Grant{Seconds: 30, Bytes: 4 << 20}},
		Notify:          Notify{Form: formJSON, Callback: Callback{Window: 300}},
		Metrics:         Metrics{Listen: MetricsUnix},
		Fleet:           Fleet{Prefix: "weir", Unknown: []string{"corruption", "secret"}},
		OTLP:            OTLP{MetricsSeconds: 60},
		Volumes:         Volumes{Shared: Propagate},
		Confirm:         Confirm{ApprovalExemptTools: []string{"mcp__browser__*"}},
	}
}
