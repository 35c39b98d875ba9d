package policy

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"weir/internal/cgroup"
)

// Bounds of lists: far above what people write, low enough for the kernel's maps.
const (
	maxParents   = 64
	maxAllow     = 1024
	maxPorts     = 256
	maxResolvers = 8
	maxUnixPeers = 64
)

// maxUnixPath is what a socket address holds, without the final zero byte.
const maxUnixPath = 107

// policy reads the whole file into out.
func (p *parser) policy(root *yaml.Node, out *Policy) {
	var allowLines []int
	p.mapping(root, "", []field{
		{"version", p.version},
		{"mode", p.one("mode", modes(), func(s string) { out.Mode = Mode(s) })},
		{"guard", func(n *yaml.Node) {
			p.mapping(n, "guard", []field{{"parents", func(n *yaml.Node) {
				p.texts(n, "guard.parents", "cgroup paths such as /system.slice or names of slices", maxParents, &out.Guard.Parents, parent)
			}}, {"cgroups", func(n *yaml.Node) {
				p.texts(n, "guard.cgroups", "cgroup paths such as /agents/one or names of slices, scopes and services", maxParents, &out.Guard.Cgroups, alone)
			}}})
		}},
		{"hold", p.truth("hold", &out.Hold)},
		{"approver", p.one("approver", []string{Person, None}, func(s string) { out.Approver = s })},
		{"review", p.one("review", []string{AtEgress, AtExec}, func(s string) { out.Review = s })},
		{"ask_seconds", p.number("ask_seconds", "seconds", 1, 3600, &out.AskSeconds)},
		{"claim_seconds", p.number("claim_seconds", "seconds", 1, 3600, &out.ClaimSeconds)},
		{"grant", func(n *yaml.Node) {
			p.mapping(n, "grant", []field{
				{"seconds", p.number("grant.seconds", "seconds", 1, 86400, &out.Grant.Seconds)},
				{"bytes", p.size("grant.bytes", 1<<40, &out.Grant.Bytes)},
			})
		}},
		{"allow", func(n *yaml.Node) { allowLines = p.allows(n, &out.Allow) }},
		{"resolvers", func(n *yaml.Node) { p.resolvers(n, &out.Resolvers) }},
		{"unix_peers", func(n *yaml.Node) {
			p.texts(n, "unix_peers", "absolute paths or @abstract names", maxUnixPeers, &out.UnixPeers, unixPeer)
		}},
		{"taint", func(n *yaml.Node) {
			p.mapping(n, "taint", []field{
				{"at_start", func(n *yaml.Node) {
					p.texts(n, "taint.at_start", "corruption, secret", 2, &out.Taint.AtStart, taintBit)
				}},
				{"secret_files", func(n *yaml.Node) { p.secretFiles(n, &out.Taint.SecretFiles) }},
				{"tools", func(n *yaml.Node) { p.tools(n, &out.Taint.Tools) }},
				{"public_tools", p.truth("taint.public_tools", &out.Taint.PublicTools)},
				{"trusted", func(n *yaml.Node) { p.trusted(n, &out.Taint) }},
				{"answer_bytes", p.size("taint.answer_bytes", 1<<30, &out.Taint.AnswerBytes)},
			})
		}},
		{"events", func(n *yaml.Node) {
			p.mapping(n, "events", []field{
				{"file", p.eventFile(&out.Events.File)},
				{"max_mib", p.number("events.max_mib", "MiB", 1, 10240, &out.Events.MaxMiB)},
				{"backups", p.number("events.backups", "files", 1, 1000, &out.Events.Backups)},
			})
		}},
		{"cop", func(n *yaml.Node) { p.cop(n, &out.Cop) }},
		{"announce", func(n *yaml.Node) { p.announce(n, &out.Announce) }},
		{"metrics", func(n *yaml.Node) {
			p.mapping(n, "metrics", []field{{"listen", p.metricsListen(&out.Metrics.Listen)}})
		}},
		{"vault", func(n *yaml.Node) { p.vault(n, &out.Vault) }},
		{"confirm", func(n *yaml.Node) { p.confirm(n, &out.Confirm) }},
		{"containers", func(n *yaml.Node) { p.containers(n, &out.Containers) }},
		{"hooks", p.directory("hooks", &out.Hooks)},
		{"ipc", p.directory("ipc", &out.IPC)},
	})
	if _, i, err := fold(out.Allow); err != nil {
		p.fail(allowLines[i], "%s", err)
	}
}

