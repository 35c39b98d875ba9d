// Command importrules checks who imports whom in this module, and which outside libraries are kept to one place. The rules are a
// table below; a package that it does not name may import nothing of ours, and what nobody makes use of may not stand there. Tests are free.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

const module = "weir/"

// anything stands for all packages of ours.
const anything = "*"

// rules says which packages of ours a package may import. A package's own subpackages are always allowed.
var rules = map[string][]string{
	"cmd/sensor": {anything},
	"cmd/hook":   {"internal/agenthook"},
	"cmd/fleet":  {"internal/control", "internal/event", "internal/fleet", "internal/gate", "internal/linux", "internal/notify", "internal/policy", "internal/prompt", "internal/show"},
	"cmd/otel":   {"internal/control", "internal/event", "internal/fleet", "internal/linux", "internal/otlp", "internal/policy", "internal/show"},

	// What runs in a container, or reads what one wrote, knows nothing of the daemon.
	"internal/bridge/wire": {"internal/linux"},
	"internal/commands":    {},
	"internal/shell":       {"internal/commands"},
	"internal/classify":    {"internal/commands", "internal/shell"},
	"internal/gitguard":    {"internal/commands", "internal/linux", "internal/shell", "internal/toolguard"}, // it reads commands as the guard does
	"internal/toolguard":   {"internal/bridge/wire", "internal/commands", "internal/linux", "internal/shell", "internal/strict"},
	"internal/agenthook":   {"internal/bridge/wire", "internal/classify", "internal/gitguard", "internal/linux", "internal/toolguard"},

	"internal/event":      {"internal/linux"},
	"internal/linux":      {},
	"internal/strict":     {},
	"internal/bpfobj":     {},
	"internal/redact":     {},
	"internal/permission": {"internal/bridge/wire", "internal/commands", "internal/policy", "internal/shell", "internal/strict", "internal/toolguard"},
	"internal/policy":     {"internal/linux", "internal/redact"},

	"internal/taint":       {"internal/bpfobj", "internal/event", "internal/linux", "internal/policy"},
	"internal/exec":        {"internal/bpfobj", "internal/event", "internal/linux", "internal/taint"},
	"internal/netegress":   {"internal/bpfobj", "internal/event", "internal/linux", "internal/policy", "internal/taint"},
	"internal/secretfiles": {"internal/bpfobj", "internal/linux", "internal/policy", "internal/taint"},
	"internal/volumes":     {"internal/bpfobj", "internal/event", "internal/linux", "internal/taint"},
	"internal/dns":         {"internal/bpfobj", "internal/linux", "internal/policy", "internal/taint"},
	"internal/container":   {"internal/bridge/wire", "internal/event", "internal/linux", "internal/policy", "internal/taint"},
	"internal/doctor":      {"internal/bpfobj", "internal/taint"},

	"internal/cop":        {"internal/classify", "internal/commands", "internal/linux", "internal/shell", "internal/strict"},
	"internal/gate":       {"internal/classify", "internal/commands", "internal/cop", "internal/event", "internal/policy", "internal/redact", "internal/shell"},
	"internal/control":    {"internal/bridge/wire", "internal/event", "internal/gate", "internal/linux"},
	"internal/show":       {"internal/event", "internal/gate", "internal/redact"},
	"internal/prompt":     {"internal/control", "internal/event", "internal/gate", "internal/linux", "internal/show"},
	"internal/notify":     {"internal/control", "internal/event", "internal/gate", "internal/show", "internal/strict"},
	"internal/fleet":      {"internal/control", "internal/linux", "internal/policy", "internal/strict"},
	"internal/fleet/link": {"internal/control", "internal/event", "internal/fleet", "internal/gate", "internal/linux", "internal/notify", "internal/policy"},
	"internal/metrics":    {"internal/control"},
	"internal/otlp":       {"internal/control", "internal/event", "internal/linux", "internal/policy"},
	"internal/modelproxy": {"internal/control", "internal/linux"},
	"internal/console":    {"internal/control", "internal/event", "internal/gate", "internal/policy", "internal/show"},
	"internal/vault":      {"internal/linux", "internal/permission", "internal/redact", "internal/strict"},
	"internal/memory":     {"internal/event", "internal/linux", "internal/permission", "internal/strict"},
	"internal/bridge":     {"internal/event", "internal/gate", "internal/gitguard", "internal/linux", "internal/memory", "internal/permission", "internal/show", "internal/strict", "internal/toolguard", "internal/vault"},

	"internal/agentupdate": {"internal/linux", "internal/strict", "internal/toolguard"},
	"internal/runner":      {"internal/bridge/wire", "internal/control", "internal/policy"},
	"internal/daemon":      {anything},

	"scripts/classes":   {"internal/commands"},
	"scripts/policy":    {"internal/policy"},
	"scripts/rules":     {"internal/toolguard"},
	"scripts/corpus":    {"internal/classify", "internal/cop", "internal/toolguard", "test/evasion"},
	"test/agents":       {},
	"test/classifytest": {},
	"test/classifytool": {"internal/classify"},
	"test/eventtest":    {"docs"},
	"test/evasion":      {"internal/toolguard"},
	"test/vm":           {}, // the harness knows nothing of what it tests
	"test/vm/bench":     {anything},
	"test/vm/cmd":       {anything},
	"test/vm/guest":     {anything},
}

