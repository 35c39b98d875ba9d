package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// maxName is what DNS takes, in bytes, without the last dot.
const maxName = 253

// String names what an Allow opens, without protocol and ports.
func (a Allow) String() string {
	switch {
	case a.Name == "":
		return a.Prefix.String()
	case !a.Prefix.IsValid():
		return a.Name
	}
	return a.Name + " in " + a.Prefix.String()
}

// NameRules are what is open to a name, merged; none: it is not allowed. name is in
// lower case, without a last dot.
func (p Policy) NameRules(name string) []Rule {
	rules, err := p.nameRules(name)
	if err != nil {
		return nil // Parse refuses it
	}
	return rules
}

func (p Policy) nameRules(name string) ([]Rule, error) {
	var rules []Rule
	for _, a := range p.Allow {
		if name == "" || !a.covers(name) {
			continue
		}
		more, err := a.rules()
		if err != nil {
			return nil, err
		}
		rules = append(rules, more...)
	}
	if rules = merge(rules); len(rules) > MaxRules {
		return nil, fmt.Errorf("%d port ranges are open to %s, at most %d are accepted: use wider ranges", len(rules), name, MaxRules)
	}
	return rules, nil
}

// Leads says whether a name may lead to an address that is not public: an item has
// both, or the address is open by itself.
func (p Policy) Leads(name string, to netip.Addr) bool {
	return slices.ContainsFunc(p.Allow, func(a Allow) bool {
		return a.Prefix.IsValid() && a.Prefix.Contains(to) && (a.Name == "" || a.covers(name))
	})
}

// covers: *.example.org is every name below example.org, at any depth, not itself. An
// item also covers its own text, so that its rules can be checked.
func (a Allow) covers(name string) bool {
	below, is := strings.CutPrefix(a.Name, "*")
	return a.Name != "" && (a.Name == name || is && strings.HasSuffix(name, below))
}

func allowName(s string) (string, string) {
	name := strings.ToLower(strings.TrimSuffix(s, "."))
	return name, badName(name)
}

// badName says what is wrong with a name in lower case.
func badName(name string) string {
	if _, err := netip.ParseAddr(name); err == nil {
		return "an address is no name: write it as prefix"
	}
	if len(name) > maxName {
		return fmt.Sprintf("longer than %d bytes: choose a shorter one", maxName)
	}
	labels := strings.Split(strings.TrimPrefix(name, "*."), ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, notInName) {
			return "not a name such as example.org or *.example.org, of letters, digits, hyphens and underscores"
		}
	}
	if strings.HasPrefix(name, "*.") && len(labels) < 2 {
		return "it would cover a whole top-level domain: name one below it"
	}
	return ""
}

func notInName(c rune) bool {
	return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_'
}
