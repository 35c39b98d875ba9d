package policy

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"weir/internal/linux"
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
	var allowLines []place
	var parents, cgroups map[string]place
	guard := at(root)
	p.Mapping(root, "", []yamlField{
		{Key: "version", Read: p.version},
		{Key: "mode", Read: p.One("mode", modes(), func(s string) { out.Mode = Mode(s) })},
		{Key: "guard", Read: func(n *yaml.Node) {
			guard = at(n)
			p.Mapping(n, "guard", []yamlField{{Key: "parents", Read: func(n *yaml.Node) {
				parents = p.Texts(n, "guard.parents", "cgroup paths such as /system.slice or names of slices", maxParents, &out.Guard.Parents, parent)
			}}, {Key: "cgroups", Read: func(n *yaml.Node) {
				cgroups = p.Texts(n, "guard.cgroups", "cgroup paths such as /agents/one or names of slices, scopes and services", maxParents, &out.Guard.Cgroups, alone)
			}}})
		}},
		{Key: "hold", Read: p.Truth("hold", &out.Hold)},
		{Key: "approver", Read: p.One("approver", []string{Person, None}, func(s string) { out.Approver = s })},
		{Key: "review", Read: p.One("review", []string{AtEgress, AtExec}, func(s string) { out.Review = s })},
		{Key: "approval_timeout", Was: "ask_seconds", Read: p.Number("approval_timeout", "seconds", 1, 3600, &out.ApprovalTimeout)},
		{Key: "approval_ttl", Was: "claim_seconds", Read: p.Number("approval_ttl", "seconds", 1, 3600, &out.ApprovalTTL)},
		{Key: "grant", Read: func(n *yaml.Node) {
			p.Mapping(n, "grant", []yamlField{
				{Key: "seconds", Read: p.Number("grant.seconds", "seconds", 1, 86400, &out.Grant.Seconds)},
				{Key: "bytes", Read: p.Size("grant.bytes", 1<<40, &out.Grant.Bytes)},
			})
		}},
		{Key: "allow", Read: func(n *yaml.Node) { allowLines = p.allows(n, &out.Allow) }},
		{Key: "resolvers", Read: func(n *yaml.Node) { p.resolvers(n, &out.Resolvers) }},
		{Key: "allow_unix_sockets", Was: "unix_peers", Read: func(n *yaml.Node) {
			p.Texts(n, "allow_unix_sockets", "absolute paths or @abstract names", maxUnixPeers, &out.AllowUnixSockets, unixPeer)
		}},
		{Key: "taint", Read: func(n *yaml.Node) {
			p.Mapping(n, "taint", []yamlField{
				{Key: "initial", Was: "at_start", Read: func(n *yaml.Node) {
					p.Texts(n, "taint.initial", "corruption, secret", 2, &out.Taint.Initial, taintBit)
				}},
				{Key: "secret_files", Read: func(n *yaml.Node) { p.secretFiles(n, &out.Taint.SecretFiles) }},
				{Key: "tools", Read: func(n *yaml.Node) { p.tools(n, &out.Taint.Tools) }},
				{Key: "untrusted_tools", Was: "public_tools", Read: p.Truth("taint.untrusted_tools", &out.Taint.UntrustedTools)},
				{Key: "trusted_networks", Was: "trusted", Read: func(n *yaml.Node) { p.trusted(n, &out.Taint) }},
				{Key: "reply_budget", Was: "answer_bytes", Read: p.Size("taint.reply_budget", 1<<30, &out.Taint.ReplyBudget)},
			})
		}},
		{Key: "events", Read: func(n *yaml.Node) {
			p.Mapping(n, "events", []yamlField{
				{Key: "file", Read: p.eventFile(&out.Events.File)},
				{Key: "max_mib", Read: p.Number("events.max_mib", "MiB", 1, 10240, &out.Events.MaxMiB)},
				{Key: "backups", Read: p.Number("events.backups", "files", 1, 1000, &out.Events.Backups)},
			})
		}},
		{Key: "cop", Read: func(n *yaml.Node) { p.cop(n, &out.Cop) }},
		{Key: "notify", Was: "announce", Read: func(n *yaml.Node) { p.notify(n, &out.Notify) }},
		{Key: "metrics", Read: func(n *yaml.Node) { p.metrics(n, &out.Metrics) }},
		{Key: "control", Read: func(n *yaml.Node) { p.control(n, &out.Control) }},
		{Key: "vault", Read: func(n *yaml.Node) { p.vault(n, &out.Vault) }},
		{Key: "confirm", Read: func(n *yaml.Node) { p.confirm(n, &out.Confirm) }},
		{Key: "containers", Read: func(n *yaml.Node) { p.containers(n, &out.Containers) }},
		{Key: "hooks", Read: p.directory("hooks", &out.Hooks)},
		{Key: "ipc", Read: p.directory("ipc", &out.IPC)},
	})
	if _, i, err := fold(out.Allow); err != nil {
		p.Fail(allowLines[i], "%s", err)
	}
	p.apart(out.Guard, parents, cgroups)
	p.noteOverlaps(out.Allow, allowLines)
	p.noteGuarded(guard, parents, cgroups)
}

