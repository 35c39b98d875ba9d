package policy

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestF43BrokenYAML: what is no YAML is told in plain words, with the place and what to write.
func TestF43BrokenYAML(t *testing.T) {
	const flow = "this is not understood inside %c … %c: put a text that has one of : , [ ] { } # in quotes, and a comma between items"
	const indent = "the indentation of this line fits none of the lines above: begin it below the key or the item that it belongs to"
	const second = `there is a second ": " on this line: begin a new line for another key, or put the value in quotes`
	const quote = "the quote that opens here is not closed on its line: write another at the end of the text"
	const unclosed = `the "%c" that opens here is not closed: write "%c" after its last item`
	for _, c := range []struct{ text, want string }{
		{"guard:\n\tparents: []\n", "2:1: a tab stands in the indentation: indent with spaces"},
		{"guard:\n  \tparents: []\n", "2:3: a tab stands in the indentation: indent with spaces"},
		{"guard:\n  parents:\n  - /a\n\t- /b\n", "4:1: a tab stands in the indentation: indent with spaces"},
		{"allow: [{prefix: ::1}]\n", "1:18: " + fmt.Sprintf(flow, '{', '}')},
		{"allow:\n  - {prefix: ::1}\n", "2:14: " + fmt.Sprintf(flow, '{', '}')},
		{"metrics:\n  listen: [::1]:9464\n", "2:12: " + fmt.Sprintf(flow, '[', ']')},
		{"guard:\n  parents: []\n cgroups: []\n", "3:2: " + indent},
		{"guard:\n  parents: []\n    cgroups: []\n", "3:5: " + indent},
		{"guard:\n    parents: []\n  cgroups: []\nmode: seal\n", "3:3: " + indent},
		{"allow:\n  - prefix: 10.0.0.0/8\n     ports: 1\n", "3:11: " + second},
		{"allow:\n  - prefix: 10.0.0.0/8\n   ports: 1\n", "3:4: " + indent},
		{"guard:\n  parents: [/a\n", "2:12: " + fmt.Sprintf(unclosed, '[', ']')},
		{"guard:\n  parents: [/a\nmode: seal\n", "2:12: " + fmt.Sprintf(unclosed, '[', ']')},
		{"guard: {parents: [/a], cgroups: [/b}\n", `1:33: the "[" that opens here is closed by "}": close it by "]"`},
		{"allow:\n  - {prefix: 10.0.0.0/8\n  - {prefix: 192.0.2.0/24}\n", "2:5: " + fmt.Sprintf(unclosed, '{', '}')},
		{"guard: {parents: [/a]\nmode: seal\n", "1:8: " + fmt.Sprintf(unclosed, '{', '}')},
		{"guard:\n  parents: [/a /b, /c]]\n", "2:23: this is not understood after what is before it: put the whole value in quotes, or begin a new line"},
		{"mode: \"seal\nhold: true\n", "1:7: " + quote},
		{"mode: 'seal\nhold: true\n", "1:7: " + quote},
		{"events:\n  file: \"/var/log\n  max_mib: \"1\"\n", "2:9: " + quote},
		{"mode: \"seal\\q\"\n", `1:12: a backslash in double quotes begins a code that YAML does not know: write '…' instead of "…"`},
		{"mode: seal hold: true\n", "1:16: " + second},
		{"mode: seal: x\n", "1:11: " + second},
		{"mode seal\nhold: true\n", `2:5: there is a second ": " on this line`},
		{"hold: true\nmode seal\n", `2:1: "mode seal" has no colon: write key: value`},
		{"allow:\n  - name: *.example.org\n", `2:11: a text cannot begin with "*": put it in quotes, such as "*.example.org"`},
		{"allow_unix_sockets: [@bus]\n", `1:22: a text cannot begin with "@": put it in quotes, such as "@bus"`},
		{"mode: `seal`\n", "1:7: a text cannot begin with \"`\": put it in quotes, such as \"`seal`\""},
		{"mode: %seal\n", `1:7: a text cannot begin with "%": put it in quotes, such as "%seal"`},
		{"guard:\n  parents: - /a\n", "2:12: a list item cannot follow on the line of its key: begin a new line, or write [item, item]"},
		{"guard:\n  parents: [/a]\n  - /b\n", "3:3: " + indent},
		{"guard:\n  parents:\n  - /a\n  cgroups\n", `4:3: "cgroups" has no colon: write key: value`},
		{"mode: seal\n}\n", `2:1: `},
		{"mode: \"seal\" x\n", "1:14: this is not understood after what is before it: put the whole value in quotes, or begin a new line"},
		{"version: 1\n---\nmode: [\n", "3:7: " + fmt.Sprintf(unclosed, '[', ']')},
		{"mode: &a seal\nx: *b\n", `2:4: a text cannot begin with "*": put it in quotes, such as "*b"`},
	} {
		_, err := Parse("p", []byte(c.text))
		if err == nil || !strings.HasPrefix(err.Error(), "p:"+c.want) {
			t.Errorf("%q:\n got %v\nwant p:%s", c.text, err, c.want)
		}
	}
}

// TestF43NoParserText: whatever one slip makes of the example, each mistake has a place, and no text of the library's.
func TestF43NoParserText(t *testing.T) {
	data, err := os.ReadFile("../../deploy/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	placed := regexp.MustCompile(`^p:\d+:\d+: \S`)
	raw := regexp.MustCompile(`yaml:|not YAML|did not find|could not find|found (a|an|character|unknown|unexpected|undefined|duplicate|invalid)|not allowed in this context|panic|unmarshal`)
	refused := 0
	check := func(what, text string) {
		_, err := Parse("p", []byte(text))
		var all interface{ Unwrap() []error }
		if !errors.As(err, &all) {
			return
		}
		refused++
		for _, e := range all.Unwrap() {
			if !placed.MatchString(e.Error()) && !strings.Contains(e.Error(), "more mistakes") || raw.MatchString(e.Error()) || strings.Contains(e.Error(), "\n") {
				t.Errorf("%s: %v", what, e)
			}
		}
	}
	for i := range text {
		if i%5 > 0 {
			continue
		}
		check(fmt.Sprintf("without byte %d", i), text[:i]+text[i+1:])
		for _, slip := range []string{"\t", "\"", "'", "[", "}", ": ", "- ", "*", "&x ", "!x ", "|", "#", "\n", "\\", "%", "@", "? "} {
			if i%35 == len(slip)%7*5 {
				check(fmt.Sprintf("%q at byte %d", slip, i), text[:i]+slip+text[i:])
			}
		}
	}
	if refused < 100 {
		t.Errorf("only %d slips were refused: the test tries nothing", refused)
	}
}