// only says which packages may import an outside library.
var only = map[string][]string{
	"charm.land/bubbletea":             {"internal/prompt"},
	"github.com/cilium/ebpf":           {"bpf/vmlinux", "internal/bpfobj", "internal/dns", "internal/doctor", "internal/exec", "internal/netegress", "internal/secretfiles", "internal/taint", "internal/volumes", "test/vm/attack/halt", "test/vm/guest/rig"},
	"github.com/vishvananda/netlink":   {"internal/netegress"},
	"github.com/containerd/containerd": {"internal/container", "test/vm/bench/guest"},
	"google.golang.org/grpc":           {"internal/container", "test/vm/bench/guest"},
	"github.com/containerd/nri":        {"internal/container"},
	"github.com/containerd/ttrpc":      {"internal/container"},
	"github.com/landlock-lsm":          {"internal/runner"},
	"github.com/nats-io":               {"internal/fleet/link"},
	"github.com/miekg/dns":             {"internal/dns", "test/vm/bench/guest"},
	"github.com/prometheus":            {"internal/metrics", "internal/otlp"},
	"go.opentelemetry.io":              {"internal/otlp"},
	"github.com/coreos/go-systemd":     {"cmd/sensor", "internal/event"},
}

type pkg struct {
	ImportPath string
	Imports    []string
}

func main() {
	packages, err := list()
	if err != nil {
		fmt.Fprintln(os.Stderr, "importrules:", err)
		os.Exit(2)
	}
	bad := append(check(packages), unused(packages, rules)...)
	for _, line := range bad {
		fmt.Fprintln(os.Stderr, line)
	}
	if len(bad) > 0 {
		os.Exit(1)
	}
}

func list() ([]pkg, error) {
	cmd := exec.Command("go", "list", "-tags", "vmguest", "-json=ImportPath,Imports", "./...")
	cmd.Stderr = os.Stderr
	r, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	var packages []pkg
	dec := json.NewDecoder(r)
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		packages = append(packages, p)
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	return packages, nil
}

// check returns one line for each import that the tables forbid.
func check(packages []pkg) []string {
	var bad []string
	for _, p := range packages {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, imp := range p.Imports {
			if own, ok := strings.CutPrefix(imp, module); ok {
				if !mayImport(name, own) {
					bad = append(bad, fmt.Sprintf("%s imports %s: not allowed by scripts/importrules", name, own))
				}
				continue
			}
			for lib, who := range only {
				if within(imp, lib) && !slices.ContainsFunc(who, func(w string) bool { return within(name, w) }) {
					bad = append(bad, fmt.Sprintf("%s imports %s: only %s may", name, imp, strings.Join(who, ", ")))
				}
			}
		}
	}
	slices.Sort(bad)
	return bad
}

// unused returns one line for each package that a row allows and none of the row's packages imports.
func unused(packages []pkg, rules map[string][]string) []string {
	used := map[string][]string{} // by row
	for _, p := range packages {
		row := rowOf(strings.TrimPrefix(p.ImportPath, module), rules)
		for _, imp := range p.Imports {
			used[row] = append(used[row], strings.TrimPrefix(imp, module))
		}
	}
	var bad []string
	for row, allowed := range rules {
		for _, a := range allowed {
			if a != anything && !slices.ContainsFunc(used[row], func(imp string) bool { return within(imp, a) }) {
				bad = append(bad, fmt.Sprintf("%s imports nothing of %s: take it out of scripts/importrules and docs/architecture.md", row, a))
			}
		}
	}
	slices.Sort(bad)
	return bad
}

// rowOf is the longest entry of the table that a package is within, or empty.
func rowOf(name string, rules map[string][]string) string {
	best := ""
	for r := range rules {
		if within(name, r) && len(r) > len(best) {
			best = r
		}
	}
	return best
}

// mayImport goes by the importer's row.
func mayImport(importer, imported string) bool {
	best := rowOf(importer, rules)
	top := best
	if top == "" {
		top = importer
	}
	if within(imported, top) {
		return true
	}
	return slices.ContainsFunc(rules[best], func(r string) bool { return r == anything || within(imported, r) })
}

func within(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }
