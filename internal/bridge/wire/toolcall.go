package wire

import (
	"encoding/json"
	"path"
	"strings"
)

// WebFetch is the tool that fetches a page by itself.
const WebFetch = "WebFetch"

// ShellText gives the text that a tool hands to a shell; ok tells that the tool is a shell's, text is empty if its input has no command, or two.
func ShellText(tool string, input json.RawMessage) (text string, ok bool) {
	switch tool {
	case "Bash", "bash", "shell", "local_shell", "exec_command", "shell_command", "unified_exec", "container.exec":
	default:
		return "", false
	}
	var in map[string]json.RawMessage // a struct's fields would take names in any case, and the agent does not
	if json.Unmarshal(input, &in) != nil {
		return "", true
	}
	command, cmd := line(in["command"]), line(in["cmd"])
	if command != "" && cmd != "" {
		return "", true // which of them runs is the tool's to choose
	}
	return command + cmd, true
}

// line is a command, given as a text or as an argv.
func line(raw json.RawMessage) string {
	var text string
	var argv []string
	switch {
	case len(raw) == 0:
	case json.Unmarshal(raw, &text) == nil:
		return text
	case json.Unmarshal(raw, &argv) == nil && len(argv) > 0:
		return join(argv)
	}
	return ""
}

// join is an argv as a shell text: what a shell was told to run, or the words, quoted.
func join(argv []string) string {
	if len(argv) == 3 && (argv[1] == "-c" || argv[1] == "-lc") {
		switch path.Base(argv[0]) {
		case "sh", "bash", "dash", "zsh":
			return argv[2]
		}
	}
	words := make([]string, len(argv))
	for i, a := range argv {
		words[i] = quote(a)
	}
	return strings.Join(words, " ")
}

func quote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./,:@%+", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// IsLocal says whether a tool of the agents that are known only works on local files or on the agent itself.
func IsLocal(tool string) bool { return local[tool] }

var local = map[string]bool{
	"Read": true, "Write": true, "Edit": true, "MultiEdit": true, "NotebookEdit": true, "NotebookRead": true, "Glob": true, "Grep": true, "LS": true,
	"TodoWrite": true, "TodoRead": true, "TaskCreate": true, "TaskUpdate": true, "TaskList": true, "TaskGet": true, "TaskOutput": true, "TaskStop": true,
	"Task": true, "Agent": true, "BashOutput": true, "KillShell": true, "KillBash": true, "EnterPlanMode": true, "ExitPlanMode": true, "AskUserQuestion": true,
	"Skill": true, "SlashCommand": true, "ToolSearch": true,
	"apply_patch": true, "update_plan": true, "view_image": true, "write_stdin": true, "read_file": true, "list_dir": true, "grep_files": true,
}
