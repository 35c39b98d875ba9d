package wire

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// WebFetch is the tool that fetches a page by itself.
const WebFetch = "WebFetch"

// The tools that the bridge itself serves, and what their server is called.
const (
	Server            = "weir"
	VaultHTTPFetch    = "VaultHttpFetch"
	LocalMemoryRecall = "LocalMemoryRecall"
)

// Canonical is the name by which a tool of the bridge's own is known, whichever an agent gives it: mcp__SERVER__TOOL, weir.TOOL, mcp-weir-TOOL,
// functions.TOOL, in any case (F27).
// Every other tool's is what it is.
func Canonical(tool string) string {
	for _, own := range []string{VaultHTTPFetch, LocalMemoryRecall} {
		at := len(tool) - len(own)
		if at < 0 || !strings.EqualFold(tool[at:], own) {
			continue
		}
		before := strings.TrimPrefix(strings.ToLower(tool[:at]), "functions.")
		if before == "" || strings.HasPrefix(before, "mcp__") && strings.HasSuffix(before, "__") && len(before) > len("mcp____") {
			return own
		}
		separates := func(r rune) bool { return strings.ContainsRune("_-./:", r) }
		if parts := strings.FieldsFunc(before, separates); separates(rune(before[len(before)-1])) && (slices.Equal(parts, []string{Server}) || slices.Equal(parts, []string{"mcp", Server})) {
			return own
		}
	}
	return tool
}

// Names of tools that hand a text to a shell, or fetch a page, as plain has them; * stands for any text (F19).
var (
	shells = []string{
		"*bash*", "sh", "shexec*", "zsh", "*shell*", "*terminal*", "exec", "execcommand", "executecommand", "executecmd", "runcommand*", "runcmd*", "containerexec", "sandboxexec", "sshexec*", "unifiedexec",
		"startprocess", "runprocess", "launchprocess", "spawnprocess", "startbackground*", "runbackground*", "writestdin", "sendinput", "sendstdin", "interactwithprocess", "monitor",
	}
	notShells = []string{"*powershell*", "bashoutput*", "killshell*", "killbash*"}
	// With an address, or a command, alone: others do something else by these names.
	shellsOfAgents = []string{"run", "execute", "command", "cli", "system", "spawn", "subprocess", "runscript*", "executescript*"}
	fetchers       = []string{
		"webfetch*", "*webfetch", "fetchurl*", "urlfetch*", "fetchweb*", "fetchpage*", "fetchhtml", "fetchjson", "fetchmarkdown", "fetchtxt", "fetchtext", "fetchsite*", "httpfetch", "httpget", "httppost", "httprequest", "httpxrequest", "webrequest", "restrequest",
		"readurl*", "readwebpage*", "geturl*", "openurl", "downloadurl", "urlcontext", "scrapeurl*", "curl", "wget",
	}
	// Of the servers of tools whose every tool with a command, or an address, is one. A tool that is only called fetch may look up anything.
	shellServers = []string{"*shell", "shell*", "bash*", "terminal*", "*terminal", "commands", "*commander", "cli", "iterm*", "ssh*"}
	fetchServers = []string{"fetch*", "*fetch", "webfetch*", "http", "httpclient", "curl", "wget", "firecrawl*", "jina*"}
)

// fetchersOfURLs finds names that consist of words about pages alone, or begin with some: with an address these fetch it.
var fetchersOfURLs = sync.OnceValue(func() *regexp.Regexp {
	const (
		fetches = `fetch(?:er|ing)?|scrap(?:er?|ing)|crawl(?:er|ing)?|browse|spider|curl|wget|download(?:er)?|firecrawl|tavily|jina`
		reads   = `get|read(?:er)?|visit|load|open|view|retrieve|extract(?:or)?|convert|summari[sz]er?|summary|analy[sz]er?|preview|ingest|import|render(?:ed)?|screenshot`
		page    = `ur[il]s?|links?|web|https?x?(?:get|post|put|patch|delete|head)?|html|sites?|websites?|pages?|articles?|rss|feeds?|(?:make|send|api|http)*requests?|json|markdown|md|te?xt|raw|pdf|contents?|readab(?:le|ility)`
		beside  = `as|and|to|2|from|into|many|multi|multiple|batch|smart|deep|simple|full|clean|client|tool|file|data`
	)
	words := func(list ...string) string { return "(?:" + strings.Join(list, "|") + ")" }
	return regexp.MustCompile("^(?:" + words(fetches, reads, page, beside) + "*" + words(fetches, page) + words(fetches, reads, page, beside) + "*|" +
		words(fetches, reads) + words(beside) + "*(?:ur[il]|webpage|website).*|.*webpage.*|getpage.*|viewweb.*|fetchcontent.*|fetchandconvert.*|downloadfile.*|crawl(?:url|page|site).*)$")
})

