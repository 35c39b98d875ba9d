package permission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"weir/internal/policy"
	"weir/internal/strict"
)

const (
	maxFile  = 1 << 20 // bytes
	maxRules = 10000   // of one file
)

// File is one file of rules. Managed marks the administrator's: its rules cannot be widened by others (P3).
type File struct {
	Name    string // for messages
	Data    []byte
	Managed bool
}

// Warning is one rule, or one setting, that was dropped, or that is in force and may mean nothing: all else of the file is in force (P3).
type Warning struct {
	Rule       string `json:"rule"`
	List       List   `json:"list,omitempty"`
	File       string `json:"file"`
	Line       int    `json:"line,omitempty"` // from 1
	Reason     string `json:"reason"`
	Suggestion string `json:"suggestion"`
	Example    string `json:"example"`            // of what is accepted there
	InForce    bool   `json:"in_force,omitempty"` // it was not dropped
}

// String is the warning in one line.
func (w Warning) String() string {
	at := w.File
	if w.Line > 0 {
		at = fmt.Sprintf("%s:%d", w.File, w.Line)
	}
	what := strict.Quote(w.Rule)
	if w.List != "" {
		what = fmt.Sprintf("the rule %s in %s", what, w.List)
	}
	is := "is dropped"
	if w.InForce {
		is = "is in force"
	}
	told := fmt.Sprintf("%s: %s %s: %s: %s", at, what, is, w.Reason, w.Suggestion)
	if w.Example != "" {
		told += ", for example " + w.Example
	}
	return told
}

// Dropped is how many of the warnings are about what is not in force.
func Dropped(warnings []Warning) (n int) {
	for _, w := range warnings {
		if !w.InForce {
			n++
		}
	}
	return n
}

// Parse makes one Set of files in YAML or JSON; the administrator's is read last, wherever it stands in the arguments. A bad rule
// is dropped with a warning. An error tells of a file that cannot be read at all: then there is no Set, and the one before stays.
func Parse(files ...File) (*Set, []Warning, error) {
	s := newSet()
	var warnings []Warning
	for _, managed := range []bool{false, true} {
		for _, f := range files {
			if f.Managed != managed {
				continue
			}
			r := reader{file: f, rules: s.own}
			if managed {
				r.rules = s.managed
			}
			if err := r.read(); err != nil {
				if mistake, ok := errors.AsType[*policy.Error](err); ok { // it says where
					return nil, warnings, fmt.Errorf("read permissions: %w", mistake)
				}
				return nil, warnings, fmt.Errorf("read permissions: %s: %w", f.Name, err)
			}
			warnings = append(warnings, r.warnings...)
		}
	}
	return s, warnings, nil
}

type reader struct {
	file     File
	rules    *layer
	count    int
	warnings []Warning
	asks     []asking
}

type asking struct {
	rule Rule
	at   *yaml.Node
}

func (r *reader) read() error {
	root, err := document(r.file.Name, r.file.Data)
	if err != nil || root == nil {
		return err
	}
	if root.Kind != yaml.MappingNode {
		return errors.New("it has no lists: write deny:, allow: and ask:, each with a list of rules")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		name, value := root.Content[i], root.Content[i+1]
		if seen[name.Value] {
			r.warn(name, name.Value, "", "it stands twice", "join both lists; their rules are in force")
		}
		seen[name.Value] = true
		switch l := List(name.Value); {
		case l == Deny || l == Allow || l == Ask:
			r.list(l, value)
		case name.Value == "version":
			if value.Value != "1" {
				r.warn(value, "version", "", "it is "+strict.Quote(value.Value), "write version: 1, or nothing")
			}
		default:
			suggestion := "write rules in deny, allow and ask"
			if name.Value == "permissions" {
				suggestion = "move its lists deny, allow and ask to the beginning of their lines"
			}
			r.warn(name, name.Value, "", "this file has no such setting", suggestion)
		}
		if r.count > maxRules {
			return fmt.Errorf("it has more than %d rules: write whole tools, or wildcards in deny", maxRules)
		}
	}
	for _, a := range r.asks { // Claude Code asks before it allows
		if by, ok := r.rules.lists[Allow].before(a.rule); ok {
			r.warn(a.at, a.at.Value, Ask, by.String()+" in allow is checked first, so nothing is asked", "take that out of allow, or write this in deny")
			r.warnings[len(r.warnings)-1].InForce = true
		}
	}
	return nil
}

// before is the rule that allows all that another one asks about, as far as its tool and the beginning of its command tell.
func (t *table) before(asks Rule) (Rule, bool) {
	var input json.RawMessage
	if k := kindOf(asks.Tool); k == shells && asks.Content != "" && !asks.isParam() {
		text := strings.TrimSuffix(strings.TrimSuffix(unescape(asks.Content), ":*"), " *")
		input, _ = json.Marshal(map[string]string{"command": strings.ReplaceAll(text, "*", "x")})
	}
	return t.first(new(Of(asks.Tool, input)), Allow)
}

func (r *reader) list(l List, n *yaml.Node) {
	switch {
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		return
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str":
		r.rule(l, n) // dropping a lone deny would widen
		return
	case n.Kind != yaml.SequenceNode:
		r.warn(n, inLine(n), l, "it is not a list", "write it as a list of rules")
		return
	}
	for _, item := range n.Content {
		if r.count++; r.count > maxRules {
			return
		}
		r.rule(l, item)
	}
}