func (p *parser) version(n *yaml.Node) {
	if v, ok := integer(n); !ok || v != 1 {
		p.fail(n.Line, "version is %s: accepted is 1", kind(n))
	}
}

// parent checks a cgroup path, or finds that of a slice. The root is refused: its
// children are the whole host, the sensor among them.
func parent(s string) (string, string) {
	switch {
	case !strings.HasPrefix(s, "/") && strings.HasSuffix(s, ".slice"):
		return slice(s)
	case !strings.HasPrefix(s, "/") && (strings.HasSuffix(s, ".scope") || strings.HasSuffix(s, ".service")):
		return s, fmt.Sprintf("only a slice's name says where it is: write the path that systemctl show -P ControlGroup %s prints", s)
	case !strings.HasPrefix(s, "/"):
		return s, "a cgroup path starts with a slash, below the cgroup root; or name a slice"
	}
	return cgroupPath(s)
}

// alone checks a cgroup path, or the name of a unit, which is where systemd puts it.
func alone(s string) (string, string) {
	switch {
	case strings.HasPrefix(s, "/"):
		return cgroupPath(s)
	case !cgroup.Unit(s) || strings.ContainsRune(s, 0) || len(s) > 255:
		return s, "write a path with a leading slash, below the cgroup root, or the name of a slice, scope or service"
	case s == "-.slice" || s == "init.scope":
		return s, "that would guard the whole host, or what starts it: name another"
	}
	return s, ""
}

// cgroupPath checks a path below the cgroup root.
func cgroupPath(s string) (string, string) {
	switch {
	case s == "/" || path.Clean(s) == "/":
		return s, "the cgroup root would guard the whole host: name a slice below it"
	case strings.HasPrefix(s, "/sys/fs/cgroup/"):
		return s, fmt.Sprintf("leave the mount point out: write %q", strings.TrimPrefix(path.Clean(s), "/sys/fs/cgroup"))
	}
	return s, cleanPath(s, 4095)
}

// slice is the path of a slice that a policy may name.
func slice(name string) (string, string) {
	dir, err := cgroup.Slice(name)
	if err != nil || dir == "/" {
		return name, "not the name of a slice, such as user.slice or a-b.slice"
	}
	return dir, cleanPath(dir, 4095)
}

// cleanPath says what is wrong with an absolute path.
func cleanPath(s string, most int) string {
	switch {
	case !strings.HasPrefix(s, "/"):
		return "not an absolute path"
	case len(s) > most:
		return fmt.Sprintf("longer than %d bytes", most)
	case strings.ContainsRune(s, 0):
		return "a path has no zero bytes"
	case path.Clean(s) != s:
		return fmt.Sprintf("write it as %s", quote(path.Clean(s)))
	}
	return ""
}

func unixPeer(s string) (string, string) {
	if !strings.HasPrefix(s, "@") {
		if s == "/" {
			return s, "not a socket"
		}
		return s, cleanPath(s, maxUnixPath)
	}
	switch {
	case len(s) == 1:
		return s, "an abstract name has at least one byte after the @"
	case len(s) > maxUnixPath:
		return s, fmt.Sprintf("longer than %d bytes", maxUnixPath)
	case strings.ContainsRune(s, 0):
		return s, "a name with zero bytes is not accepted"
	}
	return s, ""
}

func taintBit(s string) (string, string) {
	bits := []string{"corruption", "secret"}
	if slices.Contains(bits, s) {
		return s, ""
	}
	return s, "unknown taint bit" + suggest(s, bits)
}

func (p *parser) eventFile(into *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		s, ok := text(n)
		if !ok {
			p.fail(n.Line, `events.file is %s: accepted is an absolute path, or "" for standard output`, kind(n))
			return
		}
		if s != "" {
			wrong := cleanPath(s, 4095)
			if wrong == "" && s == "/" {
				wrong = "not a file"
			}
			if wrong != "" {
				p.fail(n.Line, "events.file is %s: %s", quote(s), wrong)
				return
			}
		}
		*into = s
	}
}

// directory reads an absolute path, or "" for none.
func (p *parser) directory(where string, into *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		s, ok := text(n)
		if !ok {
			p.fail(n.Line, `%s is %s: accepted is the absolute path of a directory, or "" for none`, where, kind(n))
			return
		}
		if wrong := cleanPath(s, 4095); s != "" && wrong != "" {
			p.fail(n.Line, "%s is %s: %s", where, quote(s), wrong)
			return
		}
		*into = s
	}
}

