package policy

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const named = `version: 1
allow:
  - name: Registry.Example.org.
    protocol: tcp
    ports: 443
  - name: "*.example.org"
    protocol: tcp
    ports: [80, 443]
  - {name: git.corp.example, prefix: 10.0.0.0/8, protocol: tcp, ports: 22}
  - prefix: 192.168.7.0/24
`

func TestNames(t *testing.T) { // B24
	p, err := Parse("p.yaml", []byte(named))
	if err != nil {
		t.Fatal(err)
	}
	https, web := []Rule{{6, 443, 443}}, []Rule{{6, 80, 80}, {6, 443, 443}}
	for name, want := range map[string][]Rule{
		"registry.example.org": web, "a.b.example.org": web, "example.org": nil, "notexample.org": nil, "xexample.org": nil,
		"git.corp.example": {{6, 22, 22}}, "x.git.corp.example": nil, "": nil, "registry.example.org.evil.example": nil,
	} {
		if diff := cmp.Diff(want, p.NameRules(name), equalEmpty); diff != "" {
			t.Errorf("%q: %s", name, diff)
		}
	}
	p.Allow = p.Allow[:1]
	if diff := cmp.Diff(https, p.NameRules("registry.example.org")); diff != "" {
		t.Error(diff)
	}
	if ds, err := p.Destinations(); err != nil || len(ds) != 0 {
		t.Errorf("a name opens addresses by itself: %v %v", ds, err)
	}
}

var equalEmpty = cmp.Transformer("empty", func(rules []Rule) []Rule { return append([]Rule{}, rules...) })

func TestLeads(t *testing.T) { // B25
	p, err := Parse("p.yaml", []byte(named))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, to string
		want     bool
	}{
		{"git.corp.example", "10.1.2.3", true},
		{"git.corp.example", "172.16.0.1", false},
		{"registry.example.org", "10.1.2.3", false},
		{"anything.example", "192.168.7.9", true},
		{"registry.example.org", "169.254.169.254", false},
	} {
		if got := p.Leads(c.name, netip.MustParseAddr(c.to)); got != c.want {
			t.Errorf("%s to %s: got %v", c.name, c.to, got)
		}
	}
}

func TestBadNames(t *testing.T) {
	for name, want := range map[string]string{
		`"*"`: "not a name", `"*.org"`: "top-level", `a..b`: "not a name", `"a b"`: "not a name", `192.0.2.1`: "an address is no name",
		`"*.*.org"`: "not a name", `"ex*mple.org"`: "not a name", strings.Repeat("a", 64) + ".org": "not a name", strings.Repeat("a.", 127) + "org": "longer",
		"[a]": "is a list", `""`: "not a name", "müller.example": "not a name",
	} {
		_, err := Parse("p.yaml", []byte("version: 1\nallow:\n  - name: "+name+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "p.yaml:3") {
			t.Errorf("%s: want %q, got %v", name, want, err)
		}
	}
}
