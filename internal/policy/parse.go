package policy

import (
	"io"

	"weir/internal/linux"
)

// Error is one mistake in a policy file.
type Error = yamlError

// Load reads and parses the policy file at path. Errors of the file's contents
// are those of Parse.
func Load(path string) (Policy, error) {
	data, err := linux.ReadInput(path, MaxFile)
	if err != nil {
		return Policy{}, err
	}
	return Parse(path, data)
}

// Read reads a policy's text, as far as Parse needs it to refuse a file that is too large.
func Read(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, MaxFile+1)) }

// Parse reads a policy; what the data leaves out is as in Default. name is the
// file's name for errors. On any mistake it returns the zero Policy and all
// mistakes joined, in the order of their lines, each an *Error of one line.
func Parse(name string, data []byte) (Policy, error) {
	policy, _, err := parse(parser{yamlReader: yamlReader{Name: name}}, data)
	return policy, err
}

// Machine says what a policy is checked against.
type Machine struct {
	Cgroup func(name string) bool // has it a cgroup, by its path or its unit's name
	Group  func(name string) bool // of users, by its name or number
}

// Check is Parse, and also tells what is accepted and probably not meant, in the order of lines.
func Check(name string, data []byte, there Machine) (Policy, []*Error, error) {
	return parse(parser{yamlReader: yamlReader{Name: name}, there: there}, data)
}

func parse(p parser, data []byte) (Policy, []*Error, error) {
	policy := Default()
	if root := p.Document(data); root != nil {
		p.policy(root, &policy)
	}
	if err := p.Err(); err != nil {
		return Policy{}, nil, err
	}
	sortByPlace(p.notes)
	return policy, p.notes, nil
}

// parser knows the keys.
type parser struct {
	yamlReader
	there Machine // without functions: not asked

	places  map[string]map[string]place // of the keys of groups and the texts of lists, by where they are
	guard   place
	allowed []place // of Allow
}
