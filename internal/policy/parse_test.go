package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var netips = cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{})

func TestDefault(t *testing.T) {
	want := Policy{
		Mode: "enforce", Hold: true, Approver: "person", Review: "egress", ApprovalTimeout: 300, ApprovalTTL: 300,
		Grant:  Grant{Seconds: 60, Bytes: 67108864},
		Taint:  Taint{Tools: []Tool{{Name: "mcp__browser__*", Taint: []string{"corruption"}}}, UntrustedTools: true, ReplyBudget: 65536},
		Events: Events{MaxMiB: 100, Backups: 5, Also: "none", AlsoWithout: []string{"exec"}},
		Cop:    Cop{Reviewer: "static", Flagged: "deny", Seconds: 5, Concurrency: 8, CacheSeconds: 300, Grant: Grant{Seconds: 30, Bytes: 4 << 20}},

		Notify:  Notify{Form: "json", Callback: Callback{Window: 300}},
		Metrics: Metrics{Listen: "unix"},
		OTLP:    OTLP{MetricsSeconds: 60},
		Fleet:   Fleet{Prefix: "weir", Unknown: []string{"corruption", "secret"}},
		Confirm: Confirm{ApprovalExemptTools: []string{"mcp__browser__*"}},
		Volumes: Volumes{Shared: "propagate"},
	}
	if diff := cmp.Diff(want, Default(), netips); diff != "" {
		t.Errorf("Default, want - got +\n%s", diff)
	}
	for _, text := range []string{"version: 1", "{}", "--- {}\n", "{}\n...\n", "\ufeffversion: 1\n"} {
		got, err := Parse("p", []byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got, netips); diff != "" {
			t.Errorf("%q, want - got +\n%s", text, diff)
		}
	}
}