// apart refuses a cgroup by itself that is within a guarded parent or another such cgroup, or has a parent in it: each is one container, and
// what is in two would have the taint of both.
func (p *parser) apart(g Guard, parents, cgroups map[string]place) {
	for _, name := range g.Cgroups {
		at := name
		if dir, err := linux.CgroupSlice(name); err == nil {
			at = dir
		}
		for _, parent := range g.Parents {
			switch {
			case linux.CgroupBelow(at, parent):
				p.Fail(cgroups[name], "guard.cgroups has %s, which the guarded parent %s of line %d covers: leave it out", yamlQuote(name), parent, parents[parent].Line)
			case linux.CgroupBelow(parent, at):
				p.Fail(cgroups[name], "guard.cgroups has %s, in which the guarded parent %s of line %d is: leave one out", yamlQuote(name), parent, parents[parent].Line)
			}
		}
		for _, other := range g.Cgroups {
			if other != name && linux.CgroupBelow(at, other) {
				p.Fail(cgroups[name], "guard.cgroups has %s, which %s of line %d covers: leave one out", yamlQuote(name), other, cgroups[other].Line)
			}
		}
	}
}

func (p *parser) version(n *yaml.Node) {
	if v, ok := yamlInteger(n); !ok || v != 1 {
		p.Fail(at(n), "version is %s: accepted is 1%s", yamlKind(n), unquoted(n))
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
	case !linux.IsUnit(s) || strings.ContainsRune(s, 0) || len(s) > 255:
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
	dir, err := linux.CgroupSlice(name)
	if err != nil || dir == "/" {
		return name, "not the name of a slice, such as user.slice or a-b.slice"
	}
	return dir, cleanPath(dir, 4095)
}

// cleanPath says what is wrong with an absolute path.
func cleanPath(s string, most int) string {
	switch {
	case !strings.HasPrefix(s, "/"):
		return "not an absolute path: begin it with a slash"
	case len(s) > most:
		return fmt.Sprintf("longer than %d bytes: choose a shorter one", most)
	case strings.ContainsRune(s, 0):
		return "a path has no zero bytes"
	case path.Clean(s) != s:
		return fmt.Sprintf("write it as %s", yamlQuote(path.Clean(s)))
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
		return s, fmt.Sprintf("longer than %d bytes: choose a shorter one", maxUnixPath)
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
		s, ok := yamlText(n)
		if !ok {
			p.Fail(at(n), `events.file is %s: accepted is an absolute path, or "" for standard output`, yamlKind(n))
			return
		}
		if s != "" {
			wrong := cleanPath(s, 4095)
			if wrong == "" && s == "/" {
				wrong = "not a file"
			}
			if wrong != "" {
				p.Fail(at(n), "events.file is %s: %s", yamlQuote(s), wrong)
				return
			}
		}
		*into = s
	}
}

// directory reads an absolute path, or "" for none.
func (p *parser) directory(where string, into *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		s, ok := yamlText(n)
		if !ok {
			p.Fail(at(n), `%s is %s: accepted is the absolute path of a directory, or "" for none`, where, yamlKind(n))
			return
		}
		if wrong := cleanPath(s, 4095); s != "" && wrong != "" {
			p.Fail(at(n), "%s is %s: %s", where, yamlQuote(s), wrong)
			return
		}
		*into = s
	}
}

