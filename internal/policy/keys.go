package policy

import (
	"fmt"
	"net/netip"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"weir/internal/linux"
)

// Bounds of lists: far above what people write, low enough for the kernel's maps.
const (
	maxAllow     = 1024
	maxPorts     = 256
	maxResolvers = 8
)

// maxUnixPath is what a socket address holds, without the final zero byte.
const maxUnixPath = 107

// policy reads the whole file into out.
func (p *parser) policy(root *yaml.Node, out *Policy) {
	p.places, p.guard = map[string]map[string]place{}, at(root)
	p.Mapping(root, "", append([]yamlField{{Key: "version", Read: p.version}}, p.fields("", "", reflect.ValueOf(out).Elem())...))
	if _, i, err := fold(out.Allow); err != nil {
		p.Fail(p.allowed[i], "%s", err)
	}
	p.apart(out.Guard, p.places["guard.parents"], p.places["guard.cgroups"])
	p.noteOverlaps(out.Allow, p.allowed)
	p.noteGuarded(p.guard)
	p.noteMissing(p.there.Group, "group, and its sensor refuses the policy: make the group, or leave it out", "control.look", "control.answer", "control.taint")
}

// fields are the keys of a mapping, one for each field of a struct that has the tag key; the other tags say what is accepted. A key that ends with
// _ stands before those of the struct in that field. Tags: was is what older policies call it; one lists the accepted words, word and text say which
// text is accepted, list which texts, and most how many; check and each name what looks at a text; number and size bound a number.
func (p *parser) fields(where, prefix string, of reflect.Value) []yamlField {
	var all []yamlField
	for f, v := range of.Fields() {
		key := f.Tag.Get("key")
		switch {
		case key == "":
		case strings.HasSuffix(key, "_"):
			all = append(all, p.fields(where, key, v)...)
		default:
			key = prefix + key
			all = append(all, yamlField{Key: key, Was: f.Tag.Get("was"), Read: func(n *yaml.Node) {
				p.value(n, strings.TrimPrefix(where+"."+key, "."), f.Tag, v.Addr().Interface())
			}})
		}
	}
	return all
}

// value reads one value as its tags say.
func (p *parser) value(n *yaml.Node, where string, tag reflect.StructTag, into any) {
	switch into := into.(type) {
	case *bool:
		p.Truth(n, where, into)
	case *int:
		p.Number(n, where, tag.Get("number"), into)
	case *int64:
		p.Size(n, where, tag.Get("size"), into)
	case *Mode:
		p.One(n, where, modes(), (*string)(into))
	case *string:
		p.text(n, where, tag, into)
	case *[]string:
		most, err := strconv.Atoi(tag.Get("most"))
		if err != nil {
			most = len(Findings) // each of them once
		}
		*into = nil
		p.places[where] = p.Texts(n, where, tag.Get("list"), most, into, checks[tag.Get("each")])
	case *netip.Prefix:
		p.prefix(n, into)
	case *[]PortRange:
		p.ports(n, into)
	case *[]Label:
		p.labels(n, where, into)
	case *[]netip.Addr:
		p.resolvers(n, into)
	case *[]netip.Prefix:
		p.trusted(n, into)
	case *[]SecretFile:
		p.secretFiles(n, into)
	case *[]Allow:
		p.allows(n, into)
	case *[]Tool:
		p.tools(n, into)
	case *[]Operator:
		p.operators(n, into)
	case *[]Match:
		p.matches(n, into)
	default:
		p.group(n, where, into)
	}
}

func (p *parser) text(n *yaml.Node, where string, tag reflect.StructTag, into *string) {
	word, isWord := tag.Lookup("word")
	one, isOne := tag.Lookup("one")
	switch {
	case isWord && strings.HasSuffix(word, "for none") && n.Tag == "!!str" && n.Value == "":
		*into = ""
	case isWord:
		p.Word(n, where, word, into)
	case isOne:
		p.One(n, where, strings.Fields(one), into)
	default:
		p.Text(n, where, tag.Get("text"), checks[tag.Get("check")], into)
	}
}