func TestPolicyEveryKey(t *testing.T) {
	got, err := Parse("p", []byte(`
version: 1
mode: seal
guard:
  parents: [/guard.slice, "/kubepods.slice/kubepods-burstable.slice"]
hold: false
approver: none
review: exec
approval_timeout: 1
approval_ttl: 3600
grant:
  seconds: 86400
  bytes: 1 MiB
allow:
  - prefix: 10.0.0.0/8
  - prefix: 192.0.2.7
    protocol: tcp
    ports: 443
  - {prefix: "2001:db8::/32", protocol: udp, ports: [53, 8000-8100, "1 - 2"]}
  - {prefix: "::ffff:198.51.100.0/120", protocol: any, ports: "22"}
  - {prefix: "::ffff:0:0/96", ports: 1}
  - {prefix: "2001:db8::1"}
resolvers: [192.0.2.53, "2001:db8::53", "::ffff:192.0.2.54"]
allow_unix_sockets: [/run/x.sock, "@bus"]
taint:
  initial: [secret, corruption]
  secret_files: [/etc/shadow, ~/.ssh/, "**/.env"]
  tools:
    - {name: "mcp__*", taint: [secret]}
  untrusted_tools: false
  trusted_networks: [10.0.0.0/8, "2001:db8::/32", "::ffff:192.0.2.1"]
  reply_budget: 1MiB
events:
  file: /var/log/weir/events.log
  max_mib: 10240
  backups: 1
  also: journal
  also_without: [connect, drop]
cop:
  reviewer: openai
  model: some/model
  base_url: http://localhost:8000/v1
  key_env: COP_KEY
  flagged: person
  seconds: 10
  concurrency: 2
  cache_seconds: 60
  grant_seconds: 7
  grant_bytes: 1KiB
notify:
  form: json
  url: https://alerts.example.com/weir
  key_env: ANNOUNCE_KEY
  proxy: http://proxy.example.com:3128
  callback:
    listen: 127.0.0.1:8787
    exposed: true
    key_file: /k
    slack_key_env: SLACK_KEY
    users: [alice]
    window_seconds: 60
metrics:
  listen: 127.0.0.1:9464
fleet:
  node: build-07.example.org
  operators:
    - {name: alice, key: "3q2+7wABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhs=", roles: [answer, mode]}
    - {name: bob, key: "AQECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaG96tvu8=", roles: [answer]}
  two_people: true
  identity: true
  unknown: [secret]
  servers: ["tls://nats.example.org:4222", "nats://127.0.0.1:4222"]
  prefix: agents
  ca_file: /etc/weir/ca.pem
  creds_file: /etc/weir/fleet.seed
  revoked: ["AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaG96tvu8="]
otlp:
  endpoint: https://otel.example.org:4318
  headers_file: /etc/weir/headers
  ca_file: /etc/weir/ca.pem
  cert_file: /etc/weir/otel.crt
  key_file: /etc/weir/otel.key
  without: [exec]
  metrics_seconds: 15
vault:
  proxy: http://proxy.example.com:3128
confirm:
  approval_exempt_tools: [Write]
volumes:
  shared: report
  report: [/srv/a]
  ignore: [/srv/b, /srv/c]
`))
	if err != nil {
		t.Fatal(err)
	}
	prefix, addr := netip.MustParsePrefix, netip.MustParseAddr
	want := Policy{
		Mode: Seal, Approver: None, Review: AtExec, ApprovalTimeout: 1, ApprovalTTL: 3600,
		Guard: Guard{Parents: []string{"/guard.slice", "/kubepods.slice/kubepods-burstable.slice"}},
		Grant: Grant{Seconds: 86400, Bytes: 1 << 20},
		Allow: []Allow{
			{Prefix: prefix("10.0.0.0/8"), Protocol: Any},
			{Prefix: prefix("192.0.2.7/32"), Protocol: TCP, Ports: []PortRange{{443, 443}}},
			{Prefix: prefix("2001:db8::/32"), Protocol: UDP, Ports: []PortRange{{53, 53}, {8000, 8100}, {1, 2}}},
			{Prefix: prefix("198.51.100.0/24"), Protocol: Any, Ports: []PortRange{{22, 22}}},
			{Prefix: prefix("0.0.0.0/0"), Protocol: Any, Ports: []PortRange{{1, 1}}},
			{Prefix: prefix("2001:db8::1/128"), Protocol: Any},
		},
		Resolvers:        []netip.Addr{addr("192.0.2.53"), addr("2001:db8::53"), addr("192.0.2.54")},
		AllowUnixSockets: []string{"/run/x.sock", "@bus"},
		Taint: Taint{
			Initial:     []string{"secret", "corruption"},
			SecretFiles: []SecretFile{{"/etc/shadow", "/etc", "shadow"}, {"~/.ssh/", "~/.ssh", ""}, {"**/.env", "", ".env"}},
			Tools:       []Tool{{"mcp__*", []string{"secret"}}},
			Untrusted:   true, TrustedNetworks: []netip.Prefix{prefix("10.0.0.0/8"), prefix("2001:db8::/32"), prefix("192.0.2.1/32")}, ReplyBudget: 1 << 20,
		},
		Events: Events{File: "/var/log/weir/events.log", MaxMiB: 10240, Backups: 1, Also: "journal", AlsoWithout: []string{"connect", "drop"}},
		Cop:    Cop{OpenAI, "some/model", "http://localhost:8000/v1", "", "COP_KEY", "person", 10, 2, 60, Grant{7, 1024}},
		Notify: Notify{
			Form: formJSON, URL: "https://alerts.example.com/weir", KeyEnv: "ANNOUNCE_KEY", Proxy: "http://proxy.example.com:3128",
			Callback: Callback{Listen: "127.0.0.1:8787", Exposed: true, KeyFile: "/k", SlackKeyEnv: "SLACK_KEY", Users: []string{"alice"}, Window: 60},
		},
		Metrics: Metrics{Listen: "127.0.0.1:9464"},
		OTLP:    OTLP{Endpoint: "https://otel.example.org:4318", HeadersFile: "/etc/weir/headers", CAFile: "/etc/weir/ca.pem", CertFile: "/etc/weir/otel.crt", KeyFile: "/etc/weir/otel.key", Without: []string{"exec"}, MetricsSeconds: 15},
		Fleet: Fleet{
			Node: "build-07.example.org", Operators: []Operator{{"alice", "3q2+7wABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhs=", []string{"answer", "mode"}}, {"bob", "AQECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaG96tvu8=", []string{"answer"}}}, TwoPeople: true,
			Identity: true, Unknown: []string{"secret"},
			Servers: []string{"tls://nats.example.org:4222", "nats://127.0.0.1:4222"}, Prefix: "agents", CAFile: "/etc/weir/ca.pem", CredsFile: "/etc/weir/fleet.seed",
			Revoked: []string{"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaG96tvu8="},
		},
		Vault:   Vault{Proxy: "http://proxy.example.com:3128"},
		Confirm: Confirm{ApprovalExemptTools: []string{"Write"}},
		Volumes: Volumes{"report", []string{"/srv/a"}, []string{"/srv/b", "/srv/c"}},
	}
	if diff := cmp.Diff(want, got, netips); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

const allKeys = "version, mode, guard, hold, approver, review, approval_timeout, approval_ttl, grant, allow, resolvers, allow_unix_sockets, taint, events, cop, notify, metrics, control, fleet, otlp, vault, confirm, containers, volumes, hooks, ipc"

// TestBadInput: the "Bad input": one clear line says where, what, and what is accepted.
func TestBadInput(t *testing.T) {
	long := "/" + strings.Repeat("x", 107)
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", `p:1:1: the file is empty: write at least "version: 1"`},
		{"only comments", "# nothing\n\n", `p:1:1: the file is empty: write at least "version: 1"`},
		{"null", "~\n", `p:1:1: the file is empty: write at least "version: 1"`},
		{"list", "- mode", `p:1:1: the file is a list: accepted is a mapping of ` + allKeys},
		{"text", "mode", `p:1:1: the file is "mode": accepted is a mapping of ` + allKeys},
		{"two documents", "version: 1\n---\nversion: 1\n", `p:2:1: a second document starts here: a policy is one document`},
		{"broken YAML after it", "version: 1\n---\n[\n", `p:3:1: the "[" that opens here is not closed: write "]" after its last item`},
		{"broken YAML", "guard:\n  parents: [/a\n", `p:2:12: the "[" that opens here is not closed: write "]" after its last item`},
		{"broken first line", "mode: seal: x", `p:1:11: there is a second ": " on this line: begin a new line for another key, or put the value in quotes`},
		{"broken third line", "version: 1\nguard:\n  a: b: c\n", `p:3:7: there is a second ": " on this line: begin a new line for another key, or put the value in quotes`},
		{"wrong indentation", "guard:\n  parents: []\n hold: true\nversion: 1", `p:3:2: the indentation of this line fits none of the lines above: begin it below the key or the item that it belongs to`},
		{"tab", "guard:\n\tparents: []\n", `p:2:1: a tab stands in the indentation: indent with spaces`},
		{"control character", "mode: \x01", `p:1:7: the control character U+0001 is not accepted: remove it, or name a file of text`},
		{"not UTF-8", "mode: seal\n# \xff\n", `p:2:3: not UTF-8 text: save the file as UTF-8`},
		{"anchor", "mode: &m seal", `p:1:7: anchors and aliases are not accepted: write the value out`},
		{"alias bomb", "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]", `p:1:4: anchors and aliases are not accepted: write the value out`},
		{"unknown alias", "version: 1\nmode: *m", `p:2:7: a text cannot begin with "*": put it in quotes, such as "*m"`},
		{"merge key", "version: 1\n<<: {mode: seal}", `p:2:1: unknown key "<<": accepted are ` + allKeys},
		{"deep", "mode: " + strings.Repeat("[", 30) + strings.Repeat("]", 30), `p:1:23: values are nested deeper than 16 levels: no key needs that`},

		{"unknown key", "version: 1\nguard:\n  parnets: [/a]", `p:3:3: unknown key "parnets" in guard: did you mean "parents"?`},
		{"unknown key at the top", "mdoe: seal", `p:1:1: unknown key "mdoe": did you mean "mode"?`},
		{"key in capitals", "Mode: seal", `p:1:1: unknown key "Mode": did you mean "mode"?`},
		{"old key announce", "announce: {}", `p:1:1: unknown key "announce": did you mean "notify"?`},
		{"old key claim_seconds", "claim_seconds: 9", `p:1:1: unknown key "claim_seconds": did you mean "approval_ttl"?`},
		{"old key ask_seconds", "ask_seconds: 9", `p:1:1: unknown key "ask_seconds": did you mean "approval_timeout"?`},
		{"old key unix_peers", "unix_peers: []", `p:1:1: unknown key "unix_peers": did you mean "allow_unix_sockets"?`},
		{"old key at_start", "taint: {at_start: []}", `p:1:9: unknown key "at_start" in taint: did you mean "initial"?`},
		{"old key trusted", "taint: {trusted: []}", `p:1:9: unknown key "trusted" in taint: did you mean "trusted_networks"?`},
		{"old key public_tools", "taint: {public_tools: true}", `p:1:9: unknown key "public_tools" in taint: did you mean "untrusted_tools"?`},
		{"old key answer_bytes", "taint: {answer_bytes: 0}", `p:1:9: unknown key "answer_bytes" in taint: did you mean "reply_budget"?`},
		{"old key except", "confirm: {except: []}", `p:1:11: unknown key "except" in confirm: did you mean "approval_exempt_tools"?`},
		{"unlike any key", "colour: red", `p:1:1: unknown key "colour": accepted are ` + allKeys},
		{"key that hides", "mode\u200b: seal", `p:1:1: unknown key "mode\u200b": did you mean "mode"?`},
		{"key that is no text", "1: seal", `p:1:1: unknown key "1": accepted are ` + allKeys},
		{"key that is a list", "[mode]: seal", `p:1:1: a key is a list: write one word`},
		{"long key", strings.Repeat("k", 70) + ": 1", `p:1:1: unknown key "` + strings.Repeat("k", 64) + `"…: accepted are ` + allKeys},
		{"key twice", "mode: seal\nhold: true\nmode: observe", `p:3:1: key "mode" is set twice: it stands on line 1 already`},
		{"inner key twice", "grant: {seconds: 1, seconds: 2}", `p:1:21: key "seconds" in grant is set twice: it stands on line 1 already`},

		{"version", "version: 2", `p:1:10: version is "2": accepted is 1`},
		{"version as text", `version: "1"`, `p:1:10: version is "1": accepted is 1, without quotes`},
		{"mode", "mode: enforced", `p:1:7: mode is "enforced": did you mean "enforce"?`},
		{"mode off", "mode: off", `p:1:7: mode is "off": accepted are observe, enforce, seal`},
		{"mode empty", "mode:", `p:1:6: mode is empty: accepted are observe, enforce, seal`},
		{"mode list", "mode: [seal]", `p:1:7: mode is a list: accepted are observe, enforce, seal`},
		{"hold", "hold: yes", `p:1:7: hold is "yes": accepted are true and false`},
		{"hold as text", `hold: "true"`, `p:1:7: hold is "true": accepted are true and false, without quotes`},
		{"approver", "approver: {}", `p:1:11: approver is a mapping: accepted are person, none`},
		{"guard empty", "guard:", `p:1:7: guard is empty: accepted is a mapping of parents, cgroups`},
		{"cgroup relative", "guard: {cgroups: [a/b]}", `p:1:19: guard.cgroups has "a/b": write a path with a leading slash, below the cgroup root, or the name of a slice, scope or service`},
		{"cgroup no unit", "guard: {cgroups: [a.timer]}", `p:1:19: guard.cgroups has "a.timer": write a path with a leading slash, below the cgroup root, or the name of a slice, scope or service`},
		{"cgroup init", "guard: {cgroups: [init.scope]}", `p:1:19: guard.cgroups has "init.scope": that would guard the whole host, or what starts it: name another`},
		{"cgroup root", "guard: {cgroups: [/]}", `p:1:19: guard.cgroups has "/": the cgroup root would guard the whole host: name a slice below it`},
		{"cgroup mount", "guard: {cgroups: [/sys/fs/cgroup/a]}", `p:1:19: guard.cgroups has "/sys/fs/cgroup/a": leave the mount point out: write "/a"`},
		{"parents empty", "guard: {parents: }", `p:1:18: guard.parents is empty: accepted is a list of cgroup paths such as /system.slice or names of slices, [] for none`},
		{"parents text", "guard: {parents: /a}", `p:1:18: guard.parents is "/a": accepted is a list of cgroup paths such as /system.slice or names of slices, [] for none`},
		{"parents number", "guard: {parents: [1]}", `p:1:19: guard.parents has "1": accepted are cgroup paths such as /system.slice or names of slices`},
		{"parent relative", "guard: {parents: [a]}", `p:1:19: guard.parents has "a": a cgroup path starts with a slash, below the cgroup root; or name a slice`},
		{"parent scope", "guard: {parents: [session-3.scope]}", `p:1:19: guard.parents has "session-3.scope": only a slice's name says where it is: write the path that systemctl show -P ControlGroup session-3.scope prints`},
		{"parent service", "guard: {parents: [a.service]}", `p:1:19: guard.parents has "a.service": only a slice's name says where it is: write the path that systemctl show -P ControlGroup a.service prints`},
		{"parent root slice", "guard: {parents: [-.slice]}", `p:1:19: guard.parents has "-.slice": not the name of a slice, such as user.slice or a-b.slice`},
		{"parent no slice", "guard: {parents: [a--b.slice]}", `p:1:19: guard.parents has "a--b.slice": not the name of a slice, such as user.slice or a-b.slice`},
		{"parent path of a slice", "guard: {parents: [a/b.slice]}", `p:1:19: guard.parents has "a/b.slice": not the name of a slice, such as user.slice or a-b.slice`},
		{"parent slice twice", "guard:\n  parents:\n  - a-b.slice\n  - /a.slice/a-b.slice", `p:4:5: guard.parents has "/a.slice/a-b.slice" twice: it stands on line 3 already`},
		{"parent root", "guard: {parents: [/]}", `p:1:19: guard.parents has "/": the cgroup root would guard the whole host: name a slice below it`},
		{"parent hidden root", "guard: {parents: [/a/..]}", `p:1:19: guard.parents has "/a/..": the cgroup root would guard the whole host: name a slice below it`},
		{"parent mount", "guard: {parents: [/sys/fs/cgroup/a]}", `p:1:19: guard.parents has "/sys/fs/cgroup/a": leave the mount point out: write "/a"`},
		{"parent unclean", "guard: {parents: [/a/../b/]}", `p:1:19: guard.parents has "/a/../b/": write it as "/b"`},
		{"parent twice", "guard:\n  parents:\n  - /a\n  - /a", `p:4:5: guard.parents has "/a" twice: it stands on line 3 already`},
		{"parents many", "guard: {parents: [" + strings.Repeat("/a,", 65) + "]}", `p:1:18: guard.parents has 65 items: at most 64 are accepted`},
		{"ask zero", "approval_timeout: 0", `p:1:19: approval_timeout is "0": accepted are seconds from 1 to 3600`},
		{"ask high", "approval_timeout: 3601", `p:1:19: approval_timeout is "3601": accepted are seconds from 1 to 3600`},
		{"ask unit", "approval_timeout: 5m", `p:1:19: approval_timeout is "5m": accepted are seconds from 1 to 3600`},
		{"ask octal", "approval_timeout: 010", `p:1:19: approval_timeout is "010": accepted are seconds from 1 to 3600`},
		{"ask hexadecimal", "approval_timeout: 0x10", `p:1:19: approval_timeout is "0x10": accepted are seconds from 1 to 3600`},
		{"ask underscore", "approval_timeout: 1_0", `p:1:19: approval_timeout is "1_0": accepted are seconds from 1 to 3600`},
		{"ask huge", "approval_timeout: 99999999999999999999", `p:1:19: approval_timeout is "99999999999999999999": accepted are seconds from 1 to 3600`},
		{"claim negative", "approval_ttl: -1", `p:1:15: approval_ttl is "-1": accepted are seconds from 1 to 3600`},
		{"events also", "events: {also: syslog}", `p:1:16: events.also is "syslog": accepted are none, stdout, journal`},
		{"events twice", "events: {also: stdout}", `p:1:10: events.also is stdout, where the events go anyway without events.file: write events.file: /var/log/weir/events.jsonl, or leave events.also out`},
		{"events without", "events: {also_without: [exce]}", `p:1:25: events.also_without has "exce": no kind of event: did you mean "exec"?`},
		{"grant seconds", "grant: {seconds: 86401}", `p:1:18: grant.seconds is "86401": accepted are seconds from 1 to 86400`},
		{"grant bytes zero", "grant: {bytes: 0}", `p:1:16: grant.bytes is "0": accepted are bytes from 1 to 1099511627776, also as 64KiB, 64MiB or 1GiB`},
		{"grant bytes unit", "grant: {bytes: 64MB}", `p:1:16: grant.bytes is "64MB": accepted are bytes from 1 to 1099511627776, also as 64KiB, 64MiB or 1GiB`},
		{"grant bytes wrap", "grant: {bytes: 17179869184GiB}", `p:1:16: grant.bytes is "17179869184GiB": accepted are bytes from 1 to 1099511627776, also as 64KiB, 64MiB or 1GiB`},
		{"grant bytes negative", "grant: {bytes: -1KiB}", `p:1:16: grant.bytes is "-1KiB": accepted are bytes from 1 to 1099511627776, also as 64KiB, 64MiB or 1GiB`},

		{"allow mapping", "allow: {}", `p:1:8: allow is a mapping: accepted is a list of mappings with prefix or name, protocol and ports, [] for none`},
		{"allow text", "allow: [10.0.0.0/8]", `p:1:9: allow is "10.0.0.0/8": accepted is a mapping of name, prefix, protocol, ports`},
		{"allow nothing", "allow:\n- protocol: tcp", `p:2:3: allow has an item without prefix and name: write for example prefix: 192.0.2.0/24, or name: example.org`},
		{"host bits", "allow: [{prefix: 10.1.2.3/8}]", `p:1:18: allow.prefix is "10.1.2.3/8": it has bits set after its first 8: did you mean 10.0.0.0/8?`},
		{"host bits in IPv6", "allow: [{prefix: '2001:db8::1/32'}]", `p:1:18: allow.prefix is "2001:db8::1/32": it has bits set after its first 32: did you mean 2001:db8::/32?`},
		{"host bits in mapped", "allow: [{prefix: '::ffff:10.1.2.3/104'}]", `p:1:18: allow.prefix is "::ffff:10.1.2.3/104": it has bits set after its first 8: did you mean 10.0.0.0/8?`},
		{"mapped and shorter", "allow: [{prefix: '::ffff:0:0/90'}]", `p:1:18: allow.prefix is "::ffff:0:0/90": it has bits set after its first 90: did you mean ::ffc0:0:0/90?`},
		{"name", "allow: [{prefix: example.com}]", `p:1:18: allow.prefix is "example.com": not a network such as 192.0.2.0/24 or 2001:db8::/32`},
		{"zone", "allow: [{prefix: 'fe80::1%eth0'}]", `p:1:18: allow.prefix is "fe80::1%eth0": not a network such as 192.0.2.0/24 or 2001:db8::/32`},
		{"prefix number", "allow: [{prefix: 10}]", `p:1:18: allow.prefix is "10": accepted is a network such as 192.0.2.0/24 or 2001:db8::/32`},
		{"prefix length", "allow: [{prefix: 10.0.0.0/33}]", `p:1:18: allow.prefix is "10.0.0.0/33": not a network such as 192.0.2.0/24 or 2001:db8::/32`},
		{"protocol", "allow: [{prefix: 10.0.0.0/8, protocol: icmp}]", `p:1:40: allow.protocol is "icmp": accepted are tcp, udp, any`},
		{"port zero", "allow: [{prefix: 10.0.0.0/8, ports: 0}]", `p:1:37: allow.ports has "0": accepted are ports from 1 to 65535 such as 443, and ranges such as 8000-8100`},
		{"port high", "allow: [{prefix: 10.0.0.0/8, ports: [1, 65536]}]", `p:1:41: allow.ports has "65536": accepted are ports from 1 to 65535 such as 443, and ranges such as 8000-8100`},
		{"port name", "allow: [{prefix: 10.0.0.0/8, ports: https}]", `p:1:37: allow.ports has "https": accepted are ports from 1 to 65535 such as 443, and ranges such as 8000-8100`},
		{"port backwards", "allow: [{prefix: 10.0.0.0/8, ports: 20-10}]", `p:1:37: allow.ports has "20-10": accepted are ports from 1 to 65535 such as 443, and ranges such as 8000-8100`},
		{"port open range", "allow: [{prefix: 10.0.0.0/8, ports: 20-}]", `p:1:37: allow.ports has "20-": accepted are ports from 1 to 65535 such as 443, and ranges such as 8000-8100`},
		{"port mapping", "allow: [{prefix: 10.0.0.0/8, ports: [{}]}]", `p:1:38: allow.ports has a mapping: accepted are ports from 1 to 65535 such as 443, and ranges such as 8000-8100`},
		{"ports none", "allow: [{prefix: 10.0.0.0/8, ports: []}]", `p:1:37: allow.ports has 0 items: accepted are 1 to 256; leave the key out for every port`},
		{"ports empty", "allow: [{prefix: 10.0.0.0/8, ports: }]", `p:1:37: allow.ports has empty: accepted are ports from 1 to 65535 such as 443, and ranges such as 8000-8100`},
		{"port twice", "allow: [{prefix: 10.0.0.0/8, ports: [1, 1-1]}]", `p:1:41: allow.ports has 1 twice`},
		{"allow twice", "allow:\n- {prefix: 10.0.0.0/8}\n- {protocol: any, prefix: '::ffff:10.0.0.0/104'}", `p:3:3: allow has 10.0.0.0/8 twice with the same protocol and ports: it stands on line 2 already`},
		{"too many rules", "allow:\n- prefix: 10.0.0.0/8\n  ports: [1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31]\n- prefix: 10.1.0.0/16\n  ports: 33", `p:4:3: allow.ports: 17 port ranges are open in 10.1.0.0/16, at most 16 are accepted: use wider ranges`},

		{"resolver name", "resolvers: [dns]", `p:1:13: resolvers has "dns": not an IP address such as 192.0.2.53 or 2001:db8::53`},
		{"resolver port", "resolvers: ['192.0.2.53:53']", `p:1:13: resolvers has "192.0.2.53:53": not an IP address such as 192.0.2.53 or 2001:db8::53`},
		{"resolver zone", "resolvers: ['fe80::1%eth0']", `p:1:13: resolvers has "fe80::1%eth0": a name server is one host's address, without a zone`},
		{"resolver any", "resolvers: [0.0.0.0]", `p:1:13: resolvers has "0.0.0.0": a name server is one host's address, without a zone`},
		{"resolver twice", "resolvers: [192.0.2.53, '::ffff:192.0.2.53']", `p:1:25: resolvers has "192.0.2.53" twice: it stands on line 1 already`},
		{"peer relative", "allow_unix_sockets: [x.sock]", `p:1:22: allow_unix_sockets has "x.sock": not an absolute path: begin it with a slash`},
		{"peer root", "allow_unix_sockets: [/]", `p:1:22: allow_unix_sockets has "/": not a socket`},
		{"peer unclean", "allow_unix_sockets: [//run/x]", `p:1:22: allow_unix_sockets has "//run/x": write it as "/run/x"`},
		{"peer empty", "allow_unix_sockets: ['@']", `p:1:22: allow_unix_sockets has "@": an abstract name has at least one byte after the @`},
		{"peer long", "allow_unix_sockets: [" + long + "]", `p:1:22: allow_unix_sockets has "` + long[:64] + `"…: longer than 107 bytes: choose a shorter one`},
		{"abstract long", "allow_unix_sockets: ['@" + long[1:] + "']", `p:1:22: allow_unix_sockets has "@` + long[1:64] + `"…: longer than 107 bytes: choose a shorter one`},
		{"peer zero byte", `allow_unix_sockets: ["/a\0b"]`, `p:1:22: allow_unix_sockets has "/a\x00b": a path has no zero bytes`},
		{"abstract zero byte", `allow_unix_sockets: ["@a\0b"]`, `p:1:22: allow_unix_sockets has "@a\x00b": a name with zero bytes is not accepted`},
		{"taint bit", "taint: {initial: [secrets]}", `p:1:19: taint.initial has "secrets": unknown taint bit: did you mean "secret"?`},
		{"taint bit twice", "taint: {initial: [secret, secret]}", `p:1:27: taint.initial has "secret" twice: it stands on line 1 already`},
		{"events file relative", "events: {file: x.log}", `p:1:16: events.file is "x.log": not an absolute path: begin it with a slash`},
		{"events file root", "events: {file: /}", `p:1:16: events.file is "/": not a file`},
		{"events file empty", "events: {file: }", `p:1:16: events.file is empty: accepted is an absolute path, or "" for standard output`},
		{"events size", "events: {max_mib: 0}", `p:1:19: events.max_mib is "0": accepted are MiB from 1 to 10240`},
		{"events backups", "events: {backups: 1001}", `p:1:19: events.backups is "1001": accepted are files from 1 to 1000`},
	} {
		got, err := Parse("p", []byte(c.text))
		if diff := cmp.Diff(c.want, fmt.Sprint(err)); diff != "" {
			t.Errorf("%s, want - got +\n%s", c.name, diff)
		}
		if diff := cmp.Diff(Policy{}, got, netips); diff != "" {
			t.Errorf("%s: a refused file gives a policy:\n%s", c.name, diff)
		}
		var e *Error
		if !errors.As(err, &e) || e.File != "p" {
			t.Errorf("%s: no *Error of the file in %v", c.name, err)
		}
	}
}