func (r *reader) rule(l List, n *yaml.Node) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		suggestion := "write Tool or Tool(content), in quotes if YAML reads it as something else"
		if n.Kind == yaml.MappingNode && len(n.Content) == 2 && n.Content[0].Kind == yaml.ScalarNode && n.Content[1].Kind == yaml.ScalarNode {
			meant := n.Content[0].Value + "(" + n.Content[1].Value + ")"
			if strings.Contains(n.Content[0].Value, "(") {
				meant = n.Content[0].Value + ": " + n.Content[1].Value
			}
			if _, f := parseRule(meant, l); f == nil {
				suggestion = "write it as one text: " + strict.Quote(meant)
			}
		}
		r.warn(n, inLine(n), l, "it is not a text", suggestion)
		return
	}
	rule, f := parseRule(n.Value, l)
	if f != nil {
		r.warn(n, n.Value, l, f.reason, f.suggestion)
		return
	}
	r.rules.add(rule, l)
	if l == Ask && !isOwn(rule.Tool) && !strings.Contains(rule.Tool, "*") {
		r.asks = append(r.asks, asking{rule, n})
	}
	if !known(rule.Tool) {
		suggestion := "check that it is spelled as the agent calls it"
		if name := near(rule.Tool); name != "" {
			suggestion = "did you mean " + name + "?"
		}
		r.warn(n, n.Value, l, "no tool is known by that name", suggestion)
		r.warnings[len(r.warnings)-1].InForce = true
	}
}

func (r *reader) warn(n *yaml.Node, rule string, l List, reason, suggestion string) {
	r.warnings = append(r.warnings, Warning{
		Rule: rule, List: l, File: r.file.Name, Line: n.Line, Reason: reason, Suggestion: suggestion, Example: example(rule, l),
	})
}

// maxShown is how much of what is no text is shown, in bytes.
const maxShown = 120

// inLine is a node as one line, as a person would write it.
func inLine(n *yaml.Node) string {
	var b strings.Builder
	var write func(n *yaml.Node)
	write = func(n *yaml.Node) {
		switch n.Kind {
		case yaml.MappingNode, yaml.SequenceNode:
			open, end := "[", "]"
			if n.Kind == yaml.MappingNode {
				open, end = "{", "}"
			}
			b.WriteString(open)
			for i, item := range n.Content {
				if b.Len() > maxShown {
					break
				}
				switch {
				case i == 0:
				case n.Kind == yaml.MappingNode && i%2 == 1:
					b.WriteString(": ")
				default:
					b.WriteString(", ")
				}
				write(item)
			}
			b.WriteString(end)
		case yaml.AliasNode:
			b.WriteString("*" + n.Value)
		case yaml.ScalarNode:
			if n.ShortTag() == "!!null" {
				b.WriteString("null")
				return
			}
			b.WriteString(n.Value)
		}
	}
	write(n)
	text := strings.Join(strings.Fields(b.String()), " ")
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return text
}

// document is the root of a file; nil: the file says nothing.
func document(name string, data []byte) (*yaml.Node, error) {
	switch {
	case len(data) > maxFile:
		return nil, fmt.Errorf("it has more than %d bytes", maxFile)
	case !utf8.Valid(data):
		return nil, errors.New("it is not UTF-8")
	}
	root, err := parseYAML(name, data)
	if err == nil || !json.Valid(data) {
		return root, err
	}
	// JSON that YAML does not take, by surrogates or tabs.
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return parseYAML(name, plain)
}

func parseYAML(name string, data []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, policy.NotYAML(name, data, err)
	}
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, errors.New("it has more than one document")
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		return nil, nil
	}
	return root, nil
}

// Add writes one more rule into a list of a file, whose comments stay. What is there already is returned as it is.
func Add(data []byte, l List, rule string) ([]byte, error) {
	if _, err := ParseRule(rule, l); err != nil {
		return nil, err
	}
	root, err := document("the file", data)
	if err != nil {
		return nil, fmt.Errorf("add rule: %w", err)
	}
	if root == nil {
		root = &yaml.Node{Kind: yaml.MappingNode}
	}
	if root.Kind != yaml.MappingNode {
		return nil, errors.New("add rule: the file has no lists")
	}
	var list *yaml.Node
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == string(l) {
			list = root.Content[i+1]
		}
	}
	item := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: rule}
	switch {
	case list == nil:
		list = &yaml.Node{Kind: yaml.SequenceNode}
		root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: string(l)}, list)
	case list.Kind == yaml.ScalarNode && list.ShortTag() == "!!null":
		*list = yaml.Node{Kind: yaml.SequenceNode}
	case list.Kind == yaml.ScalarNode:
		old := *list
		*list = yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{&old}}
	case list.Kind != yaml.SequenceNode:
		return nil, fmt.Errorf("add rule: %s is no list", l)
	}
	for _, have := range list.Content {
		if have.Value == rule {
			return data, nil
		}
	}
	list.Content = append(list.Content, item)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(root), enc.Close()); err != nil {
		return nil, fmt.Errorf("add rule: %w", err)
	}
	return out.Bytes(), nil
}
