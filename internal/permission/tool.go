package permission

import (
	"cmp"
	"strings"

	"weir/internal/bridge/wire"
	"weir/internal/commands"
	"weir/internal/strict"
	"weir/internal/toolguard"
)

// kind says what the contents of a tool's rules are compared with.
type kind uint8

const (
	texts    kind = iota // one of its arguments, as it is
	own                  // a tool of the sensor's
	served               // of a server of tools: nothing
	shells               // commands of a shell
	scripts              // commands of PowerShell and cmd, in any case
	files                // paths
	sites                // domain:host
	searches             // what is looked for
	agents               // the type of a sub-agent
	skills               // a skill's name, or the beginning of one
)

// older are names that tools had, and have now.
var older = map[string]string{"Task": "Agent", "AgentOutput": "TaskOutput", "BashOutput": "TaskOutput", "KillShell": "TaskStop", "KillBash": "TaskStop"}

// named is the name by which rules and calls of a tool meet: all shells of agents that are known are Bash.
func named(tool string) string {
	tool = Canonical(tool)
	switch {
	case older[tool] != "":
		return older[tool]
	case isShell(tool):
		return "Bash"
	}
	return tool
}

// isShell says whether a tool is a shell of an agent's own, by its name.
func isShell(tool string) bool {
	return wire.IsShell(tool) || !wire.IsServed(tool) && wire.NamesShell(tool)
}

func isOwn(tool string) bool { return tool == VaultHTTPFetch || tool == LocalMemoryRecall }

// Tools whose files the rules of Edit and of Read are about, in lower case; what others do with files is told by their names (toolguard.Paths).
var (
	editors = commands.Names(strings.ToLower("Edit Write MultiEdit NotebookEdit apply_patch write_file edit_file replace str_replace_based_edit_tool fs_write fs_delete"))
	rereads = commands.Names(strings.ToLower("Edit MultiEdit edit_file replace str_replace_based_edit_tool str_replace_editor")) // who may not read a file may not edit it either
	readers = commands.Names(strings.ToLower("Read NotebookRead Grep Glob LS view_image read_file read_many_files list_dir list_directory grep_files fs_read fs_list"))
)

// kindOf is what rules of a tool are about, by its canonical name.
func kindOf(tool string) kind {
	switch lower := strings.ToLower(tool); {
	case isOwn(tool):
		return own
	case wire.IsServed(tool):
		return served
	case named(tool) == "Bash":
		return shells
	case lower == "powershell" || lower == "pwsh" || lower == "powershell_exec" || lower == "cmd" || lower == "cmd_exec":
		return scripts
	case editors[lower] || readers[lower]:
		return files
	case lower == "websearch":
		return searches
	case named(tool) == "Agent":
		return agents
	case tool == "Skill" || tool == "SlashCommand":
		return skills
	case wire.IsFetch(tool, nil):
		return sites
	}
	return texts
}

// others are tools of agents that have no rules but whole ones, as far as they are known.
var others = commands.Names(strings.ToLower(`TodoWrite TodoRead TaskCreate TaskUpdate TaskList TaskGet TaskOutput TaskStop EnterPlanMode ExitPlanMode AskUserQuestion ToolSearch EnterWorktree ExitWorktree LSP
 ListMcpResourcesTool ReadMcpResourceTool WaitForMcpServers SendMessage TeamCreate TeamDelete CronCreate CronDelete CronList Monitor ScheduleWakeup RemoteTrigger PushNotification SendUserFile Workflow REPL Config
 StructuredOutput update_plan write_stdin spawn_agent send_input wait close_agent resume_agent request_user_input tool_search web_search list_mcp_resources list_mcp_resource_templates read_mcp_resource js_repl
 agent_update google_web_search save_memory glob search_file_content`))

// known says whether a tool's name is one that agents are known to have.
func known(tool string) bool {
	return kindOf(tool) != texts || strings.Contains(tool, "*") || others[strings.ToLower(tool)] || toolguard.Known(tool) || wire.IsLocal(tool)
}

// near is the known name that is most like one; empty: there is none.
func near(tool string) string {
	for _, name := range strings.Fields("Bash Read Edit Write MultiEdit NotebookEdit NotebookRead Grep Glob LS WebFetch WebSearch Agent Task Skill PowerShell TodoWrite " + VaultHTTPFetch + " " + LocalMemoryRecall) {
		if a, b := strings.ToLower(name), strings.ToLower(tool); sorted(a) == sorted(b) || len(b) > 2 && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) || oneOff(a, b) {
			return name
		}
	}
	return ""
}

func sorted(s string) string {
	var n [256]byte
	for i := range len(s) {
		n[s[i]]++
	}
	return string(n[:])
}

// oneOff says whether one character more, less or other makes one text the other.
func oneOff(a, b string) bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(b) && a[i] == b[i] {
		i++
	}
	return len(a) == len(b) && i < len(a) && a[i+1:] == b[i+1:] || len(a) == len(b)+1 && a[i+1:] == b[i:]
}