func (p *parser) resolvers(n *yaml.Node, into *[]netip.Addr) {
	var names []string // to find duplicates
	p.Texts(n, "resolvers", "IP addresses", maxResolvers, &names, func(s string) (string, string) {
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
func (p *parser) allows(n *yaml.Node, into *[]Allow) (lines []place) {
	p.List(n, "allow", "mappings with prefix or name, protocol and ports", maxAllow, func(item *yaml.Node) {
		a := Allow{Protocol: Any}
		before := p.Mistakes()
		found := p.Mapping(item, "allow", []yamlField{
			{Key: "name", Read: func(n *yaml.Node) { p.allowName(n, &a.Name) }},
			{Key: "prefix", Read: func(n *yaml.Node) { p.prefix(n, &a.Prefix) }},
			{Key: "protocol", Read: p.One("allow.protocol", []string{TCP, UDP, Any}, func(s string) { a.Protocol = s })},
			{Key: "ports", Read: func(n *yaml.Node) { p.ports(n, &a.Ports) }},
		})
		_, prefix := found["prefix"]
		if _, name := found["name"]; !prefix && !name && p.Mistakes() == before {
			p.Fail(at(item), "allow has an item without prefix and name: write for example prefix: 192.0.2.0/24, or name: example.org")
		}
		if p.Mistakes() > before {
			return
		}
		line := at(item)
		same := func(b Allow) bool {
			return a.Name == b.Name && a.Prefix == b.Prefix && a.Protocol == b.Protocol && slices.Equal(a.Ports, b.Ports)
		}
		if i := slices.IndexFunc(*into, same); i >= 0 {
			p.Fail(line, "allow has %s twice with the same protocol and ports: it stands on line %d already", a, lines[i].Line)
			return
		}
		*into = append(*into, a)
		lines = append(lines, line)
	})
	for i, a := range *into {
		if _, err := (Policy{Allow: *into}).nameRules(a.Name); err != nil {
			p.Fail(lines[i], "%s", err)
			break
		}
	}
	return lines
}

func (p *parser) prefix(n *yaml.Node, into *netip.Prefix) {
	s, ok := yamlText(n)
	if !ok {
		p.Fail(at(n), "allow.prefix is %s: accepted is a network such as 192.0.2.0/24 or 2001:db8::/32", yamlKind(n))
		return
	}
	prefix, wrong := network(s)
	if wrong != "" {
		p.Fail(at(n), "allow.prefix is %s: %s", yamlQuote(s), wrong)
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
			p.Fail(at(n), "allow.ports has %d items: accepted are 1 to %d; leave the key out for every port", len(items), maxPorts)
			return
		}
	}
	for _, item := range items {
		r, ok := portRange(item)
		if !ok {
			p.Fail(at(item), "allow.ports has %s: accepted are ports from 1 to 65535 such as 443, and ranges such as 8000-8100", yamlKind(item))
			return
		}
		if slices.Contains(*into, r) {
			p.Fail(at(item), "allow.ports has %s twice", r)
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
	l, okLow := yamlDigits(strings.TrimSpace(low))
	h, okHigh := yamlDigits(strings.TrimSpace(high))
	if !okLow || !okHigh || l < 1 || l > h || h > 65535 {
		return PortRange{}, false
	}
	return PortRange{uint16(l), uint16(h)}, true
}
