package permission

import (
	"fmt"
	"net/netip"
	"strings"

	"weir/internal/bridge/wire"
	"weir/internal/strict"
)

// List is one of the lists of rules.
type List string

// The lists, in the order in which they are asked (P4).
const (
	Deny  List = "deny"
	Allow List = "allow"
	Ask   List = "ask"
)

// The tools that the bridge itself serves.
const (
	VaultHTTPFetch    = wire.VaultHTTPFetch
	LocalMemoryRecall = wire.LocalMemoryRecall
)

// Rule is one entry of a list: Tool, or Tool(content).
type Rule struct {
	Tool    string
	Content string // empty: the whole tool
}

// String is the rule as it is written in a file.
func (r Rule) String() string {
	if r.Content == "" {
		return r.Tool
	}
	return r.Tool + "(" + r.Content + ")"
}

// fault is why a rule is dropped.
type fault struct{ reason, suggestion string }

// ParseRule reads one rule of a list; validation knows the list it is for (P2).
func ParseRule(text string, list List) (Rule, error) {
	r, f := parseRule(text, list)
	if f != nil {
		return Rule{}, fmt.Errorf("rule %s: %s: %s", strict.Quote(text), f.reason, f.suggestion)
	}
	return r, nil
}

const (
	maxRule = 4096 // bytes
	maxTool = 128
)

func parseRule(text string, list List) (Rule, *fault) {
	tool, rest, content := strings.Cut(text, "(")
	inner, closed := strings.CutSuffix(rest, ")")
	switch {
	case text == "":
		return Rule{}, &fault{"it is empty", "name a tool"}
	case len(text) > maxRule:
		return Rule{}, &fault{fmt.Sprintf("it has more than %d bytes", maxRule), "write the tool alone, or a shorter content"}
	case strings.TrimSpace(tool) != tool && strings.TrimSpace(tool) != "":
		return Rule{}, &fault{"there is space around the tool's name", "write " + strict.Quote(strings.TrimSpace(tool))}
	case !toolName(tool):
		return Rule{}, &fault{fmt.Sprintf("%s is not a tool's name", strict.Quote(tool)), "begin with the tool's name: letters, digits, _, - and ."}
	case content && !closed && strings.HasSuffix(strings.TrimSpace(rest), ")"):
		return Rule{}, &fault{"there is space behind the bracket", "end it with )"}
	case content && !closed:
		return Rule{}, &fault{"the bracket is not closed", "end it with )"}
	case content && inner == "":
		return Rule{}, &fault{"the brackets are empty", fmt.Sprintf("write %s alone for the whole tool", strict.Quote(tool))}
	case strings.ContainsFunc(inner, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == '\uFFFD' }):
		return Rule{}, &fault{"its content has control characters, or is not UTF-8", "write plain text"}
	case content && strings.Contains(tool, "*"):
		return Rule{}, &fault{"a name with a wildcard cannot have brackets", fmt.Sprintf("write %s alone", strict.Quote(tool))}
	}
	for _, own := range []string{VaultHTTPFetch, LocalMemoryRecall} {
		if tool != own && strings.EqualFold(strings.ReplaceAll(tool, "_", ""), own) {
			return Rule{}, &fault{fmt.Sprintf("%s is not how the tool is spelled", strict.Quote(tool)), "write " + own}
		}
	}
	r := Rule{Tool: Canonical(tool), Content: inner}
	if inner == "*" && !isOwn(r.Tool) && kindOf(r.Tool) != served {
		r.Content = "" // as Claude Code has it
	}
	if list == Allow {
		if f := checkScope(tool); f != nil {
			return Rule{}, f
		}
	}
	if isOwn(r.Tool) && strings.Contains(inner, "*") && list != Deny {
		return Rule{}, wildcard(list)
	}
	if r.Content != "" {
		if f := r.checkContent(list); f != nil {
			return Rule{}, f
		}
	}
	return r, r.check(list)
}

// checkScope refuses to allow tools whose server is not named, and all of a server's where that is the sensor.
func checkScope(tool string) *fault {
	server, name, _ := strings.Cut(strings.TrimPrefix(tool, "mcp__"), "__")
	switch served := strings.HasPrefix(tool, "mcp__"); {
	case served && server == wire.Server && (name == "" || strings.Contains(name, "*")):
		return &fault{"the whole vault would be allowed", "allow one key: " + VaultHTTPFetch + "(github-token)"}
	case strings.Contains(tool, "*") && (!served || strings.Contains(server, "*")), tool == "mcp__":
		return &fault{"it allows tools of servers that it does not name", "name the server: mcp__github__*"}
	}
	return nil
}

