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
	"cmd/sensor":                {anything},
	"cmd/hook":                  {"internal/bridge/adapter"},
	"internal/bridge":           {"internal/gate", "internal/poll", "internal/self", "internal/ruleset", "internal/strict", "internal/event"},
	"internal/bridge/served":    {"internal/bridge", "internal/gate", "internal/ruleset/permission", "internal/vault", "internal/memory", "internal/event"},
	"internal/bridge/wire":      {}, // the hook in the container has these five, and the guard: they know nothing of the daemon
	"internal/bridge/sight":     {},
	"internal/bridge/ipc":       {"internal/bridge/wire"},
	"internal/bridge/toolcall":  {},
	"internal/bridge/gitguard":  {"internal/classify"},
	"internal/bridge/adapter":   {"internal/classify", "internal/ruleset", "internal/self", "internal/bridge/wire", "internal/bridge/sight", "internal/bridge/toolcall", "internal/bridge/gitguard", "internal/rewrite"},
	"internal/gate":             {"internal/classify", "internal/cop", "internal/event"},
	"internal/gate/verdict":     {"internal/event", "internal/classify"},
	"internal/gate/question":    {"internal/gate/verdict", "internal/event"},
	"internal/gate/form":        {"internal/classify", "internal/event"},
	"internal/cop":              {"internal/classify", "internal/keyfile"},
	"internal/ruleset":          {"internal/classify", "internal/self", "internal/rewrite", "internal/strict"},
	"internal/self":             {},
	"internal/agentupdate":      {"internal/ruleset/update", "internal/strict", "internal/rewrite"},
	"internal/exec":             {"internal/pinned", "internal/ring", "internal/taint", "internal/event", "internal/procfs"},
	"internal/files":            {"internal/pinned", "internal/taint", "internal/policy", "internal/cgroup"},
	"internal/netegress":        {"internal/pinned", "internal/poll", "internal/ring", "internal/taint", "internal/event", "internal/policy", "internal/cgroup", "internal/procfs"},
	"internal/netegress/family": {"internal/cgroup", "internal/procfs"},
	"internal/netegress/socket": {"internal/policy", "internal/cgroup", "internal/procfs"},
	"internal/names":            {"internal/pinned", "internal/policy", "internal/taint", "internal/cgroup", "internal/procfs"},
	"internal/container":        {"internal/taint", "internal/event", "internal/policy", "internal/cgroup", "internal/procfs", "internal/bridge/wire"},
	"internal/container/nri":    {"internal/container/again"},
	"internal/pinned":           {},
	"internal/ring":             {},
	"internal/policy":           {"internal/cgroup"},
	"internal/taint":            {"internal/pinned", "internal/policy", "internal/cgroup"},
	"internal/classify":         {}, // pure: nothing of ours but its own packages
	"internal/control":          {"internal/poll", "internal/self", "internal/gate", "internal/event", "internal/procfs"},
	"internal/show":             {"internal/gate", "internal/event"},
	"internal/announce":         {"internal/gate", "internal/event", "internal/show", "internal/peer"},
	"internal/peer":             {},
	"internal/poll":             {},
	"internal/metrics":          {"internal/peer"},
	"internal/prompt":           {"internal/gate", "internal/event", "internal/show", "internal/procfs"},
	"internal/replay":           {"internal/gate", "internal/cop", "internal/event", "internal/policy"},
	"internal/launch":           {"internal/control", "internal/policy", "internal/bridge/wire"},
	"internal/node":             {},
	"internal/doctor":           {"internal/taint"},
	"internal/sensor":           {anything},
	"internal/sensor/store":     {"internal/rewrite"},
	"internal/sensor/journal":   {"internal/event", "internal/sensor/store"},
	"internal/sensor/inforce":   {"internal/policy"},
	"internal/sensor/witness":   {"internal/taint", "internal/netegress", "internal/exec", "internal/event", "internal/cgroup", "internal/procfs"},
	"internal/sensor/parents":   {"internal/container/layout", "internal/sensor/store", "internal/sensor/witness", "internal/taint", "internal/netegress", "internal/policy", "internal/event", "internal/cgroup"},
	"internal/sensor/agents": {
		"internal/sensor/inforce", "internal/sensor/watch", "internal/sensor/witness", "internal/bridge", "internal/classify", "internal/gate", "internal/ruleset", "internal/agentupdate", "internal/vault", "internal/memory", "internal/rewrite",
		"internal/taint", "internal/netegress", "internal/event", "internal/show", "internal/cgroup", "internal/procfs",
	},
	"internal/sensor/spaces": {"internal/taint", "internal/cgroup", "internal/procfs"},
	"internal/sensor/pins":   {},
	"internal/sensor/watch":  {"internal/cgroup"},
	"internal/sensor/session": {
		"internal/sensor/store", "internal/sensor/inforce", "internal/sensor/witness", "internal/sensor/parents",
		"internal/control", "internal/taint", "internal/netegress", "internal/policy", "internal/event", "internal/cgroup",
	},
	"internal/sensor/approvals": {"internal/announce", "internal/gate", "internal/policy", "internal/event", "internal/keyfile"},
	"internal/sensor/figures": {
		"internal/metrics", "internal/pinned", "internal/gate", "internal/cop", "internal/taint", "internal/netegress", "internal/exec", "internal/files", "internal/names",
		"internal/sensor/journal", "internal/policy", "internal/cgroup",
	},
	"internal/sensor/trial": {"internal/sensor", "internal/control", "internal/doctor", "internal/event", "internal/gate", "internal/netegress"},
	"internal/vault":        {"internal/redact", "internal/strict", "internal/rewrite", "internal/ruleset/permission"},
	"internal/memory":       {"internal/strict", "internal/rewrite", "internal/ruleset/permission"},
	"internal/strict":       {},
	"internal/event":        {},
	"scripts/classes":       {"internal/classify"},
	"scripts/rules":         {"internal/ruleset"},
	"scripts/corpus":        {"internal/classify", "internal/cop", "internal/ruleset"},
	"test/vm":               {}, // the harness knows nothing of what it tests
	"test/vm/bench":         {anything},
	"test/vm/cmd":           {anything},
	"test/vm/guest":         {anything},
}

// only says which packages may import an outside library.
var only = map[string][]string{
	"github.com/cilium/ebpf":           {"bpf/vmlinux", "internal/exec", "internal/files", "internal/names/steer", "internal/netegress", "internal/pinned", "internal/taint", "internal/doctor", "test/vm/attack/halt", "test/vm/guest/rig"},
	"github.com/vishvananda/netlink":   {"internal/netegress"},
	"github.com/containerd/containerd": {"internal/container", "test/vm/bench/guest"},
	"google.golang.org/grpc":           {"internal/container", "test/vm/bench/guest"},
	"github.com/containerd/nri":        {"internal/container/nri"},
	"github.com/containerd/ttrpc":      {"internal/container/nri"},
	"github.com/landlock-lsm":          {"internal/launch"},
	"github.com/miekg/dns":             {"internal/names", "test/vm/bench/guest"},
	"github.com/prometheus":            {"internal/metrics"},

	// Their SDKs are large: who needs a reviewer's opinion only does not link them.
	"github.com/anthropics/anthropic-sdk-go": {"internal/cop/model"},
	"github.com/openai/openai-go":            {"internal/cop/model"},
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