func (p *parser) resolvers(n *yaml.Node, into *[]netip.Addr) {
	var names []string // to find duplicates
	p.texts(n, "resolvers", "IP addresses", maxResolvers, &names, func(s string) (string, string) {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return s, "not an IP address such as 192.0.2.53 or 2001:db8::53"
		}
		a = a.Unmap()
		if a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() {
			return s, "a name server is one host's address, without a zone"
		}
		*into = append(*into, a)
		return a.String(), ""
	})
}

// allows reads the list of destinations; it returns the line of each.
func (p *parser) allows(n *yaml.Node, into *[]Allow) (lines []int) {
	p.list(n, "allow", "mappings with prefix or name, protocol and ports", maxAllow, func(item *yaml.Node) {
		a := Allow{Protocol: Any}
		before := len(p.errs)
		found := p.mapping(item, "allow", []field{
			{"name", func(n *yaml.Node) { p.allowName(n, &a.Name) }},
			{"prefix", func(n *yaml.Node) { p.prefix(n, &a.Prefix) }},
			{"protocol", p.one("allow.protocol", []string{TCP, UDP, Any}, func(s string) { a.Protocol = s })},
			{"ports", func(n *yaml.Node) { p.ports(n, &a.Ports) }},
		})
		_, prefix := found["prefix"]
		if _, name := found["name"]; !prefix && !name && len(p.errs) == before {
			p.fail(item.Line, "allow has an item without prefix and name: write for example prefix: 192.0.2.0/24, or name: example.org")
		}
		if len(p.errs) > before {
			return
		}
		line := item.Line
		same := func(b Allow) bool {
			return a.Name == b.Name && a.Prefix == b.Prefix && a.Protocol == b.Protocol && slices.Equal(a.Ports, b.Ports)
		}
		if i := slices.IndexFunc(*into, same); i >= 0 {
			p.fail(line, "allow has %s twice with the same protocol and ports: it stands on line %d already", a, lines[i])
			return
		}
		*into = append(*into, a)
		lines = append(lines, line)
	})
	for i, a := range *into {
		if _, err := (Policy{Allow: *into}).nameRules(a.Name); err != nil {
			p.fail(lines[i], "%s", err)
			break
		}
	}
	return lines
}

func (p *parser) prefix(n *yaml.Node, into *netip.Prefix) {
	s, ok := text(n)
	if !ok {
		p.fail(n.Line, "allow.prefix is %s: accepted is a network such as 192.0.2.0/24 or 2001:db8::/32", kind(n))
		return
	}
	prefix, err := netip.ParsePrefix(s)
	if a, aerr := netip.ParseAddr(s); aerr == nil && a.Zone() == "" {
		prefix, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	if err != nil {
		p.fail(n.Line, "allow.prefix is %s: not a network such as 192.0.2.0/24 or 2001:db8::/32", quote(s))
		return
	}
	if a := prefix.Addr(); a.Is4In6() && prefix.Bits() >= 96 {
		prefix = netip.PrefixFrom(a.Unmap(), prefix.Bits()-96)
	}
	if m := prefix.Masked(); m != prefix {
		p.fail(n.Line, "allow.prefix %s has bits set after its first %d: did you mean %s?", s, prefix.Bits(), m)
		return
	}
	*into = prefix
}

// ports reads one port or range, or a list of them.
func (p *parser) ports(n *yaml.Node, into *[]PortRange) {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
		if len(items) == 0 || len(items) > maxPorts {
			p.fail(n.Line, "allow.ports has %d items: accepted are 1 to %d; leave the key out for every port", len(items), maxPorts)
			return
		}
	}
	for _, item := range items {
		r, ok := portRange(item)
		if !ok {
			p.fail(item.Line, "allow.ports has %s: accepted are ports from 1 to 65535 such as 443, and ranges such as 8000-8100", kind(item))
			return
		}
		if slices.Contains(*into, r) {
			p.fail(item.Line, "allow.ports has %s twice", r)
			return
		}
		*into = append(*into, r)
	}
}

func portRange(n *yaml.Node) (PortRange, bool) {
	if n.Kind != yaml.ScalarNode {
		return PortRange{}, false
	}
	low, high, isRange := strings.Cut(n.Value, "-")
	if !isRange {
		high = low
	}
	l, okLow := digits(strings.TrimSpace(low))
	h, okHigh := digits(strings.TrimSpace(high))
	if !okLow || !okHigh || l < 1 || l > h || h > 65535 {
		return PortRange{}, false
	}
	return PortRange{uint16(l), uint16(h)}, true
}