func TestAllMistakesAtOnce(t *testing.T) {
	_, err := Parse("policy.yaml", []byte("allow:\n- {prefix: '::/0', port: 1}\nhold: on\nmode: sael\n"))
	want := `policy.yaml:2:20: unknown key "port" in allow: did you mean "ports"?
policy.yaml:3:7: hold is "on": accepted are true and false
policy.yaml:4:7: mode is "sael": did you mean "seal"?`
	if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	_, err = Parse("p", []byte(strings.Repeat("x: 1\n", 50)))
	lines := strings.Split(fmt.Sprint(err), "\n")
	if len(lines) != 21 || lines[20] != "p: 30 more mistakes are not shown" {
		t.Errorf("%d lines, the last: %s", len(lines), lines[len(lines)-1])
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "policy.yaml")
	for _, c := range []struct{ text, want string }{
		{"mode: seal\n", "<nil>"},
		{"mode: x\n", "DIR/policy.yaml:1:7: mode is \"x\": accepted are observe, enforce, seal"},
		{strings.Repeat("#", MaxFile+1), "DIR/policy.yaml: the file has more than 1048576 bytes: a policy needs far less"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := Load(path)
		if got := strings.ReplaceAll(fmt.Sprint(err), dir, "DIR"); got != c.want {
			t.Errorf("Load: %s, want %s", got, c.want)
		}
		if err == nil && p.Mode != Seal {
			t.Errorf("Load: mode %s, want seal", p.Mode)
		}
	}
	if _, err := Load(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load of an absent file: %v", err)
	}
	if _, err := Load(dir); err == nil {
		t.Errorf("Load of a directory: %v", err)
	}
}

func TestParseMode(t *testing.T) {
	for in, want := range map[string]string{
		"observe": "<nil>", "enforce": "<nil>", "seal": "<nil>",
		"":      `unknown mode "": accepted are observe, enforce, seal`,
		"Seal":  `unknown mode "Seal": did you mean "seal"?`,
		"seale": `unknown mode "seale": did you mean "seal"?`,
	} {
		m, err := ParseMode(in)
		if fmt.Sprint(err) != want || err == nil && string(m) != in || err != nil && m != "" {
			t.Errorf("ParseMode(%q) = %q, %v, want %s", in, m, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	example, err := os.ReadFile("../../deploy/policy.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	for _, s := range []string{"version: 1", "allow: [{prefix: ::/0}, {prefix: 10.0.0.0/8, ports: [1, 2-3]}]", "a: &x [1]\nb: *x", "mode:\n- x: {", "\xff", "? [a]\n: !!binary b", "!!str mode: |\n seal"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("p", data)
		if err != nil {
			if !cmp.Equal(p, Policy{}, netips) {
				t.Errorf("a refused file gives %+v", p)
			}
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "p:") || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }) {
					t.Errorf("not a clear line: %q", line)
				}
			}
			return
		}
		if _, err := ParseMode(string(p.Mode)); err != nil || p.ApprovalTimeout < 1 || p.ApprovalTTL < 1 || p.Grant.Bytes < 1 || p.Grant.Seconds < 1 || p.Events.MaxMiB < 1 || p.Events.Backups < 1 ||
			p.Cop.Reviewer == "" || p.Cop.Flagged != Deny && p.Cop.Flagged != Person || p.Cop.Seconds < 1 || p.Cop.Concurrency < 1 || p.Cop.CacheSeconds < 0 {
			t.Errorf("accepted %+v", p)
		}
		checkFold(t, p)
	})
}

// A slice's name says where its cgroup is.
func TestSlices(t *testing.T) {
	p, err := Parse("p", []byte("version: 1\nguard:\n  parents: [user.slice, machine.slice, kubepods-burstable.slice, kubepods-burstable-pod1.slice, 'a\\x2db.slice']\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"/user.slice", "/machine.slice", "/kubepods.slice/kubepods-burstable.slice",
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice", `/a\x2db.slice`,
	}
	if diff := cmp.Diff(want, p.Guard.Parents); diff != "" {
		t.Error("parents (-want +got):\n" + diff)
	}
}

// A number of bytes is one with a unit, or without.
func TestParseBytes(t *testing.T) {
	for s, want := range map[string]int64{"1000000": 1000000, "64KiB": 64 << 10, "64 MiB": 64 << 20, "1GiB": 1 << 30, "": -1, "64MB": -1, "1e6": -1, "+5": -1, "007": -1, "-1KiB": -1, "x": -1} {
		if got, ok := ParseBytes(s); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %d %t", s, got, ok)
		}
	}
}
