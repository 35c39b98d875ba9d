// Package policies has the policies of weir guard's presets. It owns their texts, and reads nothing else.
package policies

import "embed"

//go:embed *.yaml
var files embed.FS

// Text is the policy of a preset as YAML: claude, codex or strict. The error wraps fs.ErrNotExist for any other name.
func Text(preset string) (string, error) {
	data, err := files.ReadFile(preset + ".yaml")
	return string(data), err
}
