package agenthook

import (
	"encoding/json"
	"os"

	"weir/internal/bridge/wire"
	"weir/internal/toolguard"
)

// standing is what stands without the host, since it needs neither taint nor policy (K1): the kill switch, where its file can be seen from
// here, and the rules that are compiled in. The operator's own rules are the host's to read.
func (a asker) standing(c call) string {
	tool, input := c.ToolName, c.Input
	if text, ok := wire.ShellText(tool, input); ok && wire.IsShell(tool) { // as the host judges it
		tool, input = "Bash", nil
		if data, err := json.Marshal(map[string]string{"command": text}); err == nil {
			input = data
		}
	}
	if _, err := os.Lstat(a.killed); err == nil && toolguard.Changes(tool) {
		return wire.Killed
	}
	if hit, ok := toolguard.New(toolguard.Options{}).CheckIn(tool, input, wire.SeenBy("self", c.Dir)); ok {
		return hit.Message()
	}
	return ""
}
