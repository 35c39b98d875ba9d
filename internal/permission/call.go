package permission

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/netip"
	"net/url"
	"strings"

	"weir/internal/bridge/wire"
	"weir/internal/toolguard"
)

// Call is one call of a tool, as rules see it.
type Call struct {
	Tool        string   // canonical
	Contents    []string // what contents of rules are compared with
	Within      []string // more of them, for deny alone: what the call is a part of
	Default     Decision // where no rule counts
	Interactive bool     // the tool needs a person: no mode takes that away (P5)
	Wrong       string   // a reason of type other to deny it, whatever is allowed

	name    string // by which the agent calls it
	kind    kind
	command string // of a shell, of PowerShell or cmd
	read    *script
	hosts   []string // of its addresses; empty where that cannot be told
	args    map[string]json.RawMessage
	paths   []string
	changes bool // it changes what the paths name
	place   *here
}

func (c Call) denials() Call {
	c.Contents = append(c.Contents[:len(c.Contents):len(c.Contents)], c.Within...)
	return c
}

// script is what the call's command runs.
func (c *Call) script() *script {
	if c.read.text == "" && c.command != "" {
		if c.kind == scripts {
			*c.read = *readLines(c.command)
		} else {
			*c.read = *readScript(c.command)
		}
	}
	return c.read
}

// names are those by which rules of whole tools mean the call: Edit is all tools that edit files, and Read all that read them.
func (c *Call) names() []string {
	all := []string{named(c.Tool)}
	switch lower := strings.ToLower(c.Tool); {
	case editors[lower] && c.Tool != "Edit":
		all = append(all, "Edit")
	case readers[lower] && c.Tool != "Read":
		all = append(all, "Read")
	}
	return all
}

// Of reads a call whose paths lead where they say. Tools that the bridge does not serve are allowed where no rule counts: the gate and the kernel judge
// what they do.
func Of(tool string, input json.RawMessage) Call { return Place{}.Call(tool, input) }

// Call reads a call that is made there.
func (p Place) Call(tool string, input json.RawMessage) Call {
	c := Call{Tool: Canonical(tool), name: tool, place: &here{p, map[string][]string{}}, read: new(script)}
	switch c.kind = kindOf(c.Tool); c.Tool {
	case VaultHTTPFetch:
		return c.vault(input)
	case LocalMemoryRecall:
		return c.recall(input)
	}
	c.Default = Allowed
	var in map[string]json.RawMessage
	if json.Unmarshal(input, &in) != nil {
		return c
	}
	c.args = in
	if c.kind != served && c.kind != shells {
		c.paths, c.changes = toolguard.Paths(tool, input)
	}
	fields := []string{"command", "cmd", "script", "file_path", "path", "notebook_path", "url"}
	switch c.kind {
	case shells:
		c.command, _ = wire.ShellText(tool, input)
		c.Contents = []string{c.command}
		return c
	case searches:
		fields = []string{"query"}
	case agents:
		fields = []string{"subagent_type", "agent_type"}
	case skills:
		fields = []string{"skill", "command", "name"}
	}
	for _, field := range fields {
		var text string
		if json.Unmarshal(in[field], &text) != nil || text == "" {
			continue
		}
		c.Contents = append(c.Contents, text)
		switch {
		case field == "url":
			c.hosts = append(c.hosts, hostOf(text))
			if u, err := url.Parse(text); err == nil && Host(u.Host) != "" {
				c.Contents = append(c.Contents, "domain:"+Host(u.Host))
			}
		case c.kind == scripts && c.command == "" && (field == "command" || field == "cmd" || field == "script"):
			c.command = text
		}
	}
	if c.kind == agents && len(c.Contents) == 0 {
		c.Contents = []string{"general-purpose"} // which it is then
	}
	if strings.EqualFold(tool, "Glob") && len(c.paths) <= 1 {
		c.paths = append(c.paths, globbed(c.paths, in["pattern"])...)
	}
	return c
}

// hostOf is the host that a browser takes out of an address, in lower case; empty where that takes more than is done here: other letters than those of
// ASCII, numbers for addresses, escapes.
func hostOf(address string) string {
	address = strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r == '\r' {
			return -1
		}
		return r
	}, strings.TrimFunc(address, func(r rune) bool { return r <= ' ' }))
	scheme, rest, _ := strings.Cut(address, ":")
	if !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return ""
	}
	rest = strings.TrimLeft(rest, `/\`)
	if i := strings.IndexAny(rest, `/\?#`); i >= 0 {
		rest = rest[:i]
	}
	host := strings.ToLower(rest[strings.LastIndexByte(rest, '@')+1:])
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.Trim(host[i+1:], "0123456789") == "" {
		host = host[:i]
	}
	host = strings.TrimRight(host, ".")
	_, notAddress := netip.ParseAddr(strings.Trim(host, "[]"))
	last := host[strings.LastIndexByte(host, '.')+1:]
	if notAddress != nil && (last == "" || last[0] >= '0' && last[0] <= '9' || strings.ContainsFunc(host, func(r rune) bool { return !keyRune(r) })) {
		return ""
	}
	return host
}

