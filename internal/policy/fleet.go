package policy

import (
	"crypto/ed25519"
	"encoding/base64"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Roles of an Operator.
const (
	RoleAnswer = "answer" // approve and deny questions
	RoleSeal   = "seal"   // set the mode seal
	RoleMode   = "mode"   // set any mode
	RolePolicy = "policy" // replace the policy
	RoleForget = "forget" // have every node forget what a container was tainted with
)

const maxOperators = 256

// Fleet says whose signed answers and orders count on this node, wherever they come from; and where weir-fleet brings them from.
type Fleet struct {
	Node      string     `key:"node" text:"accepted is a name such as build-07 or build-07.example.org" check:"node"` // empty: the host's name
	Operators []Operator `key:"operators"`
	TwoPeople bool       `key:"two_people"`
	Identity  bool       `key:"identity"`
	Label     string     `key:"label" text:"accepted is the name of a label such as weir.agent" check:"pattern"` // with Identity: whose value names a container on every node; empty: none
	Unknown   []string   `key:"unknown" list:"corruption, secret" most:"2" each:"bit"`                           // with Identity: what a container begins with of which nobody tells
	Servers   []string   `key:"servers" list:"URLs such as tls://nats.example.org:4222" most:"16" each:"server"` // of NATS
	Prefix    string     `key:"prefix" text:"accepted is a word such as weir" check:"prefix"`                    // of subjects there
	CAFile    string     `key:"ca_file" word:"an absolute path"`                                                 // of certificates that vouch for the servers; empty: the host's own
	CredsFile string     `key:"creds_file" word:"an absolute path"`                                              // of the account at the servers; empty: none
	Revoked   []string   `key:"revoked" list:"public keys of operators" most:"256" each:"operator key"`          // they count no more, also where Operators has them
}

// Operator is a person with a key.
type Operator struct {
	Name  string   `key:"name" text:"accepted is a name of 1 to 64 letters, digits and signs" check:"user"`
	Key   string   `key:"key" text:"accepted is the public key that weir-fleet operator add has printed" check:"operator key"`
	Roles []string `key:"roles" list:"answer, seal, mode, policy, forget" most:"5" each:"role"`
}

func (p *parser) operators(n *yaml.Node, into *[]Operator) {
	*into = nil
	p.List(n, "fleet.operators", "mappings with name, key and roles", maxOperators, func(item *yaml.Node) {
		var o Operator
		before := p.Mistakes()
		found := p.group(item, "fleet.operators", &o)
		for _, key := range []string{"name", "key", "roles"} {
			if _, ok := found[key]; !ok && p.Mistakes() == before {
				p.Fail(at(item), "fleet.operators has an item without %s: weir-fleet operator add NAME prints a whole one", key)
			}
		}
		for _, other := range *into {
			switch {
			case p.Mistakes() > before:
			case strings.EqualFold(other.Name, o.Name):
				p.Fail(at(item), "fleet.operators has the name %s twice: give each person one of their own", yamlQuote(o.Name))
			case other.Key == o.Key:
				p.Fail(at(item), "fleet.operators has the key of %s again for %s: each person has a key of their own", yamlQuote(other.Name), yamlQuote(o.Name))
			}
		}
		*into = append(*into, o)
	})
}

func (f *Fleet) check(p *parser, _ *yaml.Node, lines map[string]place) {
	for key, file := range map[string]string{"ca_file": f.CAFile, "creds_file": f.CredsFile} {
		if line, ok := lines[key]; ok {
			p.secretFile(line, "fleet."+key, file)
		}
	}
	if f.Label != "" && !f.Identity {
		p.Fail(lines["label"], "fleet.label is %s, and fleet.identity is not on: write identity: true beside it, or remove it", yamlQuote(f.Label))
	}
	answer := 0
	for _, o := range f.Operators {
		if slices.Contains(o.Roles, RoleAnswer) { // revoked or not: whoever revokes a key must not have to find a person first
			answer++
		}
	}
	if f.TwoPeople && answer < 2 {
		p.Fail(lines["two_people"], "fleet.two_people is true, and %d of fleet.operators may answer: name two people with the role answer", answer)
	}
}

// server checks the URL of a server of NATS.
func server(s string) (string, string) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "nats" && u.Scheme != "tls" || strings.TrimRight(u.Path, "/")+u.RawQuery+u.Fragment != "":
		return s, "not a URL such as tls://nats.example.org:4222"
	case u.User != nil:
		return u.Redacted(), "it holds a user: name the file of an account in fleet.creds_file"
	}
	a, err := netip.ParseAddr(u.Hostname())
	if u.Scheme == "nats" && !(err == nil && a.IsLoopback()) && u.Hostname() != "localhost" {
		return s, "events and questions would go in the clear: write tls://"
	}
	return s, ""
}

func prefix(s string) (string, string) {
	if !IsNode(s) || strings.Contains(s, ".") || len(s) > 32 {
		return s, unaccepted
	}
	return s, ""
}

var nodeNamed = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// IsNode says whether a fleet can call a node so.
func IsNode(name string) bool { return len(name) <= 128 && nodeNamed.MatchString(name) }

func nodeName(s string) (string, string) {
	if s != "" && !IsNode(s) {
		return s, unaccepted
	}
	return s, ""
}

func operatorKey(s string) (string, string) {
	if key, err := base64.StdEncoding.Strict().DecodeString(s); err != nil || len(key) != ed25519.PublicKeySize {
		return s, "not a public key, which has 44 letters: write the one that weir-fleet operator add has printed"
	}
	return s, ""
}

func role(s string) (string, string) {
	all := []string{RoleAnswer, RoleSeal, RoleMode, RolePolicy, RoleForget}
	for _, r := range all {
		if s == r {
			return s, ""
		}
	}
	return s, "unknown role" + suggest(s, all)
}