// checked is a group of keys that do not go together in every way. It is asked when each key is right by itself; lines is where they are.
type checked interface {
	check(p *parser, n *yaml.Node, lines map[string]place)
}

// group reads a mapping into a struct, and gives where its keys are.
func (p *parser) group(n *yaml.Node, where string, into any) map[string]place {
	before := p.Mistakes()
	lines := p.Mapping(n, where, p.fields(where, "", reflect.ValueOf(into).Elem()))
	p.places[where] = lines
	if group, ok := into.(checked); ok && p.Mistakes() == before {
		group.check(p, n, lines)
	}
	return lines
}

func (g *Guard) check(p *parser, n *yaml.Node, _ map[string]place) { p.guard = at(n) }

func (t *Taint) check(_ *parser, _ *yaml.Node, lines map[string]place) {
	_, t.Untrusted = lines["trusted_networks"]
}

// checks say what is wrong with a text, or the empty string, and may rewrite it; by what tags call them.
var checks = map[string]func(s string) (clean, wrong string){
	"parent": parent, "cgroup": alone, "socket": unixPeer, "bit": taintBit, "name": allowName, "user": userName, "finding": finding, "metrics": metricsListen, "group": groupName, "node": nodeName, "operator key": operatorKey, "server": server, "prefix": prefix, "role": role,
	"kind": eventKind, "endpoint": endpoint,
	"path": func(s string) (string, string) {
		if s == "" {
			return s, ""
		}
		return s, cleanPath(s, 4095)
	},
	"file": func(s string) (string, string) {
		switch s {
		case "":
			return s, ""
		case "/":
			return s, "not a file"
		}
		return s, cleanPath(s, 4095)
	},
	"runtime": func(s string) (string, string) {
		if s != "" && cleanPath(s, maxUnixPath) != "" {
			return s, unaccepted
		}
		return s, ""
	},
	"pattern": func(s string) (string, string) {
		if s == "" || len(s) > maxPattern || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' }) {
			return s, unaccepted
		}
		return s, ""
	},
	"tool": func(s string) (string, string) {
		if toolName(s) {
			return s, ""
		}
		return s, unaccepted
	},
	"tools": func(s string) (string, string) {
		if toolName(s) {
			return s, ""
		}
		return s, "not the name of a tool such as Write or mcp__browser__*"
	},
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
			case linux.PathWithin(at, parent):
				p.Fail(cgroups[name], "guard.cgroups has %s, which the guarded parent %s of line %d covers: leave it out", yamlQuote(name), parent, parents[parent].Line)
			case linux.PathWithin(parent, at):
				p.Fail(cgroups[name], "guard.cgroups has %s, in which the guarded parent %s of line %d is: leave one out", yamlQuote(name), parent, parents[parent].Line)
			}
		}
		for _, other := range g.Cgroups {
			if other != name && linux.PathWithin(at, other) {
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

// allows reads the list of destinations.
func (p *parser) allows(n *yaml.Node, into *[]Allow) {
	p.List(n, "allow", "mappings with prefix or name, protocol and ports", maxAllow, func(item *yaml.Node) {
		a := Allow{Protocol: Any}
		before := p.Mistakes()
		found := p.group(item, "allow", &a)
		_, prefix := found["prefix"]
		if _, name := found["name"]; !prefix && !name && p.Mistakes() == before {
			p.Fail(at(item), "allow has an item without prefix and name: write for example prefix: 192.0.2.0/24, or name: example.org")
		}
		if p.Mistakes() > before {
			return
		}
		same := func(b Allow) bool {
			return a.Name == b.Name && a.Prefix == b.Prefix && a.Protocol == b.Protocol && slices.Equal(a.Ports, b.Ports)
		}
		if i := slices.IndexFunc(*into, same); i >= 0 {
			p.Fail(at(item), "allow has %s twice with the same protocol and ports: it stands on line %d already", a, p.allowed[i].Line)
			return
		}
		*into, p.allowed = append(*into, a), append(p.allowed, at(item))
	})
	for i, a := range *into {
		if _, err := (Policy{Allow: *into}).nameRules(a.Name); err != nil {
			p.Fail(p.allowed[i], "%s", err)
			break
		}
	}
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
