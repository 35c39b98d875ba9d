package modelproxy

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// inspect says whether a request would have the upstream contact an address that the request names: then the model's service itself would be the way
// out. It looks for sources by URL, servers of MCP, kinds of tools that are not known to fetch nothing,
// and what is stored there and may have any of these (B168).
func (a API) inspect(body []byte) Code {
	if !json.Valid(body) {
		return Content
	}
	w := walker{api: a, b: body}
	if w.space(); w.b[w.at] != '{' {
		return Content
	}
	w.value("")
	return w.code
}

// walker goes once through a text that is valid JSON, which bounds how deep it is.
type walker struct {
	api  API
	b    []byte
	at   int
	code Code
}

func (w *walker) refuse(code Code) {
	if w.code == "" {
		w.code = code
	}
}

func (w *walker) space() {
	for w.at < len(w.b) && strings.IndexByte(" \t\r\n,:", w.b[w.at]) >= 0 {
		w.at++
	}
}

// value goes over one; name is that of the field that it is in, or that its array is in.
func (w *walker) value(name string) {
	switch w.b[w.at] {
	case '{':
		w.object(name)
	case '[':
		w.at++
		for w.space(); w.more(']'); w.space() {
			w.value(name)
		}
	case '"':
		w.text()
	default:
		for w.at < len(w.b) && strings.IndexByte(" \t\r\n,]}", w.b[w.at]) < 0 {
			w.at++
		}
	}
}

// more says whether something stands before the end of an array or object, and goes over the end.
func (w *walker) more(end byte) bool {
	if w.b[w.at] == end {
		w.at++
		return false
	}
	return true
}

// text goes over a string and returns it as it stands, with its quotes.
func (w *walker) text() []byte {
	begin := w.at
	for w.at++; ; w.at++ {
		w.at += bytes.IndexByte(w.b[w.at:], '"')
		back := 0
		for w.b[w.at-1-back] == '\\' {
			back++
		}
		if back%2 == 0 {
			w.at++
			return w.b[begin:w.at]
		}
	}
}

func plain(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return ""
	}
	return s
}

const mostFields = 4096 // of one object

// folded is a name as a reader may take it that makes no difference between small and large letters, as encoding/json does.
func folded(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "ſ", "s")
}

func (w *walker) object(in string) {
	names := map[string]bool{}
	kind, closed := "", false
	w.at++
	for w.space(); w.more('}'); w.space() {
		name := folded(plain(w.text()))
		if names[name] || len(names) >= mostFields { // the upstream may take either
			w.refuse(Content)
		} else {
			names[name] = true
		}
		w.space()
		code := w.code
		begin := w.at
		w.value(name)
		value := w.b[begin:w.at]
		if slices.Contains(w.api.schemas, name) {
			w.code = code // what the client keeps there asks for nothing
		}
		switch name {
		case "type":
			if value[0] == '"' {
				kind = plain(value)
			}
		case "model":
			switch {
			case in != "":
			case value[0] != '"':
				w.refuse(Content)
			case strings.Contains(folded(plain(value)), "-search"): // it searches without a tool
				w.refuse(Fetches)
			}
		case "external_web_access":
			closed = string(value) == "false"
		case "mcp_servers":
			if !empty(value) {
				w.refuse(Fetches)
			}
		case "skills":
			if !empty(value) {
				w.refuse(Stored)
			}
		case "prompt", "agent", "agent_reference": // they bring tools of their own
			if in == "" && string(value) != "null" {
				w.refuse(Stored)
			}
		case "image_url":
			if value[0] == '"' && !strings.HasPrefix(plain(value), "data:") {
				w.refuse(Fetches)
			}
		case "file_url", "server_url", "connector_id", "web_search_options":
			if string(value) != "null" {
				w.refuse(Fetches)
			}
		case "url":
			if in == "image_url" && (value[0] != '"' || !strings.HasPrefix(plain(value), "data:")) {
				w.refuse(Fetches)
			}
		}
	}
	switch {
	case kind == "url" && in == "source":
		w.refuse(Fetches)
	case in == "tools" && kind != "" && !w.api.harmless(kind) && !(closed && kind == "web_search"):
		w.refuse(Fetches)
	}
}

// empty says whether a list has nothing in it.
func empty(value []byte) bool {
	s := bytes.Trim(value, "[] \t\r\n")
	return len(s) == 0 || string(s) == "null"
}

func (a API) harmless(kind string) bool {
	return slices.ContainsFunc(a.tools, func(t string) bool { return kind == t || strings.HasSuffix(t, "_") && strings.HasPrefix(kind, t) })
}
