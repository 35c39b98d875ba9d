package policy

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	maxMatches = 256
	maxLabels  = 64
	maxPattern = 1024
)

// Findings are what is looked for in a container that is guarded, and what Refuse may name.
var Findings = []string{
	"privileged", "host_pid", "host_network", "runtime_socket", "host_files", "cap_bpf", "cap_sys_admin", "cap_net_admin", "cap_net_raw",
	"cgroup_writable", "bpf_fs", "tun_device", "rdma_device", "vhost_device", "network_volume", "packet_socket", "shared_volume",
}

// Containers says which containers of a runtime are guarded, and with which taint they start.
type Containers struct {
	// Absolute path of its socket; empty: nobody looks.
	Containerd string `key:"containerd" text:"accepted is the absolute path of a socket such as /run/containerd/containerd.sock, or \"\" for none" check:"runtime"`
	// Absolute path of the runtime's socket for plugins; empty: it is not asked to wait.
	NRI    string   `key:"nri" text:"accepted is the absolute path of a socket such as /run/nri/nri.sock, or \"\" for none" check:"runtime"`
	Refuse []string `key:"refuse" list:"findings such as privileged or host_pid" each:"finding"` // with which no matched container runs
	Match  []Match  `key:"match"`                                                                // the first that fits decides
}

// Match is one kind of container. In patterns, * stands for any text; what is empty fits everything.
type Match struct {
	Namespace   string   `key:"namespace" text:"accepted is a text in which * stands for any text; leave the key out for all" check:"pattern"` // of the runtime's own
	Image       string   `key:"image" text:"accepted is a text in which * stands for any text; leave the key out for all" check:"pattern"`     // its name
	Labels      []Label  `key:"labels"`
	Annotations []Label  `key:"annotations"`
	Guard       bool     `key:"guard"`                                                                // false: it is left alone, unless it is below a guarded parent
	Taint       []string `key:"taint" list:"corruption, secret" most:"2" each:"bit"`                  // that it starts with
	Refuse      []string `key:"refuse" list:"findings such as privileged or host_pid" each:"finding"` // beside those of Containers
}

// Label is a label or an annotation that must be there; Value is a pattern.
type Label struct{ Key, Value string }

func (out *Containers) check(p *parser, _ *yaml.Node, lines map[string]place) {
	if line, ok := lines["nri"]; ok && out.Containerd == "" && out.NRI != "" {
		p.Fail(line, "containers.nri is not used without containers.containerd: name its socket, usually /run/containerd/containerd.sock")
	}
	if line, ok := lines["match"]; ok && out.Containerd == "" && len(out.Match) > 0 {
		p.Fail(line, "containers.match is not used without containers.containerd: name its socket, usually /run/containerd/containerd.sock")
	}
}

func (p *parser) matches(n *yaml.Node, into *[]Match) {
	p.List(n, "containers.match", "mappings of namespace, image, labels, annotations, guard, taint, refuse", maxMatches, func(item *yaml.Node) {
		m := Match{Guard: true}
		p.group(item, "containers.match", &m)
		if !m.Guard && len(m.Taint)+len(m.Refuse) > 0 {
			p.Fail(at(item), "containers.match has an item with guard: false and taint or refuse: only what is guarded can be tainted or refused")
		}
		*into = append(*into, m)
	})
}

func finding(s string) (string, string) {
	if slices.Contains(Findings, s) {
		return s, ""
	}
	return s, "unknown finding" + suggest(s, Findings)
}

// labels reads a mapping of keys to patterns.
func (p *parser) labels(n *yaml.Node, where string, into *[]Label) {
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 || len(n.Content)/2 > maxLabels {
		p.Fail(at(n), `%s is %s: accepted is a mapping of up to %d keys to texts, such as {weir.taint: secret}`, where, yamlKind(n), maxLabels)
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		k, isKey := yamlText(key)
		v, isValue := yamlText(value)
		switch {
		case !isKey || k == "" || len(k) > maxPattern:
			p.Fail(at(key), "%s has the key %s: accepted are texts", where, yamlKind(key))
		case !isValue || len(v) > maxPattern:
			p.Fail(at(value), "%s has %s: %s: accepted is a text, in quotes if it looks like a number or true", where, yamlQuote(k), yamlKind(value))
		case slices.ContainsFunc(*into, func(l Label) bool { return l.Key == k }):
			p.Fail(at(key), "%s has %s twice", where, yamlQuote(k))
		default:
			*into = append(*into, Label{k, v})
		}
	}
}

// String names a match for people.
func (m Match) String() string {
	var parts []string
	if m.Namespace != "" {
		parts = append(parts, "namespace "+m.Namespace)
	}
	if m.Image != "" {
		parts = append(parts, "image "+m.Image)
	}
	for _, l := range m.Labels {
		parts = append(parts, fmt.Sprintf("label %s=%s", l.Key, l.Value))
	}
	for _, l := range m.Annotations {
		parts = append(parts, fmt.Sprintf("annotation %s=%s", l.Key, l.Value))
	}
	if len(parts) == 0 {
		return "every container"
	}
	return strings.Join(parts, ", ")
}
