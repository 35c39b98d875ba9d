package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"weir/internal/classify"
	"weir/internal/cop"
)

// request is a case as a model reads it: one JSON object. Names are part of the prompt.
type request struct {
	Command     *string      `json:"command,omitempty"`
	Argv        []string     `json:"argv,omitempty"`
	Truncated   bool         `json:"argv_truncated,omitempty"`
	Taint       []string     `json:"taint"`
	Dir         string       `json:"working_directory,omitempty"`
	Container   string       `json:"container,omitempty"`
	Image       string       `json:"image,omitempty"`
	Destination *destination `json:"destination,omitempty"`
	Ancestry    []process    `json:"ancestry,omitempty"`
	Class       string       `json:"class"`
	Facts       facts        `json:"facts"`
	// Escaped: some text was not UTF-8, and its bytes are written as \xNN.
	Escaped bool `json:"bytes_escaped,omitempty"`
}

type destination struct {
	Address  string `json:"address,omitempty"`
	Port     uint16 `json:"port,omitempty"`
	Protocol string `json:"protocol,omitempty"`
	Name     string `json:"name,omitempty"`
}

type process struct {
	Comm string   `json:"comm,omitempty"`
	Argv []string `json:"argv,omitempty"`
}

type facts struct {
	Programs []string `json:"programs,omitempty"`
	URLs     []string `json:"urls,omitempty"`
	Hosts    []string `json:"hosts,omitempty"`
	Reads    []string `json:"reads,omitempty"`
	Writes   []string `json:"writes,omitempty"`
	Listens  []string `json:"listens,omitempty"`
	Encoders []string `json:"encoders,omitempty"`
	Install  bool     `json:"install,omitempty"`
	Runtime  bool     `json:"runtime,omitempty"`
	Upload   bool     `json:"upload,omitempty"`
	Download bool     `json:"download,omitempty"`
	Rules    []string `json:"rules,omitempty"`
}

// encode writes a case as one line of ASCII JSON: quotes, control characters and
// invisible letters of the container's texts cannot end a string or look like
// something else (B35, B51).
func encode(c cop.Case) ([]byte, error) {
	if cop.Size(c) > cop.MaxCase {
		return nil, cop.Fail(cop.TooLarge, "show case: more than %d bytes", cop.MaxCase)
	}
	var e escaper
	r := request{
		Argv: e.list(c.Argv), Truncated: c.Truncated, Taint: []string{},
		Dir: e.text(c.Dir), Container: e.text(c.Container), Image: e.text(c.Image),
		Class: c.Judged.Class.String(), Facts: e.facts(c.Judged),
	}
	if c.Command != "" {
		text := e.text(c.Command)
		r.Command = &text
	}
	if c.Taint.Corruption {
		r.Taint = append(r.Taint, "corruption")
	}
	if c.Taint.Secret {
		r.Taint = append(r.Taint, "secret")
	}
	if d := c.Destination; d != (cop.Destination{}) {
		r.Destination = &destination{Port: d.Port, Protocol: e.text(d.Protocol), Name: e.text(d.Name)}
		if d.Address.IsValid() {
			r.Destination.Address = d.Address.String()
		}
	}
	for _, p := range c.Ancestry {
		r.Ancestry = append(r.Ancestry, process{e.text(p.Comm), e.list(p.Argv)})
	}
	r.Escaped = e.did
	data, err := json.Marshal(r)
	if err != nil {
		return nil, cop.Fail(cop.Failed, "show case: %w", err)
	}
	return ascii(data), nil
}

// ascii writes what is not ASCII in JSON as \uNNNN.
func ascii(data []byte) []byte {
	var b bytes.Buffer
	for _, c := range string(data) {
		switch {
		case c < 0x7f:
			b.WriteByte(byte(c))
		case c > 0xffff:
			c -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	return b.Bytes()
}

// escaper makes texts UTF-8 and remembers whether it had to.
type escaper struct{ did bool }

func (e *escaper) text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	e.did = true
	var b strings.Builder
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		if c == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x%02x`, s[i])
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

func (e *escaper) list(texts []string) []string {
	var out []string
	for _, t := range texts {
		out = append(out, e.text(t))
	}
	return out
}

// facts shows at most this many of each kind: the command itself has them all.
const maxFacts = 100

func (e *escaper) facts(j classify.Result) facts {
	short := func(texts []string) []string { return e.list(texts[:min(len(texts), maxFacts)]) }
	f := j.Facts
	out := facts{
		Programs: short(f.Programs), URLs: short(f.URLs), Hosts: short(f.Hosts), Reads: short(f.Reads), Writes: short(f.Writes),
		Listens: short(f.Listens), Encoders: short(f.Encoders), Install: f.Install, Runtime: f.Runtime, Upload: f.Upload, Download: f.Download,
	}
	seen := map[string]bool{}
	for _, r := range j.Reasons {
		if !seen[r.Rule] && len(out.Rules) < maxFacts {
			seen[r.Rule] = true
			out.Rules = append(out.Rules, r.Rule)
		}
	}
	return out
}
