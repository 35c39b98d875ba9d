package policy

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Error is one mistake in a policy file.
type Error = yamlError

// Load reads and parses the policy file at path. Errors of the file's contents
// are those of Parse.
func Load(path string) (Policy, error) {
	f, err := os.Open(path)
	if err != nil {
		return Policy{}, fmt.Errorf("open policy %s: %w", path, errors.Unwrap(err)) // os.Open's error says open, too
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return Policy{}, fmt.Errorf("read policy: %w", err)
	}
	return Parse(path, data)
}

// Parse reads a policy; what the data leaves out is as in Default. name is the
// file's name for errors. On any mistake it returns the zero Policy and all
// mistakes joined, in the order of their lines, each an *Error of one line.
func Parse(name string, data []byte) (Policy, error) {
	p := parser{yamlReader{Name: name}}
	policy := Default()
	if root := p.Document(data); root != nil {
		p.policy(root, &policy)
	}
	if err := p.Err(); err != nil {
		return Policy{}, err
	}
	return policy, nil
}

// parser knows the keys.
type parser struct{ yamlReader }
