package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"go.yaml.in/yaml/v3"
)

// Edit changes one item of a list in a policy file.
type Edit struct {
	Key     string   `json:"key"`               // of the list: allow, taint.trusted_networks, taint.secret_files
	Add     []string `json:"add,omitempty"`     // the lines of the new item
	Remove  string   `json:"remove,omitempty"`  // the text of the item that goes
	Comment string   `json:"comment,omitempty"` // one line, above what is added
}

// Apply makes the edits in the text of a policy file, which otherwise stays as it is. An edit that cannot be made is an error: then
// somebody has to do it by hand.
func Apply(name string, data []byte, edits []Edit) ([]byte, error) {
	before, err := Parse(name, data)
	if err != nil {
		return nil, err
	}
	for _, e := range edits {
		if data, err = e.apply(data); err != nil {
			return nil, err
		}
	}
	after, err := Parse(name, data)
	if err != nil {
		return nil, err
	}
	added, removed := 0, 0
	for _, e := range edits {
		if e.Remove != "" {
			removed++
		} else {
			added++
		}
	}
	size := func(p Policy) int { return len(p.Allow) + len(p.Taint.TrustedNetworks) + len(p.Taint.SecretFiles) }
	if size(after) != size(before)+added-removed {
		return nil, fmt.Errorf("%s: its lists are written in a way that cannot be edited: change it by hand", name)
	}
	return data, nil
}

func (e Edit) apply(data []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	byHand := fmt.Errorf("%s is written in a way that cannot be edited: change it by hand", e.Key)
	var key, list *yaml.Node
	in := doc.Content
	for word := range strings.SplitSeq(e.Key, ".") {
		if list != nil {
			in = []*yaml.Node{list}
		}
		if key, list = find(in, word); list == nil {
			break
		}
	}
	switch {
	case list == nil && e.Remove == "" && !strings.Contains(e.Key, "."):
		lines = append(append(lines, e.Key+":"), e.item("  ")...)
	case list == nil || list.Kind != yaml.SequenceNode:
		return nil, byHand
	case e.Remove != "":
		i := slices.IndexFunc(list.Content, func(n *yaml.Node) bool { return n.Value == e.Remove })
		if i < 0 || list.Style&yaml.FlowStyle != 0 || len(list.Content) == 1 {
			return nil, byHand
		}
		at := list.Content[i].Line - 1
		lines = slices.Delete(lines, at, at+1)
	case list.Style&yaml.FlowStyle == 0 && len(list.Content) > 0:
		lines = slices.Insert(lines, last(list), e.item(strings.Repeat(" ", list.Column-1))...)
	case len(list.Content) == 0:
		at := list.Line - 1
		start, rest := lines[at][:list.Column-1], lines[at][list.Column-1:]
		if !strings.HasPrefix(rest, "[]") {
			return nil, byHand
		}
		lines[at] = strings.TrimRight(strings.TrimRight(start, " ")+strings.TrimPrefix(rest, "[]"), " ")
		lines = slices.Insert(lines, list.Line, e.item(strings.Repeat(" ", key.Column+1))...)
	default:
		at := last(list) - 1
		end := strings.LastIndexByte(lines[at], ']')
		if end < 0 || len(e.Add) != 1 || strings.Contains(lines[at], "#") {
			return nil, byHand
		}
		lines[at] = lines[at][:end] + ", " + e.Add[0] + lines[at][end:]
	}
	return []byte(strings.Join(lines, "\n") + "\n"), nil
}

// item is the new item, below its comment.
func (e Edit) item(indent string) []string {
	var all []string
	if e.Comment != "" {
		all = append(all, indent+"# "+e.Comment)
	}
	for i, line := range e.Add {
		lead := "- "
		if i > 0 {
			lead = "  "
		}
		all = append(all, indent+lead+line)
	}
	return all
}

// find gives a key of a mapping, and its value.
func find(in []*yaml.Node, word string) (key, value *yaml.Node) {
	if len(in) != 1 || in[0].Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(in[0].Content); i += 2 {
		if in[0].Content[i].Value == word {
			return in[0].Content[i], in[0].Content[i+1]
		}
	}
	return nil, nil
}

// last is the last line that a node begins anything on, from 1.
func last(n *yaml.Node) int {
	line := n.Line
	for _, c := range n.Content {
		line = max(line, last(c))
	}
	return line
}

// Diff tells two texts apart, as diff -u does, with its hunks.
func Diff(name string, before, after []byte) string {
	_, hunks, _ := strings.Cut(string(diff.Diff(name, before, name, after)), "\n") // behind the line "diff"
	return hunks
}
