package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name    string
		pkg     string
		imports []string
		want    []string
	}{
		{"main imports all", "cmd/sensor", []string{"weir/internal/gate", "weir/internal/control", "fmt"}, nil},
		{"a listed one", "internal/exec", []string{"weir/internal/taint"}, nil},
		{"an unlisted one", "internal/taint", []string{"weir/internal/gate"},
			[]string{"internal/taint imports internal/gate: not allowed by scripts/importrules"}},
		{"a package without a rule", "internal/nowhere", []string{"weir/internal/linux"},
			[]string{"internal/nowhere imports internal/linux: not allowed by scripts/importrules"}},
		{"its own subpackage", "internal/bridge", []string{"weir/internal/bridge/wire"}, nil},
		{"the parent of a leaf", "internal/redact/x", []string{"weir/internal/event"},
			[]string{"internal/redact/x imports internal/event: not allowed by scripts/importrules"}},
		{"a name that only begins alike", "internal/gate", []string{"weir/internal/eventual"},
			[]string{"internal/gate imports internal/eventual: not allowed by scripts/importrules"}},
		{"the harness in itself", "test/vm/cmd/vmrun", []string{"weir/test/vm"}, nil},
		{"the product importing the harness", "internal/exec", []string{"weir/test/vm"},
			[]string{"internal/exec imports test/vm: not allowed by scripts/importrules"}},
		{"ebpf where it belongs", "internal/netegress", []string{"github.com/cilium/ebpf/link"}, nil},
		{"ebpf elsewhere", "cmd/sensor", []string{"github.com/cilium/ebpf/link"},
			[]string{"cmd/sensor imports github.com/cilium/ebpf/link: only bpf/vmlinux, internal/bpfobj, internal/dns, internal/doctor, internal/exec, internal/netegress, internal/secretfiles, internal/taint, internal/volumes, test/vm/attack/halt, test/vm/guest/rig may"}},
		{"netlink in taint", "internal/taint", []string{"github.com/vishvananda/netlink"},
			[]string{"internal/taint imports github.com/vishvananda/netlink: only internal/netegress may"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := check([]pkg{{ImportPath: "weir/" + tt.pkg, Imports: tt.imports}})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnused(t *testing.T) {
	rules := map[string][]string{"internal/a": {"internal/b", "internal/c", "internal/d"}, "internal/a/own": {"internal/d"}, "cmd": {anything}}
	packages := []pkg{
		{"weir/internal/a", []string{"weir/internal/b/sub", "weir/internal/cc", "fmt"}},
		{"weir/internal/a/own", []string{"weir/internal/d"}},
	}
	want := []string{
		"internal/a imports nothing of internal/c: take it out of scripts/importrules and docs/architecture.md",
		"internal/a imports nothing of internal/d: take it out of scripts/importrules and docs/architecture.md",
	}
	if diff := cmp.Diff(want, unused(packages, rules)); diff != "" {
		t.Error(diff)
	}
}