// globbed is where a pattern looks for files: the folders before its first wildcard, below the path that is given beside it.
func globbed(paths []string, raw json.RawMessage) []string {
	var pattern string
	if json.Unmarshal(raw, &pattern) != nil || pattern == "" {
		return nil
	}
	if i := strings.IndexAny(pattern, "*?[{"); i >= 0 {
		if pattern = pattern[:strings.LastIndexByte(pattern[:i], '/')+1]; pattern == "" {
			return nil
		}
	}
	if len(paths) == 1 && !strings.HasPrefix(pattern, "/") && !strings.HasPrefix(pattern, "~") {
		pattern = strings.TrimSuffix(paths[0], "/") + "/" + pattern
	}
	return []string{pattern}
}

func (c Call) vault(input json.RawMessage) Call {
	c.Default, c.Interactive = Asked, true
	var in struct{ Key, URL, Method, Reason string }
	err := exact(input, map[string]any{"vault_auth_key": &in.Key, "url": &in.URL, "method": &in.Method, "reason": &in.Reason})
	if err != nil || in.Key == "" || in.URL == "" || in.Reason == "" {
		c.Wrong = MissingField
	}
	if in.Key == "" {
		return c
	}
	if CheckKey(in.Key) != nil {
		c.Wrong = InvalidKey
		return c
	}
	c.Contents = []string{in.Key}
	if u, err := url.Parse(in.URL); err == nil {
		if host := Host(u.Host); host != "" {
			c.Contents = append(c.Contents, ForHost(in.Key, host), ForRequest(in.Key, host, cmp.Or(in.Method, "GET"), u.EscapedPath()))
		}
	}
	return c
}

// exact takes fields by their exact names, as whoever makes the call does: the standard decoder takes them in any case.
func exact(input json.RawMessage, into map[string]any) error {
	var in map[string]json.RawMessage
	err := json.Unmarshal(input, &in)
	for name, field := range into {
		if raw, ok := in[name]; ok {
			err = errors.Join(err, json.Unmarshal(raw, field))
		}
	}
	return err
}

// ForHost is the content that allows a key for one host.
func ForHost(key, host string) string { return key + "@" + host }

// ForRequest is the content that allows a key for one host, method and path, as an URL has it. What would end or widen a rule is escaped.
func ForRequest(key, host, method, path string) string {
	return ForHost(key, host) + " " + method + " " + strings.NewReplacer("*", "%2A", "(", "%28", ")", "%29").Replace(cmp.Or(path, "/"))
}

func (c Call) recall(input json.RawMessage) Call {
	c.Interactive = true // its texts are somebody's own: where a rule asks about them, no mode leaves the question out (P5)
	var in struct {
		Action, Store, Key string
		Preview            *bool
	}
	err := exact(input, map[string]any{"action": &in.Action, "store": &in.Store, "key": &in.Key, "preview_only": &in.Preview})
	if err != nil || in.Action == "" {
		c.Wrong = MissingField
		return c
	}
	need := func(keys ...string) bool {
		for _, k := range keys {
			switch {
			case k == "":
				c.Wrong = MissingField
			case CheckKey(k) != nil:
				c.Wrong = InvalidKey
			default:
				continue
			}
			return false
		}
		return true
	}
	switch {
	case in.Action == "list_stores":
		c.Contents, c.Default = []string{"list_stores"}, Allowed
	case in.Action == "list_entries" && need(in.Store):
		c.Contents, c.Default = []string{"list_entries:" + in.Store}, Allowed
	case in.Action == "fetch" && need(in.Store, in.Key):
		what := in.Store + "/" + in.Key
		if in.Preview == nil || *in.Preview {
			c.Contents, c.Within, c.Default = []string{"preview:" + what}, []string{"fetch:" + what}, Allowed
			return c
		}
		c.Contents, c.Default = []string{"fetch:" + what}, Asked
	case c.Wrong == "":
		c.Wrong = UnknownAction
	}
	return c
}
