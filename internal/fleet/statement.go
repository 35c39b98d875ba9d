// Package fleet is how people answer on nodes where they are not: what they sign, and the link that carries events and questions of a
// node to them and their words back.
//
// The link and whoever runs the servers between carry bytes: they can delay and drop. A sensor takes nothing from them but what a person
// signed with a key that its own policy names. The link is in internal/fleet/link, which the sensor does not have in it.
package fleet

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"weir/internal/control"
	"weir/internal/linux"
	"weir/internal/policy"
	"weir/internal/strict"
)

// purpose stands before what is signed, so that no other signature of the key can serve.
const purpose = "weir fleet v1:"

// Bounds of statements.
const (
	Skew         = 5 * time.Minute     // that the clocks of a person and a node may differ
	MostAnswer   = time.Hour           // that an answer, or an order which opens something, counts
	MostPolicy   = 24 * time.Hour      // that a policy counts
	MostForget   = 7 * 24 * time.Hour  // that an order to forget counts: as long as what was told elsewhere before
	MostSeal     = 30 * 24 * time.Hour // that an order to seal counts: it finds nodes that come back
	maxStatement = 256 << 10           // bytes: a message of NATS has room for it
	maxWhy       = 1024                // bytes
	maxIdentity  = 512                 // bytes
)

// Statement is what a person signs: an answer to one question of one node, or an order.
type Statement struct {
	Node    string    `json:"node"`
	Signed  time.Time `json:"signed"`
	Expires time.Time `json:"expires"`
	Why     string    `json:"why,omitempty"`

	// An answer.
	Question string `json:"question,omitempty"`
	Answer   string `json:"answer,omitempty"` // approve or deny
	Scope    int    `json:"scope,omitempty"`  // of an approval: as the question lists them; 0 is 1
	Shown    string `json:"shown,omitempty"`  // hash of the text that the person had before them

	// An order: one of them.
	Mode   string `json:"mode,omitempty"`   // observe, enforce or seal
	Policy string `json:"policy,omitempty"` // the text of a policy file
	Forget string `json:"forget,omitempty"` // the identity whose taint every node forgets

	By string `json:"-"` // who signed it, as the policy calls them
}

// The answers.
const (
	Approve = "approve"
	Deny    = "deny"
)

// ErrTooLong says that a statement is too long to be signed, or opened.
var ErrTooLong = fmt.Errorf("it has more than %d bytes", maxStatement)

// Sign signs s.
func Sign(key ed25519.PrivateKey, s Statement) (control.Signed, error) {
	text, err := json.Marshal(s)
	if err == nil && len(text) > maxStatement {
		err = ErrTooLong
	}
	if err != nil {
		return control.Signed{}, fmt.Errorf("sign: %w", err)
	}
	return control.Signed{
		Key: public(key), Statement: string(text), Signature: base64.StdEncoding.EncodeToString(ed25519.Sign(key, append([]byte(purpose), text...))),
	}, nil
}

// Open checks who signed a statement, and that it counts here and now. An error says which of this is not so.
func Open(signed control.Signed, p policy.Fleet, node string, now time.Time) (Statement, error) {
	i := slices.IndexFunc(p.Operators, func(o policy.Operator) bool { return o.Key == signed.Key })
	switch {
	case slices.Contains(p.Revoked, signed.Key):
		return Statement{}, errors.New("its key is revoked")
	case i < 0:
		return Statement{}, errors.New("its key is no operator's: fleet.operators of the policy names them")
	case len(signed.Statement) > maxStatement:
		return Statement{}, ErrTooLong
	}
	who := p.Operators[i]
	key, err := base64.StdEncoding.DecodeString(who.Key)
	signature, err2 := base64.StdEncoding.DecodeString(signed.Signature)
	if err != nil || err2 != nil || !ed25519.Verify(key, []byte(purpose+signed.Statement), signature) {
		return Statement{}, errors.New("its signature is not that of its key")
	}
	var s Statement
	if err := strict.Decode([]byte(signed.Statement), &s); err != nil {
		return Statement{}, err
	}
	s.By = who.Name
	return s, s.counts(who.Roles, node, Every(p.Prefix), now)
}

// Every stands for each node of the fleet with this prefix, as the node of an order. It is the name of none.
func Every(prefix string) string { return prefix + "/*" }

// counts says why s does not count.
func (s Statement) counts(roles []string, node, every string, now time.Time) error {
	role, most, orders := policy.RoleAnswer, MostAnswer, 0
	for _, what := range []string{s.Mode, s.Policy, s.Forget} {
		if what != "" {
			orders++
		}
	}
	order := orders > 0
	switch {
	case order && (orders > 1 || s.Question+s.Answer+s.Shown != "" || s.Scope != 0),
		!order && (s.Question == "" || s.Answer != Approve && s.Answer != Deny || s.Scope < 0 || s.Answer == Deny && s.Scope != 0):
		return errors.New("it is neither an answer nor an order")
	case s.Policy != "":
		role, most = policy.RolePolicy, MostPolicy
	case s.Forget != "":
		role, most = policy.RoleForget, MostForget
	case order:
		role = policy.RoleMode
		if s.Mode == string(policy.Seal) {
			most = MostSeal
			if slices.Contains(roles, policy.RoleSeal) {
				role = policy.RoleSeal
			}
		}
	}
	switch {
	case s.Node != node && !(s.Node == every && order):
		return fmt.Errorf("it is for the node %s, and this is %s", strict.Quote(s.Node), node)
	case s.Signed.After(now.Add(Skew)):
		return fmt.Errorf("it was signed at %s, and here it is %s: compare the clocks", clock(s.Signed), clock(now))
	case !s.Expires.After(now):
		return fmt.Errorf("it counted until %s, and here it is %s: sign it again, or compare the clocks", clock(s.Expires), clock(now))
	case s.Expires.Sub(s.Signed) > most:
		return fmt.Errorf("it would count for longer than %v", most)
	case len(s.Forget) > maxIdentity:
		return fmt.Errorf("its identity has more than %d bytes", maxIdentity)
	case len(s.Why) > maxWhy:
		return fmt.Errorf("its reason has more than %d bytes", maxWhy)
	case !slices.Contains(roles, role):
		return fmt.Errorf("%s does not have the role %s", s.By, role)
	}
	return nil
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Node is what the policy calls this node, or NODE_NAME, which a pod has of Kubernetes (its host's name is the pod's), or the host's name.
func Node(p policy.Fleet) (string, error) {
	name, err := cmp.Or(p.Node, os.Getenv("NODE_NAME")), error(nil)
	if name == "" {
		name, err = os.Hostname()
	}
	if err == nil && !policy.IsNode(name) {
		err = fmt.Errorf("a fleet cannot call it %s", strict.Quote(name))
	}
	if err != nil {
		return "", fmt.Errorf("find the node's name: %w: set fleet.node", err)
	}
	return name, nil
}

// NewKey makes a person's key in a file that must not be there, and returns the key that the policy names.
func NewKey(path string) (string, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", fmt.Errorf("make a key: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("make a key: %w", err)
	}
	_, err = f.WriteString(base64.StdEncoding.EncodeToString(key.Seed()) + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("make a key: %w", err), os.Remove(path))
	}
	return public(key), nil
}

// ReadKey reads what NewKey has made.
func ReadKey(path string) (ed25519.PrivateKey, error) {
	text, err := linux.ReadKey(path, "", nil)
	if err != nil {
		return nil, err
	}
	seed, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("read key: %s holds none that weir-fleet operator add has made", path)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

func public(key ed25519.PrivateKey) string {
	return base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey))
}