// plain is a tool's name without case and what separates words, and that of the server, or of the group of tools, that offers it, if one does.
func plain(tool string) (name, server string) {
	tool = strings.ToLower(tool)
	if rest, ok := strings.CutPrefix(tool, "mcp__"); ok {
		server, tool, _ = strings.Cut(rest, "__")
	} else if i := strings.LastIndexAny(strings.ReplaceAll(tool, "__", "//"), "./:"); i > 0 && i < len(tool)-1 {
		server, tool = strings.TrimRight(tool[:i], "_"), tool[i+1:]
	}
	strip := strings.NewReplacer("_", "", "-", "", ".", "", " ", "", ":", "", "/", "")
	return strings.TrimRight(strip.Replace(tool), "0123456789"), strip.Replace(server)
}

func among(patterns []string, name string) bool {
	return name != "" && slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(p, name)
		return ok
	})
}

// IsShell says whether a tool is a shell of an agent that is known, which takes a command and nothing else.
func IsShell(tool string) bool {
	switch strings.ToLower(tool) {
	case "bash", "shell", "local_shell", "exec_command", "shell_command", "unified_exec", "container.exec":
		return true
	}
	return false
}

// NamesShell says whether a tool's name is one of a shell.
func NamesShell(tool string) bool {
	name, server := plain(tool)
	return !among(notShells, name) && (among(shells, name) || server == "" && among(shellsOfAgents, name))
}

// IsServed says whether a server of tools offers a tool: it may run elsewhere.
func IsServed(tool string) bool { return strings.HasPrefix(strings.ToLower(tool), "mcp__") }

// IsFetch says whether a call fetches a page by itself.
func IsFetch(tool string, input json.RawMessage) bool {
	name, server := plain(tool)
	switch {
	case strings.Contains(server, "browser"):
		return false
	case among(fetchers, name), server == "" && name == "fetch", among(fetchServers, server):
		return true
	}
	var in any
	_ = json.Unmarshal(input, &in) // what is not read names no page
	own := strings.TrimSuffix(strings.TrimPrefix(name, server), server)
	return (fetchersOfURLs().MatchString(name) || fetchersOfURLs().MatchString(own)) && hasAddress("", in)
}

// hasAddress says whether a value of a tool's input, of such a name, is the address of a page or has one in it.
func hasAddress(name string, value any) bool {
	name, _ = plain(name)
	switch v := value.(type) {
	case map[string]any:
		for name, value := range v {
			if hasAddress(name, value) {
				return true
			}
		}
	case []any:
		if slices.ContainsFunc(v, func(value any) bool { return hasAddress(name, value) }) {
			return true
		}
	case string:
		if v = strings.ToLower(v); name != "id" && (strings.HasPrefix(v, "http://") || strings.HasPrefix(v, "https://")) {
			return true
		}
	}
	name = strings.TrimSuffix(name, "s")
	return strings.HasSuffix(name, "url") || strings.HasSuffix(name, "uri") || name == "link" || name == "href"
}

// ShellText gives the text that a tool hands to a shell; ok tells that the tool is a shell's, text is empty if its input has no command, or two.
func ShellText(tool string, input json.RawMessage) (text string, ok bool) {
	known := IsShell(tool)
	fields := []string{"command", "cmd"}
	if !known {
		if _, server := plain(tool); !NamesShell(tool) && !among(shellServers, server) {
			return "", false
		}
		fields = []string{"command", "cmd", "script", "commandLine", "command_line", "CommandLine", "chars", "input", "commands"}
	}
	var in map[string]json.RawMessage // a struct's fields would take names in any case, and the agent does not
	if json.Unmarshal(input, &in) != nil {
		return "", known
	}
	given := 0
	for _, f := range fields {
		if l := line(in[f]); l != "" {
			text = l
			given++
		}
	}
	if !known && given == 0 {
		text = line(in["text"])
	}
	switch {
	case given > 1:
		return "", true // which of them runs is the tool's to choose
	case !known && strings.Trim(text, " \t\r\n\x03\x04\x1a") == "":
		return "", false // it looks at what runs, or ends it
	}
	return text, true
}

// ShellDir is where a shell's tool runs its command, when the agent is in dir; empty where that is not known: a tool may obey what its input says
// of it, or may not.
func ShellDir(tool string, input json.RawMessage, dir string) string {
	if strings.EqualFold(tool, "bash") {
		return dir
	}
	var in map[string]json.RawMessage
	if json.Unmarshal(input, &in) != nil {
		return ""
	}
	known := IsShell(tool)
	for name, raw := range in {
		var to string
		switch field, _ := plain(name); field {
		case "workdir", "cwd", "dir", "dirpath", "directory", "workingdirectory", "workingdir":
		default:
			continue
		}
		switch err := json.Unmarshal(raw, &to); {
		case err != nil && string(raw) != "null":
			return ""
		case to == "" || to == dir:
		case known && name == "workdir" && to[0] == '/':
			dir = to
		case known && name == "workdir" && dir != "":
			dir = path.Join(dir, to)
		default:
			return ""
		}
	}
	if !known && (IsServed(tool) || strings.Contains(strings.ToLower(tool), "stdin")) {
		return "" // it runs where its server is, or where cd went
	}
	return dir
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
	"apply_patch": true, "update_plan": true, "view_image": true, "read_file": true, "list_dir": true, "grep_files": true,
}
