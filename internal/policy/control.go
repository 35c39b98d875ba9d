package policy

import (
	"regexp"

	"go.yaml.in/yaml/v3"
)

// Control says who may use the control socket besides root: members of groups, by name or number.
type Control struct {
	Look   []string // see what is
	Answer []string // and answer questions
	Taint  []string // and taint containers
}

const maxGroups = 16

var group = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$`)

func (p *parser) control(n *yaml.Node, out *Control) {
	groups := func(where string, into *[]string) func(*yaml.Node) {
		return func(n *yaml.Node) {
			p.Texts(n, where, "names or numbers of groups", maxGroups, into, func(s string) (string, string) {
				if !group.MatchString(s) {
					return s, "no name of a group"
				}
				return s, ""
			})
		}
	}
	p.Mapping(n, "control", []yamlField{
		{Key: "look", Read: groups("control.look", &out.Look)},
		{Key: "answer", Read: groups("control.answer", &out.Answer)},
		{Key: "taint", Read: groups("control.taint", &out.Taint)},
	})
}
