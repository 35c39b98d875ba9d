package permission

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
)

// Call is one call of a tool, as rules see it.
type Call struct {
	Tool        string   // canonical
	Contents    []string // what contents of rules are compared with
	Within      []string // more of them, for deny alone: what the call is a part of
	Default     Decision // where no rule counts
	Interactive bool     // the tool needs a person: no mode takes that away (P5)
	Wrong       string   // a reason of type other to deny it, whatever is allowed
}

func (c Call) denials() Call {
	c.Contents = append(c.Contents[:len(c.Contents):len(c.Contents)], c.Within...)
	return c
}

// Of reads a call. Tools that the bridge does not serve are allowed where no rule counts: the gate and the kernel judge what they do.
func Of(tool string, input json.RawMessage) Call {
	c := Call{Tool: Canonical(tool)}
	switch c.Tool {
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
	for _, field := range []string{"command", "cmd", "script", "file_path", "path", "notebook_path", "url"} {
		var text string
		if json.Unmarshal(in[field], &text) != nil || text == "" {
			continue
		}
		c.Contents = append(c.Contents, text)
		if u, err := url.Parse(text); field == "url" && err == nil && Host(u.Host) != "" {
			c.Contents = append(c.Contents, "domain:"+Host(u.Host))
		}
	}
	return c
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
