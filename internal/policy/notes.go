package policy

import "slices"

// noteOverlaps tells of networks that a wider one of the same list covers: what either opens is open, so a narrower one takes nothing back.
func (p *parser) noteOverlaps(allow []Allow, where []place) {
	for i, a := range allow {
		for j, wide := range allow {
			if i == j || a.Name != "" || wide.Name != "" || wide.Prefix.Bits() > a.Prefix.Bits() || !wide.Prefix.Contains(a.Prefix.Addr()) {
				continue
			}
			if opens(wide, a) {
				p.Note(where[i], "allow.prefix %s adds nothing: line %d opens %s already; an item never narrows another", a.Prefix, where[j].Line, wide.Prefix)
			} else if wide.Prefix != a.Prefix {
				p.Note(where[i], "allow.prefix %s is within %s of line %d: what either opens is open; an item never narrows another", a.Prefix, wide.Prefix, where[j].Line)
			} else {
				continue
			}
			break
		}
	}
}

// opens says whether wide opens every protocol and port that a does.
func opens(wide, a Allow) bool {
	both, err1 := wide.rules()
	more, err2 := a.rules()
	return err1 == nil && err2 == nil && slices.Equal(merge(both), merge(append(slices.Clone(both), more...)))
}

// noteGuarded tells of a policy that guards nothing by itself, and of cgroups that are not there.
func (p *parser) noteGuarded(guard place) {
	if len(p.places["guard.parents"])+len(p.places["guard.cgroups"]) == 0 {
		p.Note(guard, "guard.parents and guard.cgroups name nothing: only sessions of weir guard, and cgroups that weir guard --cgroup names, are guarded")
	}
	p.noteMissing(p.there.Cgroup, "cgroup now; it is guarded as soon as it is made: check the name", "guard.parents", "guard.cgroups")
}

// noteMissing tells of names in lists that are not on this machine.
func (p *parser) noteMissing(there func(string) bool, what string, keys ...string) {
	for _, key := range keys {
		for name, where := range p.places[key] {
			if there != nil && !there(name) {
				p.Note(where, "%s has %s: this machine has no such %s", key, yamlQuote(name), what)
			}
		}
	}
}