// check knows the tools of the bridge.
func (r Rule) check(list List) *fault {
	switch {
	case r.Tool == VaultHTTPFetch && r.Content == "" && list == Allow:
		return &fault{"the whole vault would be allowed", "allow one key: " + VaultHTTPFetch + "(github-token)"}
	case r.Tool == LocalMemoryRecall && r.Content == "" && list == Allow:
		return &fault{"every entry would be allowed in full", "allow one entry: " + LocalMemoryRecall + "(fetch:store/key); lists and previews need no rule"}
	case r.Tool == VaultHTTPFetch && r.Content != "":
		return checkVault(r.Content, list)
	case r.Tool == LocalMemoryRecall && r.Content != "":
		return checkRecall(r.Content)
	}
	return nil
}

// key checks a key in which * may stand for characters.
func key(s string) *fault {
	if err := CheckKey(strings.ReplaceAll(s, "*", "x")); err != nil {
		why := err.(*KeyError).Why
		return &fault{fmt.Sprintf("%s is no key: %s", strict.Quote(s), why), "write the key as weir vault list or weir memory list shows it"}
	}
	return nil
}

// checkVault takes a key, key@host, which is one key for one host, or key@host METHOD /path.
func checkVault(content string, list List) *fault {
	name, host, ok := strings.Cut(content, "@")
	if f := key(name); f != nil {
		return f
	}
	host, request, narrow := strings.Cut(host, " ")
	method, path, two := strings.Cut(request, " ")
	switch {
	case narrow && list == Deny:
		return &fault{"deny cannot take a method and a path, since another spelling of the path would pass", "deny the key or the host, or bind the key: weir vault bind " + name + " --method GET --path /user"}
	case narrow && (!two || method == "" || strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" || !strings.HasPrefix(path, "/") || strings.ContainsAny(path, " ?#")):
		return &fault{"the host is not followed by a method and a path", "write them as the request has them: github-token@api.github.com GET /user"}
	}
	if ok && !strings.Contains(host, "*") && host != Host(host) {
		return &fault{fmt.Sprintf("%s is not written as hosts are compared", strict.Quote(host)), "write it in lower case, without https:// and path: github-token@api.github.com"}
	}
	return nil
}

func checkRecall(content string) *fault {
	action, rest, ok := strings.Cut(content, ":")
	switch {
	case content == "list_stores" || strings.Trim(content, "*") == "":
		return nil
	case action == "list_entries" && ok:
		return key(rest)
	case (action == "fetch" || action == "preview") && ok:
		store, entry, two := strings.Cut(rest, "/")
		if !two {
			if strings.Contains(rest, "*") {
				return key(rest)
			}
			return &fault{"it does not name an entry", "write fetch:store/key"}
		}
		if f := key(store); f != nil {
			return f
		}
		return key(entry)
	}
	return &fault{fmt.Sprintf("%s is not a content of this tool", strict.Quote(content)), "write list_stores, list_entries:store, preview:store/key or fetch:store/key"}
}

func toolName(s string) bool {
	if s == "" || len(s) > maxTool {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return !keyRune(r) && r != '*' })
}

// Canonical is the name by which rules know a tool: an agent calls what a server of tools offers mcp__SERVER__TOOL.
func Canonical(tool string) string { return wire.Canonical(tool) }

// Host is how a host is compared: in lower case, without a last dot, with its port where that is not 443. Empty: it is no host.
func Host(host string) string {
	host = strings.ToLower(host)
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		name, port = host[:i], host[i+1:]
		if port == "" || len(port) > 5 || strings.Trim(port, "0123456789") != "" {
			return ""
		}
		port = strings.TrimLeft(port, "0")
	}
	if inner, ok := strings.CutPrefix(name, "["); ok {
		addr, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return ""
		}
		name = "[" + addr.String() + "]"
	} else {
		name = strings.TrimSuffix(name, ".")
		if name == "" || len(name) > 253 || strings.ContainsFunc(name, func(r rune) bool { return !keyRune(r) }) {
			return ""
		}
	}
	if port != "" && port != "443" {
		name += ":" + port
	}
	return name
}