// example shows a rule that a list accepts: about the tool that a text begins with, as far as that can be told.
func example(text string, l List) string {
	tool, _, _ := strings.Cut(strings.TrimSpace(text), "(")
	tool = strings.TrimSpace(tool)
	lower := strings.ToLower(strings.ReplaceAll(tool, "_", ""))
	vault := map[List]string{Deny: VaultHTTPFetch, Ask: VaultHTTPFetch, Allow: VaultHTTPFetch + "(github-token)"}[l]
	switch {
	case strings.Contains(lower, "vault"):
		return vault
	case strings.Contains(lower, "memory") || strings.Contains(lower, "recall"):
		return map[List]string{Deny: LocalMemoryRecall + "(fetch:*/*)", Ask: LocalMemoryRecall, Allow: LocalMemoryRecall + "(fetch:notes/todo)"}[l]
	case strings.HasPrefix(lower, "mcp"):
		return "mcp__github__get_issue"
	}
	if kindOf(tool) == texts && near(tool) != "" {
		tool = near(tool)
	}
	switch kindOf(tool) {
	case files:
		if readers[strings.ToLower(tool)] {
			return "Read(./.env)"
		}
		return "Edit(/src/**)"
	case sites:
		return "WebFetch(domain:example.com)"
	case searches:
		return "WebSearch"
	case agents:
		return "Agent(Explore)"
	case skills:
		return tool + "(deploy)"
	case scripts:
		return tool + "(Get-ChildItem *)"
	case texts:
		if toolName(tool) && known(tool) && !strings.Contains(tool, "*") {
			return tool
		}
	}
	return map[List]string{Deny: "Bash(git push:*)", Ask: "Bash(git push:*)", Allow: "Bash(npm run test:*)"}[l]
}

// params are names of arguments of tools whose contents mean something else.
var params = commands.Names(strings.ToLower(`command file_path path notebook_path url query prompt description subagent_type model isolation run_in_background skill args pattern timeout name team_name mode cwd resume max_turns effort
 limit offset pages content old_string new_string replace_all new_source cell_id cell_type edit_mode glob type output_mode head_limit multiline allowed_domains blocked_domains dangerouslyDisableSandbox timeout_ms persistent`))

// canonical are arguments that Claude Code compares by the contents alone.
var canonical = commands.Names("command file_path path notebook_path url")

// param is the argument that a rule compares, and with what: Agent(model:opus), and * stands for any text in it.
func (r Rule) param() (name, value string, ok bool) {
	name, value, ok = strings.Cut(r.Content, ":")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	k := kindOf(r.Tool)
	switch {
	case !ok || k == own || name == "" || name == "domain" || strings.ContainsFunc(name, func(c rune) bool { return !keyRune(c) || c == '.' || c == '-' }):
		return "", "", false
	case params[strings.ToLower(name)]:
		ok = k != shells && k != scripts || value != "*" // which is the beginning of a command
	default:
		ok = (k == texts || k == served) && !strings.HasPrefix(value, "//")
	}
	return name, value, ok
}

func (r Rule) isParam() bool {
	_, _, ok := r.param()
	return ok
}

// checkContent knows what is written in brackets behind a tool's name.
func (r Rule) checkContent(list List) *fault {
	k := kindOf(r.Tool)
	if name, value, ok := r.param(); ok {
		write := r.Tool + "(" + value + ")"
		if k == agents || k == texts || k == served {
			write = r.Tool
		}
		switch {
		case canonical[strings.ToLower(name)] && k != texts && k != served && k != agents || strings.EqualFold(name, "query") && k == searches || strings.EqualFold(name, "skill") && k == skills:
			return &fault{"it compares the argument " + name + ", which the content does by itself", "write the content alone: " + write}
		case list == Allow:
			return &fault{"it allows by the argument " + name + " alone, whatever else the call does", "write it in deny or ask, or allow " + write}
		}
		return nil
	}
	switch k {
	case own:
		return nil
	case served:
		return &fault{"a tool of an MCP server takes no brackets", "write " + r.Tool + " alone, or mcp__server__* for all tools of a server"}
	case shells, scripts:
		return checkCommand(r.Content)
	case files:
		_, f := readPath(r.Content)
		return f
	case sites:
		return checkSite(r.Content)
	case searches:
		if strings.ContainsAny(r.Content, "*?") {
			return &fault{"searches are compared exactly, without wildcards", "write the words that are looked for, or WebSearch alone"}
		}
		return nil
	case agents, skills:
		if strings.Contains(r.Content, ",") {
			return &fault{"a comma does not make a list", "write one rule for each: " + r.Tool + "(" + strings.TrimSpace(strings.SplitN(r.Content, ",", 2)[0]) + ")"}
		}
		return nil
	}
	switch {
	case others[strings.ToLower(r.Tool)] && r.Tool != "agent_update":
		return &fault{"nothing in its calls is compared", "write " + r.Tool + " alone"}
	case r.Tool == "Cd":
		return &fault{"a change of directory is not reported", "write what may not be done there: Edit(//srv/data/**)"}
	case strings.Contains(r.Content, "*") && list != Deny:
		return wildcard(list)
	}
	return nil
}

func wildcard(list List) *fault {
	return &fault{"a wildcard stands in " + string(list), "write the exact content, one rule for each; * counts in deny only"}
}

// checkSite takes domain:host, in which * stands for any part of one label, *. before it for any below, and * alone for all.
func checkSite(content string) *fault {
	host, ok := strings.CutPrefix(content, "domain:")
	switch {
	case strings.Contains(content, "://"):
		host = cmp.Or(Host(strings.SplitN(content[strings.Index(content, "://")+3:], "/", 2)[0]), "example.com")
		return &fault{"addresses are compared by their host", "write WebFetch(domain:" + host + ")"}
	case !ok:
		return &fault{strict.Quote(content) + " is not a content of this tool", "write WebFetch(domain:example.com)"}
	case strings.ContainsAny(host, "/?#"):
		return &fault{"a path is not compared", "write the host alone: WebFetch(domain:example.com)"}
	case strings.Contains(host, ":"):
		return &fault{"a port is not compared", "write the host alone: WebFetch(domain:example.com)"}
	case host == "" || strings.ContainsFunc(strings.TrimRight(host, "."), func(r rune) bool { return !keyRune(r) && r != '*' }) || strings.Trim(host, ".") == "":
		return &fault{strict.Quote(host) + " is no host", "write WebFetch(domain:example.com), or domain:*.example.com for all below it"}
	}
	return nil
}
