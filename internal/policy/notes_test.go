package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestF43Check: what is accepted and probably not meant is told, with its place.
func TestF43Check(t *testing.T) {
	const none = "guard.parents and guard.cgroups name nothing: only sessions of weir guard, and cgroups that weir guard --cgroup names, are guarded"
	for _, c := range []struct {
		text string
		want []string
	}{
		{"version: 1\n", []string{"p:1:1: " + none}},
		{"mode: seal\nguard:\n  parents: []\n", []string{"p:3:3: " + none}},
		{"guard: {parents: [/there], cgroups: [/there-too]}\n", nil},
		{"guard:\n  parents: [/there, /gone]\n  cgroups: [gone.scope]\n", []string{
			`p:2:21: guard.parents has "/gone": this machine has no such cgroup now; it is guarded as soon as it is made: check the name`,
			`p:3:13: guard.cgroups has "gone.scope": this machine has no such cgroup now; it is guarded as soon as it is made: check the name`,
		}},
		{"guard: {parents: [/there]}\nallow:\n- prefix: 10.1.0.0/16\n- prefix: 10.0.0.0/8\n- {prefix: 192.0.2.0/24, protocol: tcp, ports: [80, 443]}\n- {prefix: 192.0.2.7, protocol: tcp, ports: 443}\n- {prefix: 192.0.2.8, protocol: udp}\n", []string{
			"p:3:3: allow.prefix 10.1.0.0/16 adds nothing: line 4 opens 10.0.0.0/8 already; an item never narrows another",
			"p:6:3: allow.prefix 192.0.2.7/32 adds nothing: line 5 opens 192.0.2.0/24 already; an item never narrows another",
			"p:7:3: allow.prefix 192.0.2.8/32 is within 192.0.2.0/24 of line 5: what either opens is open; an item never narrows another",
		}},
		{"guard: {parents: [/there]}\nallow:\n- {prefix: 10.0.0.0/8, ports: 1-100}\n- {prefix: 10.0.0.0/8, ports: 5}\n- {prefix: 10.0.0.0/8, ports: 200}\n- {prefix: '::/0'}\n- {name: example.org, prefix: 10.0.0.0/9}\n", []string{
			"p:4:3: allow.prefix 10.0.0.0/8 adds nothing: line 3 opens 10.0.0.0/8 already; an item never narrows another",
		}},
		{"guard: {parents: [/there]}\ncontrol:\n  look: [audit, gone]\n  taint: ['70001']\n", []string{
			`p:3:17: control.look has "gone": this machine has no such group, and its sensor refuses the policy: make the group, or leave it out`,
			`p:4:11: control.taint has "70001": this machine has no such group, and its sensor refuses the policy: make the group, or leave it out`,
		}},
	} {
		_, notes, err := Check("p", []byte(c.text), Machine{
			Cgroup: func(at string) bool { return strings.HasPrefix(at, "/there") },
			Group:  func(name string) bool { return name == "audit" },
		})
		var got []string
		for _, n := range notes {
			got = append(got, n.Error())
		}
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v, want - got +\n%s", c.text, err, diff)
		}
	}
	if _, notes, err := Check("p", []byte("mode: x"), Machine{}); err == nil || notes != nil {
		t.Errorf("a refused file gives notes: %v, %v", notes, err)
	}
	if _, _, err := Check("p", []byte("allow:\n- prefix: "+strings.Repeat("1", 9)), Machine{}); !strings.HasPrefix(fmt.Sprint(err), "p:2:11: ") {
		t.Error(err)
	}
}
